package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"parley/internal/must"
)

// mutant is a seeded bug. The file PACKAGE/testdata/mutants.txt lists those of a package:
//
//	# A comment. Before the first name, explored, run and tests hold for all mutants without such a line.
//	explored: - no case has this protocol
//
//	name: short-chain
//	breaks: what is wrong now, and which property or bound shows it
//	run: TestA|TestB          the tests that are enough; all if left out
//	tests: ./agreement/...    packages to test beside this one
//	equivalent: why no test can fail, instead of breaks
//	explored: sm 2 agreement  the case that finds it, in how many moves, and what breaks; or - and why none does
//	file: sm.go               relative to the package's folder
//	-	if len(chain) < round {
//	+	if len(chain) < round-1 {
//
//	 	// A line that begins with a blank stays; it shows which of several places is meant.
//	-	return false
//	+	return true
//
// Lines that begin with -, + or a blank are a replacement, which an empty line or the next key ends. Its
// old text, the lines with - or a blank, must occur in the file exactly once, as whole lines.
type mutant struct {
	name  string   // the package's folder and the bug's name: agreement/eig/short
	at    string   // where it is listed, as FILE:LINE
	tests []string // the packages whose tests must fail
	run   string   // which of the tests, a regular expression; all if empty
	edits []edit

	breaks     string // what it breaks
	equivalent string // why an equivalent mutant breaks nothing
	explored   string // the result of exploration
}

// listed is the file with a package's mutants.
const listed = "testdata/mutants.txt"

// findMutants reads the mutants of all packages of the module at root, sorted by name.
func findMutants(root string) (all []mutant, err error) {
	defer must.Return(&err)
	var wrong []error
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		must.Do(err)
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && name != root {
			return filepath.SkipDir
		}
		within := filepath.ToSlash(must.Get(filepath.Rel(root, name)))
		if strings.HasSuffix("/"+within, "/"+listed) {
			mutants, err := parseMutants(path.Dir(path.Dir(within)), string(must.Get(os.ReadFile(name))))
			all, wrong = append(all, mutants...), append(wrong, err)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b mutant) int { return strings.Compare(a.name, b.name) })
	return all, errors.Join(append(wrong, err)...)
}

// parseMutants reads the list of the package in a folder. The error names every wrong line.
func parseMutants(folder, text string) ([]mutant, error) {
	p := parser{folder: folder, common: mutant{name: folder, tests: []string{"./" + folder}}}
	for line := range strings.Lines(text + "\n") {
		p.line++
		switch line[0] {
		case '#':
		case '\n':
			p.open = false
		case '-', '+', ' ':
			p.change(line)
		default:
			key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			p.open = false
			p.set(key, strings.TrimSpace(value))
		}
	}
	p.complete()
	return p.all, errors.Join(p.wrong...)
}

// parser reads a list of mutants line by line.
type parser struct {
	folder string
	line   int
	common mutant // from the lines before the first name
	all    []mutant
	file   string // the file to change
	open   bool   // the previous line belongs to a replacement
	wrong  []error
}

// last returns the mutant that is being read.
func (p *parser) last() *mutant {
	if len(p.all) == 0 {
		return &p.common
	}
	return &p.all[len(p.all)-1]
}

// refuse records an error of the last mutant.
func (p *parser) refuse(at, format string, args ...any) {
	p.wrong = append(p.wrong, p.last().wrong(at, format, args...))
}

// here returns the current place in the list.
func (p *parser) here() string { return fmt.Sprintf("%s:%d", path.Join(p.folder, listed), p.line) }

// set reads a line KEY: VALUE.
func (p *parser) set(key, value string) {
	m := p.last()
	texts := map[string]*string{"breaks": &m.breaks, "run": &m.run, "equivalent": &m.equivalent, "explored": &m.explored}
	switch {
	case value == "":
		p.refuse(p.here(), "%q is no line of a list: write KEY: VALUE, or begin lines of code with -, + or a blank", key)
	case key == "name":
		p.complete()
		name := path.Join(p.folder, value)
		if i := slices.IndexFunc(p.all, func(m mutant) bool { return m.name == name }); i >= 0 {
			p.refuse(p.here(), "the name %s is taken, at %s: choose another one", value, p.all[i].at)
		}
		m := p.common
		m.name, m.at, m.tests = name, p.here(), slices.Clone(m.tests)
		p.all, p.file = append(p.all, m), ""
	case key == "breaks" && m.breaks != "":
		p.refuse(p.here(), "it has a line breaks: already: begin another bug with a line name:")
	case key == "file" && len(p.all) > 0:
		p.file = path.Join(p.folder, value)
	case key == "tests":
		m.tests = append(m.tests[:1], strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ',' })...)
	case texts[key] != nil:
		*texts[key] = value
	default:
		p.refuse(p.here(), "no key %q here: write name, breaks, run, tests, equivalent, explored, or below a name, file", key)
	}
}

// change reads a line of a replacement.
func (p *parser) change(line string) {
	m := p.last()
	if p.file == "" {
		p.refuse(p.here(), "no line file: says where these lines are: write one above them")
		p.file = p.folder
	}
	if !p.open {
		m.edits, p.open = append(m.edits, edit{at: p.here(), file: p.file}), true
	}
	e := &m.edits[len(m.edits)-1]
	if line[0] != '+' {
		e.old += line[1:]
	}
	if line[0] != '-' {
		e.new += line[1:]
	}
}

// complete demands that the last mutant has everything it needs.
func (p *parser) complete() {
	m := p.last()
	if m == &p.common {
		return
	}
	if m.breaks == "" && m.equivalent == "" {
		p.refuse(m.at, "a line breaks: or equivalent: is missing")
	}
	if len(m.edits) == 0 {
		p.refuse(m.at, "nothing is changed: write a line file: and the lines to replace in it")
	}
	for _, e := range m.edits {
		switch e.old {
		case "":
			p.refuse(e.at, "nothing says where the new lines go: add the line above or below, begun with a blank")
		case e.new:
			p.refuse(e.at, "these lines change nothing: begin the old ones with -, the new ones with +")
		}
	}
}

// wrong returns an error about the mutant.
func (m mutant) wrong(at, format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w", at, path.Base(m.name), fmt.Errorf(format, args...))
}
