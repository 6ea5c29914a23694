// Package conform runs worked cases, written as JSON vectors, against the
// machines themselves.
//
// A file is {"family": NAME, "cases": [CASE, ...]}. Every case has an id, a
// source_ref, a basis, perhaps notes, the fields of its family, and under expect
// the results: each key there is checked, and one that is not known is an error.
// So is whatever would be checked and assert nothing.
package conform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"parley/internal/conform/form"
)

// Result is the outcome of one file.
type Result struct {
	File   string    `json:"file"`
	Family string    `json:"family"`
	Cases  int       `json:"cases"`
	Failed []Failure `json:"failed"`
}

// Failure is one expectation that was not met.
type Failure struct {
	Case string `json:"case"`
	Key  string `json:"key"`
	Want string `json:"want"`
	Got  string `json:"got"`
}

// head are the fields that every case has.
type head struct {
	ID        string          `json:"id"`
	SourceRef string          `json:"source_ref"`
	Basis     string          `json:"basis"`
	Notes     string          `json:"notes"`
	Expect    json.RawMessage `json:"expect"`
}

func (h *head) expectation() []byte { return h.Expect }

// read decodes a case, and what is expected in it.
func read(raw []byte, c interface{ expectation() []byte }, want any) error {
	if err := form.Strict(raw, c); err != nil {
		return err
	}
	if err := form.Strict(c.expectation(), want); err != nil {
		return fmt.Errorf("expect: %w", err)
	}
	return nil
}

// reporter takes in what one key of expect demands, and what came.
type reporter func(key string, want, got any)

// families are the families there are, each with what runs a case and reports.
var families = map[string]func(raw []byte, report reporter) error{
	"oral":      oral,
	"ic":        vector,
	"sm":        signed,
	"bounds":    bounds,
	"diffusion": diffuse,
	"tree":      forward,
	"fifo":      fifoOrder,
	"causal":    causalOrder,
	"atomic": byKind(map[string]func(raw []byte, report reporter) error{
		"script": queues, "recovery": recovery, "account": account,
	}),
	"clock": synchronize,
	"commit": byKind(map[string]func(raw []byte, report reporter) error{
		"2pc-vote": votes, "2pc-termination": termination("2pc"), "3pc-termination": termination("3pc"),
		"partition": partition, "counts": counts,
	}),
}

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
	if err := form.Strict(b, &file); err != nil {
		return Result{}, fmt.Errorf("%d: not a vector file: %w", lineOf(b, err), err)
	}
	if file.Family == nil || file.Cases == nil {
		return Result{}, fmt.Errorf(`1: {"family": NAME, "cases": [...]} was expected`)
	}
	r := Result{Family: *file.Family, Cases: len(file.Cases), Failed: []Failure{}}
	check, known := families[r.Family]
	if !known {
		return r, fmt.Errorf("1: there is no family %q: allowed are %s", r.Family, form.Listed(form.Keys(families)))
	}
	if len(file.Cases) == 0 {
		return r, errors.New("1: there are no cases: nothing would be checked")
	}
	seen := make(map[string]bool)
	line := 1
	for _, raw := range file.Cases {
		at := bytes.Index(b, raw)
		line += bytes.Count(b[:at], []byte("\n"))
		var h head
		if err := form.Decode(raw, &h); err != nil {
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
		line += bytes.Count(raw, []byte("\n"))
		b = b[at+len(raw):]
	}
	return r, nil
}

// lineOf returns the line that an error of the decoder is about, the first if it
// does not say.
func lineOf(b []byte, err error) int {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return 1
	}
	return 1 + bytes.Count(b[:min(int(syntax.Offset), len(b))], []byte("\n"))
}

// show writes a value in the form in which two are compared.
func show(x any) string {
	b, err := json.Marshal(x)
	if err != nil {
		panic(err)
	}
	return string(b)
}
