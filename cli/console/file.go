package console

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"parley"
	"parley/internal/input"
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
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return PathError(err)
	}
	if in, ok := errors.AsType[*trace.ReadError](err); ok {
		return &input.FileError{File: file, Line: in.Line, Err: fmt.Errorf("%w (at byte %d)", in.Err, in.Offset)}
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
		err = &parley.FlagError{Flag: f.Flag, Err: PathError(err)}
	}
	return err
}

// PathError says what is wrong with a file and what to do, for an error of the operating system about it. It returns
// other errors unchanged.
func PathError(err error) error {
	bad, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return err
	}
	what := bad.Err.Error()
	for _, c := range []struct {
		is   error
		says string
	}{
		{fs.ErrNotExist, "no such file or folder: check the name"},
		{fs.ErrPermission, "no permission: check the rights of the file and its folder"},
		{syscall.EISDIR, "it is a folder: name a file"},
		{syscall.ENOTDIR, "a part of the name is a file and not a folder: check the name"},
		{syscall.ENAMETOOLONG, "the name is too long: choose a shorter one"},
		{syscall.ENOSPC, "the disk is full: free some space"},
	} {
		if errors.Is(bad.Err, c.is) {
			what = c.says
		}
	}
	return &fileError{fmt.Sprintf("%.200s: %s", cmp.Or(bad.Path, `""`), what), err}
}

// fileError is an error about a file in words, which matches the error of the operating system.
type fileError struct {
	text string
	err  error
}

func (e *fileError) Error() string { return e.text }

// Unwrap returns the error of the operating system.
func (e *fileError) Unwrap() error { return e.err }
