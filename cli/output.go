package cli

import (
	"io"
	"os"

	"parley"
)

// standardOutput is the name of a file that stands for the standard output.
const standardOutput = "-"

// outputFile is a flag that names a file to be written.
type outputFile struct{ flag, name string }

// reportTo returns where a report is written. If one of the files is the standard output, that
// is the standard error, because the standard output holds the file alone.
func (a *app) reportTo(asJSON bool, files ...outputFile) (io.Writer, error) {
	to := a.out
	for _, f := range files {
		switch {
		case f.name != standardOutput:
		case asJSON:
			return nil, badFlag(f.flag, "- is the standard output, which --json writes to: name a file")
		case to != a.out:
			return nil, badFlag(f.flag, "- is the standard output, which holds one file alone: name another file")
		default:
			to = a.err
		}
	}
	return to, nil
}

// writeFile writes the file that a flag names, or to the standard output.
func (a *app) writeFile(f outputFile, b []byte) error {
	var err error
	if f.name == standardOutput {
		_, err = a.out.Write(b)
	} else {
		err = os.WriteFile(f.name, b, 0o644)
	}
	if err != nil {
		err = &parley.FlagError{Flag: f.flag, Err: err}
	}
	return err
}
