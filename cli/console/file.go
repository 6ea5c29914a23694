package console

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"parley"
	"parley/trace"
)

// StandardOutput is the file name that means the standard output.
const StandardOutput = "-"

// OutputFile is the name of a file to write, and the flag that sets it.
type OutputFile struct{ Flag, Name string }

// ReportTo returns where to write the report. If one of the files is the standard output, the report goes to the
// standard error, because the standard output must hold the file alone.
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

// InTrace adds the place to an error of reading the trace in a file.
func InTrace(file string, err error) error {
	if in, ok := errors.AsType[*trace.ReadError](err); ok {
		return &FileError{File: file, Line: in.Line, Err: fmt.Errorf("%w (at byte %d)", in.Err, in.Offset)}
	}
	return fmt.Errorf("%s:%w", file, err)
}

// WriteTrace writes the trace of a run to the file of --trace. It does nothing if name is empty.
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

// WriteFile writes b to the file that a flag names, which may be the standard output.
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
