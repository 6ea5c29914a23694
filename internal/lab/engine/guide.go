package engine

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"parley"
	"parley/docs/tutorials/learn"
	"parley/internal/exploration"
	"parley/internal/form"
	"parley/internal/input"
	"parley/internal/lab/link"
)

// GuideAnswer is the answer to "guide": the steps of all lessons, in their order.
type GuideAnswer struct {
	Steps []Step `json:"steps"`
}

// Step is a step of a lesson: a question, the runs that answer it, and why they end as they do.
type Step struct {
	Lesson  string `json:"lesson"` // as in Card.Lesson
	Title   string `json:"title"`  // of the section; it may have several steps
	Predict []Span `json:"predict"`
	Runs    []Link `json:"runs"`
	See     []Link `json:"see"` // moments of the first run, and what to see there
	Explain []Span `json:"explain"`
}

// Link leads to a run from its beginning, to a moment of a run, or to a search.
type Link struct {
	To      string `json:"to"`                // the fragment of the address
	Says    string `json:"says,omitempty"`    // what there is to see
	Command string `json:"command,omitempty"` // that does the same in a shell
	Search  bool   `json:"search,omitempty"`
}

// Span is a piece of text.
type Span struct {
	Text string `json:"text"`
	Kind string `json:"kind,omitempty"` // code, strong or em
}

// guideOf answers what the lessons say.
func guideOf(c commands) (any, error) {
	a := GuideAnswer{Steps: []Step{}}
	for _, lesson := range lessons() {
		text, err := fs.ReadFile(learn.Files, lesson.file)
		if err != nil {
			return nil, err
		}
		r := lessonReader{commands: c, lesson: lesson}
		if err := r.read(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", lesson.file, err)
		}
		a.Steps = append(a.Steps, r.steps...)
	}
	return a, nil
}

// commands are what commands of the lessons are about.
type commands struct {
	protocols []parley.Protocol
	scenarios fs.FS
}

// lessonReader reads the steps of a lesson: of each section, the paragraphs that begin with Predict and Explain, the
// commands between them, and comments "see", which name moments of the first run.
type lessonReader struct {
	commands
	lesson Lesson
	title  string // of the section
	steps  []Step
	first  link.Run // of the step
}

// read reads a lesson up to its exercises.
func (r *lessonReader) read(text string) error {
	text, _, _ = strings.Cut(text, "\n## Exercises")
	for block := range strings.SplitSeq(text, "\n\n") {
		block = strings.TrimSpace(block)
		title, section := strings.CutPrefix(block, "## ")
		predict, predicts := strings.CutPrefix(block, "**Predict.** ")
		explain, explains := strings.CutPrefix(block, "**Explain.** ")
		switch {
		case section:
			r.title = plain(title)
		case predicts:
			r.steps = append(r.steps, Step{
				Lesson: r.lesson.Number, Title: r.title, Predict: spans(predict), Runs: []Link{}, See: []Link{},
				Explain: []Span{},
			})
			r.first = link.Run{}
		case len(r.steps) == 0:
		case explains:
			last := &r.steps[len(r.steps)-1]
			last.Explain = spans(explain)
		case strings.HasPrefix(block, "```\n$ "):
			if err := r.run(block); err != nil {
				return err
			}
		case strings.HasPrefix(block, "<!-- see: "):
			if err := r.moments(block); err != nil {
				return err
			}
		}
	}
	return nil
}

// plain returns the title of a section without marks.
func plain(title string) string {
	var out strings.Builder
	for _, s := range spans(title) {
		out.WriteString(s.Text)
	}
	return out.String()
}

// run adds the commands of a block to the last step.
func (r *lessonReader) run(block string) error {
	last := &r.steps[len(r.steps)-1]
	for line := range strings.Lines(block) {
		command, is := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if !is {
			continue
		}
		l, run, err := r.linked(command)
		if err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
		if len(last.Runs) == 0 {
			r.first = run
		}
		last.Runs = append(last.Runs, l)
	}
	return nil
}

// moments adds moments of the first run to the last step. A moment is a line such as
//
//	<!-- see: at=41 sel=e41 tree=P3: P3 decides -->
func (r *lessonReader) moments(block string) error {
	last := &r.steps[len(r.steps)-1]
	for line := range strings.SplitSeq(block, "\n") {
		text, begun := strings.CutPrefix(line, "<!-- see: ")
		text, ended := strings.CutSuffix(text, " -->")
		place, says, ok := strings.Cut(text, ": ")
		run := r.first
		for pair := range strings.FieldsSeq(place) {
			switch key, value, _ := strings.Cut(pair, "="); key {
			case "at":
				at, err := strconv.ParseUint(value, 10, 64)
				if err != nil {
					return err
				}
				run.At = &at
			case "sel":
				run.Selected = value
			case "tree":
				run.Tree = value
			default:
				ok = false
			}
		}
		if !begun || !ended || !ok || run.At == r.first.At || r.first.Flags == nil {
			return fmt.Errorf("%q is no moment of a run", line)
		}
		last.See = append(last.See, Link{To: run.Fragment(), Says: says})
	}
	return nil
}

// linked returns the link that shows what a command prints, and its run. A search has no run.
func (c commands) linked(command string) (Link, link.Run, error) {
	words := shellWords(command)
	if len(words) < 3 || words[0] != "parley" {
		return Link{}, link.Run{}, fmt.Errorf("no command of parley")
	}
	if words[1] == "explore" {
		fs, err := parsed(c.protocols, words[2], words[3:], func(p parley.Protocol, fs *pflag.FlagSet) {
			exploration.New(p, fs)
		})
		if err != nil {
			return Link{}, link.Run{}, err
		}
		flags := given(fs, func(name string) bool { return set[name] != "" || name == sought })
		return Link{To: link.Search(words[2], flags), Command: command, Search: true}, link.Run{}, nil
	}
	start := uint64(0)
	run := link.Run{Protocol: words[2], At: &start}
	rest := words[3:]
	if words[2] == "--scenario" {
		text, err := fs.ReadFile(c.scenarios, strings.TrimPrefix(words[3], "docs/scenarios/"))
		if err != nil {
			return Link{}, run, err
		}
		s, err := form.ParseScenario(words[3], text)
		if err != nil {
			return Link{}, run, err
		}
		if run.Protocol, err = s.Protocol(); err != nil {
			return Link{}, run, err
		}
		run.Gallery, rest = strings.TrimSuffix(strings.TrimPrefix(words[3], "docs/scenarios/"), ".yaml"), words[4:]
	}
	fs, err := parsed(c.protocols, run.Protocol, rest, func(p parley.Protocol, fs *pflag.FlagSet) {
		form.New(p, fs)
		for _, name := range viewed {
			fs.String(name, "", "")
		}
	})
	if err != nil {
		return Link{}, run, err
	}
	if run.Gallery != "" {
		run.Protocol = ""
	}
	run.Tree = fs.Lookup("tree").Value.String()
	run.Flags = given(fs, func(name string) bool { return slices.Contains(viewed, name) || !form.FileMaySet(name) })
	return Link{To: run.Fragment(), Command: command}, run, nil
}

// parsed parses the flags of a command about a protocol.
func parsed(protocols []parley.Protocol, name string, args []string, declare func(parley.Protocol, *pflag.FlagSet),
) (*pflag.FlagSet, error) {
	p, err := input.Protocol(protocols, name)
	if err != nil {
		return nil, err
	}
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	declare(p, fs)
	fs.Usage = func() {}
	// A command of the lessons gives n and m as -n and -m, which pflag takes for shorthands.
	for i, arg := range args {
		if len(arg) == 2 && arg[0] == '-' && fs.Lookup(arg[1:]) != nil {
			args[i] = "-" + arg
		}
	}
	return fs, fs.Parse(args)
}

// given returns the flags that were set, without some.
func given(fs *pflag.FlagSet, without func(name string) bool) map[string]string {
	flags := make(map[string]string)
	fs.Visit(func(g *pflag.Flag) {
		if without(g.Name) {
			return
		}
		flags[g.Name] = g.Value.String()
		if list, is := g.Value.(pflag.SliceValue); is {
			flags[g.Name] = strings.Join(list.GetSlice(), ",")
		}
	})
	return flags
}

// shellWords splits a command as a shell does. Single quotes hold words with spaces together.
func shellWords(command string) (words []string) {
	for i, part := range strings.Split(command, "'") {
		switch {
		case i%2 == 1:
			words = append(words, part)
		default:
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// spans returns a paragraph in pieces: code, strong and emphasized text, and other text. Links lose their targets,
// which lead out of the page.
func spans(text string) []Span {
	text = strings.Join(strings.Fields(text), " ")
	out := []Span{}
	add := func(text, kind string) {
		if text != "" {
			out = append(out, Span{text, kind})
		}
	}
	for from := 0; ; {
		i := strings.IndexAny(text[from:], "`*[")
		if i < 0 {
			add(text, "")
			return out
		}
		i += from
		kind, inner, rest := marked(text[i:])
		if inner == "" {
			from = i + 1 // an ordinary character
			continue
		}
		add(text[:i], "")
		add(inner, kind)
		text, from = rest, 0
	}
}

// marked returns the piece at the beginning of a text, and the text after it. inner is empty if there is no piece.
func marked(text string) (kind, inner, rest string) {
	if after, is := strings.CutPrefix(text, "["); is {
		inner, rest, is = strings.Cut(after, "](")
		if _, rest, closed := strings.Cut(rest, ")"); is && closed {
			return "", inner, rest
		}
		return "", "", text
	}
	for _, mark := range []struct{ around, kind string }{{"`", "code"}, {"**", "strong"}, {"*", "em"}} {
		after, is := strings.CutPrefix(text, mark.around)
		inner, rest, closed := strings.Cut(after, mark.around)
		if is && closed && inner != "" {
			return mark.kind, inner, rest
		}
	}
	return "", "", text
}
