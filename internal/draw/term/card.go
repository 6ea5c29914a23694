package term

import (
	"fmt"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
)

// Card is the verdict on a run: what held in one line each, then what that means and why it was promised, and the
// measured costs next to the theorem's.
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
	// Beside is what faulty processes sent, and is not in Measured.
	Beside parley.Traffic
	// Whole is for protocols without rounds: the measured cost is one sum, and the theorem's is for one task, such as
	// a broadcast. Tasks is the number of tasks, and Task describes one, as in "one broadcast".
	Whole bool
	Tasks uint64
	Task  string
	// Shown, if not nil, returns which events show how a property is broken.
	Shown func(property string) string
}

// Text returns the card as text.
func (c Card) Text() string {
	var parts []string
	if c.Title != "" {
		parts = append(parts, heading(c.Style, c.Title))
	}
	if len(c.Verdicts) > 0 {
		reasons, before := "", ""
		for _, v := range c.Verdicts {
			reasons += c.reasons(v, before)
			before = promise(v)
		}
		parts = append(parts, c.outcomes(), reasons)
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

// outcomes returns one line for each property: its mark, its name and the outcome.
func (c Card) outcomes() string {
	wide := 14
	for _, v := range c.Verdicts {
		wide = max(wide, prose.Width(v.Property.Name)+2)
	}
	wide = min(wide, c.Columns()/2)
	var b strings.Builder
	for _, v := range c.Verdicts {
		mark, outcome, colour := verdictOf(v)
		room := wide - prose.Width(mark) - 1
		name := prose.Pad(prose.Cut(v.Property.Name, room), room)
		b.WriteString(paint(c.Style, colour, mark) + " " + name + " " + paint(c.Style, colour, outcome) + "\n")
	}
	return b.String()
}

// reasons returns the paragraph on one property: what it says, what was measured, what broke it, and why it is promised
// or not, unless that was said before.
func (c Card) reasons(v parley.Verdict, before string) string {
	_, outcome, colour := verdictOf(v)
	var says []string
	if v.Measured != "" {
		says = append(says, "measured: "+v.Measured)
	}
	sometimes := v.Property.Mode == parley.Sometimes // no single run breaks it
	broken := -1
	if v.Broken != nil && !sometimes {
		broken = len(says)
		says = append(says, "broken: "+v.Broken.Error())
		if c.Shown != nil {
			says = append(says, c.Shown(v.Property.Name))
		}
	}
	switch why := promise(v); {
	case why == "":
	case why == before:
		head, _, _ := strings.Cut(why, ":")
		says = append(says, head+" for the same reason")
	default:
		says = append(says, why)
	}
	if outcome == parley.NotApplicable {
		says = append(says, "not applicable: "+v.Vacuous)
	}
	var lines []string
	for i, line := range c.hanging(v.Property.Name+": "+v.Property.Says, "") {
		if name := v.Property.Name + ":"; i == 0 && strings.HasPrefix(line, name) {
			line = paint(c.Style, bold, name) + strings.TrimPrefix(line, name)
		}
		lines = append(lines, line)
	}
	for i, paragraph := range says {
		for _, line := range c.hanging(paragraph, "  ") {
			if i == broken {
				line = paint(c.Style, colour, line)
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// promise returns why a property is promised or not, or "" if nothing is said about that.
func promise(v parley.Verdict) string {
	switch {
	case v.Property.Mode == parley.Sometimes, v.Outcome() == parley.NotApplicable, v.Promise.Because == "":
		return ""
	case v.Promise.Holds:
		return "promised: " + v.Promise.Because
	}
	return "not promised: " + v.Promise.Because
}

// hanging folds a paragraph, with two more blanks before all lines but the first.
func (c Card) hanging(text, margin string) []string {
	lines := prose.Lines(text, c.Columns()-len(margin)-2)
	for i := range lines {
		if lines[i] = margin + lines[i]; i > 0 {
			lines[i] = "  " + lines[i]
		}
	}
	return lines
}

// verdictOf puts a verdict into words.
func verdictOf(v parley.Verdict) (mark, outcome, colour string) {
	switch outcome = v.Outcome(); outcome {
	case parley.NotSeen:
		return "·", outcome, dim
	case parley.NotApplicable:
		return "–", outcome, dim
	case parley.Violated:
		return reading.Cross, outcome, red
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
		if have == 0 && task == 0 && m.of(c.Beside) == 0 {
			continue
		}
		text := m.name + ": " + prose.Number(have)
		if beside := m.of(c.Beside); beside > 0 {
			text = fmt.Sprintf("%s: %s, of which faulty processes sent %s", m.name,
				prose.Number(reading.Sum(have, beside)), prose.Number(beside))
		}
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
