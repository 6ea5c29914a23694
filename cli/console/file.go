package console

import (
	"bytes"
	"io"
	"os"

	"parley"
	"parley/trace"
)

// StandardOutput is the name of a file that stands for the standard output.
const StandardOutput = "-"

// OutputFile is a flag that names a file to be written.
type OutputFile struct{ Flag, Name string }

// ReportTo returns where a report is written. If one of the files is the standard output, that
// is the standard error, because the standard output holds the file alone.
func (a *App) ReportTo(asJSON bool, files ...OutputFile) (io.Writer, error) {
	to := a.Out
	for _, f := range files {
		switch {
		case f.Name != StandardOutput:
		case asJSON:
			return nil, parley.FlagErrorf(f.Flag, "- is the standard output, which --json writes to: name a file")
		case to != a.Out:
			return nil, parley.FlagErrorf(f.Flag, "- is the standard output, which holds one file alone: name another file")
		default:
			to = a.Err
		}
	}
	return to, nil
}

// WriteTrace writes the trace of a run into the file that --trace names, if it does.
func (a *App) WriteTrace(name string, h trace.Header, log *trace.Log) error {
	if name == "" {
		return nil
	}
	var b bytes.Buffer
	if err := trace.Write(&b, h, log); err != nil {
		return err
	}
	return a.WriteFile(OutputFile{Flag: "trace", Name: name}, b.Bytes())
}

// WriteFile writes the file that a flag names, or to the standard output.
func (a *App) WriteFile(f OutputFile, b []byte) error {
	var err error
	if f.Name == StandardOutput {
		_, err = a.Out.Write(b)
	} else {
		err = os.WriteFile(f.Name, b, 0o644)
	}
	if err != nil {
		err = &parley.FlagError{Flag: f.Flag, Err: err}
	}
	return err
}
