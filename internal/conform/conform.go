// Package conform runs worked cases, written as JSON vectors, against the
// machines themselves.
//
// A file is {"family": NAME, "cases": [CASE, ...]}. Every case has an id, a
// source_ref, a basis, perhaps notes, the fields of its family, and under expect
// the results: each key there is checked, and one that is not known is an error.
package conform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Result is the outcome of one file.
type Result struct {
	File   string
	Family string
	Cases  int
	Failed []Failure
}

// Failure is one expectation that was not met.
type Failure struct {
	Case, Key string
	Want, Got string
}

// head are the fields that every case has.
type head struct {
	ID        string          `json:"id"`
	SourceRef string          `json:"source_ref"`
	Basis     string          `json:"basis"`
	Notes     string          `json:"notes"`
	Expect    json.RawMessage `json:"expect"`
}

// checker runs one case and reports what differs.
type checker func(raw []byte, report func(key string, want, got any)) error

// families are the families there are.
var families = map[string]checker{
	"oral":   oral,
	"ic":     vector,
	"sm":     signed,
	"bounds": bounds,
}

// later are families that the format has and this program does not run yet.
var later = []string{"diffusion", "tree", "fifo", "causal", "atomic", "clock", "commit"}

// Files expands directories to the JSON files in them.
func Files(paths []string) ([]string, error) {
	var files []string
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, p)
			continue
		}
		found, err := filepath.Glob(filepath.Join(p, "*.json"))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: no .json files in this folder", p)
		}
		files = append(files, found...)
	}
	return files, nil
}

// maxFile is the largest vector file, in bytes.
const maxFile = 64 << 20

// File runs the cases of one file. An error is about the file: it names the
// line and says what is allowed.
func File(name string) (Result, error) {
	info, err := os.Stat(name)
	if err != nil {
		return Result{}, err
	}
	if info.Size() > maxFile {
		return Result{}, fmt.Errorf("%s: %d bytes: allowed are %d", name, info.Size(), maxFile)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return Result{}, err
	}
	r, err := Run(b)
	r.File = name
	if err != nil {
		err = fmt.Errorf("%s:%w", name, err)
	}
	return r, err
}

// Run runs the cases of one file's content. Errors begin with the line.
func Run(b []byte) (Result, error) {
	var file struct {
		Family *string           `json:"family"`
		Cases  []json.RawMessage `json:"cases"`
	}
	if err := strict(b, &file); err != nil {
		return Result{}, at(b, err)
	}
	if file.Family == nil || file.Cases == nil {
		return Result{}, fmt.Errorf(`1: {"family": NAME, "cases": [...]} was expected`)
	}
	r := Result{Family: *file.Family, Cases: len(file.Cases)}
	check, known := families[r.Family]
	if !known {
		if slices.Contains(later, r.Family) {
			return r, fmt.Errorf("1: family %q is not supported yet", r.Family)
		}
		return r, fmt.Errorf("1: there is no family %q: allowed are oral, ic, sm and bounds", r.Family)
	}
	seen := make(map[string]bool)
	from := 0
	for _, raw := range file.Cases {
		from += bytes.Index(b[from:], raw)
		line := 1 + bytes.Count(b[:from], []byte("\n"))
		from += len(raw)
		var h head
		if err := json.Unmarshal(raw, &h); err != nil {
			return r, fmt.Errorf("%d: %w", line, err)
		}
		switch {
		case h.ID == "" || seen[h.ID]:
			return r, fmt.Errorf("%d: a case needs an id of its own, not %q", line, h.ID)
		case len(h.Expect) == 0:
			return r, fmt.Errorf("%d: case %s: nothing is expected", line, h.ID)
		}
		seen[h.ID] = true
		err := check(raw, func(key string, want, got any) {
			if w, g := show(want), show(got); w != g {
				r.Failed = append(r.Failed, Failure{h.ID, key, w, g})
			}
		})
		if err != nil {
			return r, fmt.Errorf("%d: case %s: %w", line, h.ID, err)
		}
	}
	return r, nil
}

// show writes a value in the form in which two are compared.
func show(x any) string {
	b, err := json.Marshal(x)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// strict decodes JSON: no unknown fields, no field twice, nothing behind it.
func strict(b []byte, into any) error {
	if err := unique(json.NewDecoder(bytes.NewReader(b))); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}

// unique reads one value and refuses an object that has a key twice.
func unique(dec *json.Decoder) error {
	t, err := dec.Token()
	if err != nil {
		return err
	}
	open, isDelim := t.(json.Delim)
	if !isDelim {
		return nil
	}
	keys := make(map[string]bool)
	for dec.More() {
		if open == '{' {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			if keys[key.(string)] {
				return fmt.Errorf("key %q is given twice", key)
			}
			keys[key.(string)] = true
		}
		if err := unique(dec); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// at puts the line of a syntax error in front of it, the first line otherwise.
func at(b []byte, err error) error {
	var syntax *json.SyntaxError
	line := 1
	if errors.As(err, &syntax) {
		line += bytes.Count(b[:min(int(syntax.Offset), len(b))], []byte("\n"))
	} else if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		line += bytes.Count(b, []byte("\n"))
	}
	return fmt.Errorf("%d: not a vector file: %s", line, strings.TrimPrefix(err.Error(), "json: "))
}
