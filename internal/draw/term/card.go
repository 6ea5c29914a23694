package term

import (
	"fmt"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
)

// Card is the verdict on a run: what held, what was promised and why, and the measured costs next to the theorem's.
type Card struct {
	reading.Style
	// Title is written above the card, if there is one.
	Title    string
	Verdicts []parley.Verdict
	// Cost is the theorem's count and Measured the actual one, by round. Each may be empty.
	Cost parley.Cost
	// ValueBits is the number of bits of a value in Cost; 0 means 1.
	ValueBits uint64
	Measured  []parley.Traffic
	// Counted says which messages were measured, as in "sent by all processes".
	Counted string
	// Whole is for protocols without rounds: the measured cost is one sum, and the theorem's is for one task, such as
	// a broadcast. Tasks is the number of tasks, and Task describes one, as in "one broadcast".
	Whole bool
	Tasks uint64
	Task  string
}

// Text returns the card as text.
func (c Card) Text() string {
	var parts []string
	if c.Title != "" {
		parts = append(parts, heading(c.Style, c.Title))
	}
	if len(c.Verdicts) > 0 {
		var verdicts []string
		for _, v := range c.Verdicts {
			verdicts = append(verdicts, c.verdict(v))
		}
		parts = append(parts, strings.Join(verdicts, ""))
	}
	switch {
	case len(c.Cost.PerRound)+len(c.Measured) == 0:
	case c.Whole:
		if text := c.whole(); text != "" {
			parts = append(parts, text)
		}
	default:
		parts = append(parts, c.costs())
	}
	return strings.Join(parts, "\n")
}

// heads returns the width of the names of the properties with their marks.
func (c Card) heads() int {
	wide := 14
	for _, v := range c.Verdicts {
		wide = max(wide, prose.Width(v.Property.Name)+2)
	}
	return min(wide, c.Columns()/2)
}

// verdict returns the paragraph on one property.
func (c Card) verdict(v parley.Verdict) string {
	mark, outcome, colour := verdictOf(v)
	broken := v.Broken != nil
	head := mark + " " + v.Property.Name
	line := prose.Pad(head, c.heads()) + " " + outcome
	lines := []string{prose.Cut(line, c.Columns())}
	if c.Color {
		lines[0] = strings.Replace(lines[0], mark, paint(c.Style, colour, mark), 1)
		if i := strings.LastIndex(lines[0], outcome); i >= 0 {
			lines[0] = lines[0][:i] + paint(c.Style, colour, outcome)
		}
	}
	says := []string{v.Property.Says}
	if v.Measured != "" {
		says = append(says, "measured: "+v.Measured)
	}
	sometimes := v.Property.Mode == parley.Sometimes // no single run breaks it
	if broken && !sometimes {
		says = append(says, "broken: "+v.Broken.Error())
	}
	switch {
	case sometimes:
	case outcome == parley.NotApplicable:
		says = append(says, v.Vacuous)
	case v.Promise.Because == "":
	case v.Promise.Holds:
		says = append(says, "promised: "+v.Promise.Because)
	default:
		says = append(says, "not promised: "+v.Promise.Because)
	}
	for _, paragraph := range says {
		lines = append(lines, prose.Lines("  "+paragraph, c.Columns())...)
	}
	return strings.Join(lines, "\n") + "\n"
}

// verdictOf puts a verdict into words.
func verdictOf(v parley.Verdict) (mark, outcome, colour string) {
	switch outcome = v.Outcome(); outcome {
	case parley.NotSeen:
		return "·", outcome, dim
	case parley.NotApplicable:
		return "–", outcome, dim
	case parley.Violated:
		return reading.Cross, strings.ToUpper(outcome), red
	case parley.NotPromisedBroken:
		return "!", outcome, yellow
	}
	return "✓", outcome, green
}

// measures are the counted quantities of messages.
var measures = []struct {
	name string
	of   func(parley.Traffic) uint64
}{
	{"messages", func(t parley.Traffic) uint64 { return t.Messages }},
	{"bits", func(t parley.Traffic) uint64 { return t.Bits }},
	{"signatures", func(t parley.Traffic) uint64 { return t.Signatures }},
}

// measured returns the total over all rounds.
func (c Card) measured() (all parley.Traffic) {
	for _, t := range c.Measured {
		all = all.Plus(t)
	}
	return all
}

// costs returns the table of measured costs next to the theorem's.
func (c Card) costs() string {
	measured, theorem := c.measured(), c.Cost.Total()
	rows := max(len(c.Measured), len(c.Cost.PerRound))
	g := grid{lead: []column{{head: "round", right: true}}}
	for r := range rows {
		g.lead[0].cells = append(g.lead[0].cells, fmt.Sprint(r))
	}
	g.lead[0].cells = append(g.lead[0].cells, "all")
	for i, m := range measures {
		if i > 0 && m.of(measured) == 0 && m.of(theorem) == 0 {
			continue
		}
		was := column{head: "measured", right: true}
		says := column{head: "theorem", right: true}
		if c.Cost.AtMost {
			says.head = "at most"
		}
		for r := range rows {
			was.cells = append(was.cells, entry(c.Measured, r, m.of))
			says.cells = append(says.cells, entry(c.Cost.PerRound, r, m.of))
		}
		was.cells = append(was.cells, sum(c.Measured, m.of(measured)))
		says.cells = append(says.cells, sum(c.Cost.PerRound, m.of(theorem)))
		g.groups = append(g.groups, group{m.name, []column{was, says}})
	}
	var notes []string
	if len(c.Cost.PerRound) > 0 {
		note := "theorem: "
		if c.Cost.AtMost {
			note = "at most, by the theorem: "
		}
		note += prose.Count(uint64(c.Cost.Rounds), "round", "rounds")
		size := "one bit"
		if c.ValueBits > 1 {
			size = prose.Count(c.ValueBits, "bit", "bits")
		}
		notes = append(notes, note+", all processes correct, values of "+size)
	}
	if c.Counted != "" && len(c.Measured) > 0 {
		notes = append(notes, "measured: "+c.Counted)
	}
	text := g.render(c.Columns())
	for _, note := range notes {
		text += prose.Fold(note, c.Columns()) + "\n"
	}
	return text
}

// whole returns one line for each measure, with the measured number and the theorem's.
func (c Card) whole() string {
	most := ""
	if c.Cost.AtMost {
		most = "at most "
	}
	var lines []string
	for _, m := range measures {
		have, task := m.of(c.measured()), m.of(c.Cost.Total())
		if have == 0 && task == 0 {
			continue
		}
		text := m.name + ": " + prose.Number(have)
		switch {
		case len(c.Cost.PerRound) == 0:
		case c.Task == "" || c.Tasks == 1:
			text += fmt.Sprintf("; the theorem says %s%s", most, prose.Number(task))
		default:
			total := parley.Traffic{Messages: task}.Times(c.Tasks).Messages
			text += fmt.Sprintf("; the theorem says %s%s for %s, %s for %s", most, prose.Number(task), c.Task,
				prose.Number(total), prose.Number(c.Tasks))
		}
		lines = append(lines, prose.Fold(text, c.Columns())+"\n")
	}
	if len(lines) == 0 {
		return ""
	}
	var notes []string
	if c.Counted != "" {
		notes = append(notes, "measured: "+c.Counted)
	}
	if len(c.Cost.PerRound) > 0 {
		notes = append(notes, "the theorem's figure is for runs in which nothing fails")
	}
	if len(notes) > 0 {
		lines = append(lines, prose.Fold(strings.Join(notes, "; "), c.Columns())+"\n")
	}
	return strings.Join(lines, "")
}

// entry returns one round's number, or a dash if there is none.
func entry(rounds []parley.Traffic, r int, of func(parley.Traffic) uint64) string {
	if r >= len(rounds) {
		return "–"
	}
	return prose.Number(of(rounds[r]))
}

func sum(rounds []parley.Traffic, total uint64) string {
	if len(rounds) == 0 {
		return "–"
	}
	return prose.Number(total)
}
