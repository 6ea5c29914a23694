package explore

import (
	"fmt"
	"io"
	"strings"

	"parley/cli/console"
	"parley/internal/draw/prose"
	"parley/internal/exploration"
	"parley/internal/input"
)

// result is the result of a search, with where it is printed.
type result struct {
	*exploration.Result
	*console.App
	flags *flags
}

// write writes the trace and the picture of the counterexample to the requested files.
func (e *result) write() error {
	found := e.Found()
	if found == nil {
		return nil
	}
	if err := e.WriteTrace(e.flags.traceTo, found.Header, found.Log); err != nil {
		return err
	}
	if e.flags.svg == "" {
		return nil
	}
	picture, err := e.Picture(found)
	if err != nil {
		return err
	}
	return e.WriteFile(console.OutputFile{Flag: "svg", Name: e.flags.svg}, picture)
}

// print writes the outcome as text.
func (e *result) print(w io.Writer) error {
	width := e.Width(e.flags.width)
	var parts []string
	add := func(lines ...string) {
		for i := range lines {
			lines[i] = prose.Fold(lines[i], width)
		}
		parts = append(parts, strings.Join(lines, "\n")+"\n")
	}
	add(e.Model()...)
	add(e.Counted()...)
	found := e.Found()
	if found != nil {
		if diagram := e.Diagram(found, width, e.Colors()); diagram != "" {
			parts = append(parts, diagram)
		}
		lines := []string{e.Heading()}
		for i, line := range found.Story {
			lines = append(lines, fmt.Sprintf("%4d  %s", i+1, line))
		}
		add(lines...)
	}
	end := e.Verdict()
	switch {
	case found == nil && e.flags.traceTo+e.flags.svg != "":
		end = append(end, "no run was found, so no trace or picture was written")
	case e.flags.traceTo == console.StandardOutput:
	case e.flags.traceTo != "" && found.Panics(): // a replay would panic as well
		end = append(end, "to see the run: parley trace show "+input.Quote(e.flags.traceTo))
	case e.flags.traceTo != "":
		end = append(end, "to see the run: parley run --replay "+input.Quote(e.flags.traceTo))
	}
	add(end...)
	_, err := io.WriteString(w, strings.Join(parts, "\n"))
	return err
}
