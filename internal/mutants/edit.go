package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"parley/internal/must"
)

// edit replaces lines of a file.
type edit struct {
	at       string // where it is listed, as FILE:LINE
	file     string // the path from the root of the module
	old, new string // whole lines
	from     int    // the offset of the old lines in the file
}

// overlay writes the changed files into dir, and a file for the -overlay flag of the go command. It returns the name
// of that file, and the changed file for each original one.
func (m mutant) overlay(root, dir string) (file string, replace map[string]string, err error) {
	defer must.Return(&err)
	replace = make(map[string]string)
	for _, e := range m.edits {
		name := filepath.Join(root, filepath.FromSlash(e.file))
		if replace[name] != "" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return "", nil, m.wrong(e.at, "%w", err)
		}
		changed := must.Get(m.apply(e.file, string(text)))
		replace[name] = filepath.Join(dir, strings.ReplaceAll(e.file, "/", "_"))
		must.Do(os.WriteFile(replace[name], []byte(changed), 0o600))
	}
	list := must.Get(json.Marshal(map[string]any{"Replace": replace}))
	file = filepath.Join(dir, "overlay.json")
	return file, replace, os.WriteFile(file, list, 0o600)
}

// apply returns the text of a file with the mutant's edits. It locates all of them in the original text.
func (m mutant) apply(file, text string) (string, error) {
	var edits []edit
	for _, e := range m.edits {
		if e.file != file {
			continue
		}
		var err error
		if e.from, err = e.find(text); err != nil {
			return "", m.wrong(e.at, "%w", err)
		}
		edits = append(edits, e)
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	out, done := "", 0
	for i, e := range edits {
		if e.from < done {
			return "", m.wrong(e.at, "the old text overlaps with that of %s: make one replacement of both", edits[i-1].at)
		}
		out += text[done:e.from] + e.new
		done = e.from + len(e.old)
	}
	return out + text[done:], nil
}

// find returns where the old text begins in a text.
func (e edit) find(text string) (int, error) {
	var found []string // the lines at which it occurs
	from, at, number := 0, 0, 0
	for line := range strings.Lines(text) {
		number++
		if strings.HasPrefix(text[at:], e.old) {
			from, found = at, append(found, strconv.Itoa(number))
		}
		at += len(line)
	}
	switch len(found) {
	case 1:
		return from, nil
	case 0:
		return 0, fmt.Errorf("%s has no such lines%s: write them as they are now", e.file, e.missing(text))
	}
	return 0, fmt.Errorf("%s has the old text %d times, at lines %s: add the line above or below the one that is meant, "+
		"begun with a blank", e.file, len(found), strings.Join(found, ", "))
}

// missing returns the first line of the old text that does not occur in a text.
func (e edit) missing(text string) string {
	lines := slices.Collect(strings.Lines(text))
	for line := range strings.Lines(e.old) {
		if !slices.Contains(lines, line) {
			return fmt.Sprintf(" (%q is nowhere)", strings.TrimSpace(line))
		}
	}
	return " in this order"
}
