package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one seeded bug: a patch with a few header lines.
type mutant struct {
	name  string   // the package's folder and the patch's name: agreement/eig/short
	tests []string // the packages whose tests are to fail
	run   string   // which of the tests, a regular expression; all if empty
	files []filePatch

	breaks     string // what it breaks, in words
	equivalent string // why nothing is broken, of a mutant that turned out to be none

	err error // the patch cannot be read
}

// parseMutant reads a patch of the package in the given folder, which is
// relative to the root of the module. Header lines begin with # and stand before
// the diff:
//
//	# breaks: what is wrong now, and which property or bound shows it
//	# tests: ./agreement/...           packages to test beside the patch's own
//	# run: TestA|TestB                 which of their tests are enough; all if left out
//	# equivalent: why no test can fail
func parseMutant(name, folder, text string) mutant {
	m := mutant{name: name, tests: []string{"./" + filepath.ToSlash(folder)}}
	fields := map[string]*string{"breaks": &m.breaks, "run": &m.run, "equivalent": &m.equivalent}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "--- ") {
			break
		}
		key, value, isField := strings.Cut(strings.TrimPrefix(line, "#"), ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case !strings.HasPrefix(line, "#") || !isField:
		case key == "tests":
			for _, p := range strings.Fields(strings.ReplaceAll(value, ",", " ")) {
				if !slices.Contains(m.tests, p) {
					m.tests = append(m.tests, p)
				}
			}
		case fields[key] != nil:
			*fields[key] = value
		}
	}
	if m.files, m.err = parsePatch(text); m.err == nil && m.breaks == "" && m.equivalent == "" {
		m.err = errors.New("a line # breaks: or # equivalent: was expected")
	}
	return m
}

// findMutants reads every patch of the module at root, in order of names.
func findMutants(root string) ([]mutant, error) {
	var all []mutant
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		mutants := filepath.Dir(path)
		testdata := filepath.Dir(mutants)
		if filepath.Ext(path) != ".patch" || filepath.Base(mutants) != "mutants" || filepath.Base(testdata) != "testdata" {
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(testdata))
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(filepath.Join(folder, strings.TrimSuffix(d.Name(), ".patch")))
		all = append(all, parseMutant(name, folder, string(text)))
		return nil
	})
	slices.SortFunc(all, func(a, b mutant) int { return strings.Compare(a.name, b.name) })
	return all, err
}

// overlay writes the changed files into dir and returns what the go command is
// to read instead of which file.
func (m mutant) overlay(root, dir string) (map[string]string, error) {
	replace := make(map[string]string)
	for i, f := range m.files {
		path := filepath.Join(root, filepath.FromSlash(f.path))
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		changed, err := apply(string(text), f.hunks)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d_%s", i, filepath.Base(path)))
		if err := os.WriteFile(replace[path], []byte(changed), 0o600); err != nil {
			return nil, err
		}
	}
	return replace, nil
}
