package console

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"parley/trace"
)

// ReadTraces reads trace files, and the .jsonl files in folders.
func ReadTraces(args []string) ([]trace.Trace, error) {
	var out []trace.Trace
	for _, arg := range args {
		files := []string{arg}
		info, err := os.Stat(arg)
		if err != nil {
			return nil, PathError(err)
		}
		if info.IsDir() {
			if files, err = filesIn(arg); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			if slices.ContainsFunc(out, func(t trace.Trace) bool { return t.Name == file }) {
				continue
			}
			all, err := readTraces(file)
			if err != nil {
				return nil, err
			}
			out = append(out, all...)
		}
	}
	return out, nil
}

// filesIn returns the traces in a folder and the folders below it.
func filesIn(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".jsonl" {
			files = append(files, path)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: the folder has no .jsonl file: name a folder with traces", dir)
	}
	return files, err
}

func readTraces(file string) ([]trace.Trace, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, PathError(err)
	}
	defer in.Close()
	all, err := trace.ReadAll(file, in)
	if err != nil {
		return nil, InTrace(file, err)
	}
	return all, nil
}
