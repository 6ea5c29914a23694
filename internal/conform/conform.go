// Package conform runs worked cases against the protocols' machines. A worked case is an example with known
// results. The cases are in JSON files.
//
// A file is {"family": NAME, "cases": [CASE, ...]}. Every case has an id, a source_ref, a basis, optional notes, the
// fields of its family, and the expected results under the key expect. The package checks each key under expect. An
// unknown key is an error. A check that can never fail is also an error.
package conform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"

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

// head has the fields that every case has.
type head struct {
	ID        string          `json:"id"`
	SourceRef string          `json:"source_ref"`
	Basis     string          `json:"basis"`
	Notes     string          `json:"notes"`
	Expect    json.RawMessage `json:"expect"`
}

func (h head) expectation() []byte { return h.Expect }

// reporter compares the expected value of a key of expect with the actual one. It ignores a key that the case does
// not have: want is then nil.
type reporter func(key string, want, got any)

// runner runs a case and reports its results. It fails if the case is invalid. forms are the forms of its cases.
type runner struct {
	run   func(raw []byte, report reporter)
	forms []Form
}

// Form is the form of the cases of a family, or of one kind of them.
type Form struct {
	Family, Kind string
	Case, Expect reflect.Type
}

// Forms returns the forms of all cases, in order of families and kinds.
func Forms() (all []Form) {
	for _, family := range form.Keys(families) {
		for _, f := range families[family].forms {
			f.Family = family
			all = append(all, f)
		}
	}
	return all
}

// families are all families.
var families = map[string]runner{
	"oral":      decoded(oral),
	"ic":        decoded(vector),
	"sm":        decoded(signed),
	"tetra":     decoded(viewed),
	"bounds":    decoded(bounds),
	"diffusion": decoded(diffuse),
	"tree":      decoded(forward),
	"fifo":      decoded(fifoOrder),
	"causal":    decoded(causalOrder),
	"atomic": byKind(map[string]runner{
		"script": decoded(queues), "recovery": decoded(recovery), "account": decoded(account),
	}),
	"clock": decoded(synchronize),
	"commit": byKind(map[string]runner{
		"2pc-vote": decoded(votes), "2pc-termination": decoded(termination("2pc")),
		"3pc-termination": decoded(termination("3pc")), "partition": decoded(partition), "counts": decoded(counts),
	}),
}

// decoded decodes a case and its expectations for a function that runs it.
func decoded[C interface{ expectation() []byte }, W any](run func(c C, want W, report reporter)) runner {
	return runner{
		func(raw []byte, report reporter) {
			var c C
			var want W
			check("", form.Strict(raw, &c))
			check("expect", form.Strict(c.expectation(), &want))
			run(c, want, report)
		},
		[]Form{{Case: reflect.TypeFor[C](), Expect: reflect.TypeFor[W]()}},
	}
}

// kinded is the head of a case of a family with several kinds.
type kinded struct {
	head
	Kind string `json:"kind"`
}

// byKind runs a case of a family with several kinds.
func byKind(kinds map[string]runner) runner {
	var forms []Form
	for _, kind := range form.Keys(kinds) {
		for _, f := range kinds[kind].forms {
			f.Kind = kind
			forms = append(forms, f)
		}
	}
	return runner{func(raw []byte, report reporter) {
		var c struct {
			Kind string `json:"kind"`
		}
		check("", form.Decode(raw, &c))
		run, known := kinds[c.Kind]
		if !known {
			fail("kind %q: allowed are %s", c.Kind, form.Listed(form.Keys(kinds)))
		}
		run.run(raw, report)
	}, forms}
}

// wrong is an error in a case. Functions that read and run a case panic with it, by fail and check, and attempt
// returns it: so they need no error results.
type wrong struct{ error }

func fail(format string, args ...any) { panic(wrong{fmt.Errorf(format, args...)}) }

// check fails if err is not nil. The error is prefixed with what, unless that is empty.
func check(what string, err error) {
	switch {
	case err == nil:
	case what == "":
		panic(wrong{err})
	default:
		fail("%s: %w", what, err)
	}
}

// within calls do, and fails with the prefix what if do fails.
func within(what string, do func()) { check(what, attempt(do)) }

// attempt calls a function and returns the error with which it fails.
func attempt(do func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case wrong:
			err = r.error
		default:
			panic(r)
		}
	}()
	do()
	return nil
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
			return nil, fmt.Errorf("%s: the folder has no .json file: name a folder with worked cases", p)
		}
		files = append(files, found...)
	}
	return files, nil
}

// maxFile is the maximum size of a vector file, in bytes.
const maxFile = 64 << 20

// File runs the cases of one file. An error is about the file: it names the
// line and says what is allowed.
func File(name string) (Result, error) {
	f, err := os.Open(name)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1)) // a device reports no size
	if err != nil {
		return Result{}, err
	}
	if len(b) > maxFile {
		return Result{}, fmt.Errorf("%s: the file is too long: at most %d bytes are allowed", name, maxFile)
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
		return Result{}, fmt.Errorf("%d: not a vector file: %w; check the line against "+
			"docs/reference/vectors.md", lineOf(b, err), err)
	}
	if file.Family == nil || file.Cases == nil {
		return Result{}, fmt.Errorf(`1: a key is missing: write {"family": NAME, "cases": [...]}`)
	}
	r := Result{Family: *file.Family, Cases: len(file.Cases), Failed: []Failure{}}
	run, known := families[r.Family]
	if !known {
		return r, fmt.Errorf("1: unknown family %q: allowed are %s", r.Family, form.Listed(form.Keys(families)))
	}
	if len(file.Cases) == 0 {
		return r, errors.New("1: the list of cases is empty: add at least one")
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
			return r, fmt.Errorf("%d: the id %q is empty or used twice: give each case an id of its own", line, h.ID)
		case len(h.Expect) == 0:
			return r, fmt.Errorf("%d: case %s: the key expect is missing: add it", line, h.ID)
		}
		seen[h.ID] = true
		err := attempt(func() {
			run.run(raw, func(key string, want, got any) {
				if w, g := show(want), show(got); expected(want) && w != g {
					r.Failed = append(r.Failed, Failure{h.ID, key, w, g})
				}
			})
		})
		if err != nil {
			return r, fmt.Errorf("%d: case %s: %w", line, h.ID, err)
		}
		line += bytes.Count(raw, []byte("\n"))
		b = b[at+len(raw):]
	}
	return r, nil
}

// lineOf returns the line of a decoder error, or the first line if the error has none.
func lineOf(b []byte, err error) int {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return 1
	}
	return 1 + bytes.Count(b[:min(int(syntax.Offset), len(b))], []byte("\n"))
}

// expected reports whether a case has a key: the field of a missing key of expect is nil.
func expected(want any) bool {
	switch v := reflect.ValueOf(want); v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return !v.IsNil()
	}
	return true
}

// show returns a value in the form in which values are compared.
func show(x any) string {
	b, err := json.Marshal(x)
	if err != nil {
		panic(err)
	}
	return string(b)
}
