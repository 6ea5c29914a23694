package draw

import (
	"fmt"
	"strings"

	"parley"
)

// Card is the verdict on a run: what held, what was promised and why, and what
// it cost beside what the theorem says.
type Card struct {
	Style
	// Title stands above the card, if there is one.
	Title    string
	Verdicts []parley.Verdict
	// Cost is what the theorem says and Measured what was counted, by round. Each
	// may be empty.
	Cost     parley.Cost
	Measured []parley.Traffic
	// Counted says whose messages were measured, as in "sent by all processes".
	Counted string
}

// Text writes the card.
func (c Card) Text() string {
	var parts []string
	if c.Title != "" {
		var title []string
		for _, line := range fold(c.Title, c.width()) {
			title = append(title, c.paint(bold, line))
		}
		parts = append(parts, strings.Join(title, "\n")+"\n")
	}
	if len(c.Verdicts) > 0 {
		var verdicts []string
		for _, v := range c.Verdicts {
			verdicts = append(verdicts, c.verdict(v))
		}
		parts = append(parts, strings.Join(verdicts, ""))
	}
	if len(c.Cost.PerRound)+len(c.Measured) > 0 {
		parts = append(parts, c.costs())
	}
	return strings.Join(parts, "\n")
}

// verdict is the paragraph on one property.
func (c Card) verdict(v parley.Verdict) string {
	mark, outcome, colour := verdictOf(v)
	broken := v.Broken != nil
	head := mark + " " + v.Property.Name
	line := pad(head, 14) + " " + outcome
	lines := []string{cut(line, c.width())}
	if c.Colour {
		lines[0] = strings.Replace(lines[0], mark, c.paint(colour, mark), 1)
		if i := strings.LastIndex(lines[0], outcome); i >= 0 {
			lines[0] = lines[0][:i] + c.paint(colour, outcome)
		}
	}
	says := []string{v.Property.Says}
	if broken {
		says = append(says, "broken: "+v.Broken.Error())
	}
	if v.Promise.Because != "" {
		if v.Promise.Holds {
			says = append(says, "promised: "+v.Promise.Because)
		} else {
			says = append(says, "not promised: "+v.Promise.Because)
		}
	}
	for _, paragraph := range says {
		lines = append(lines, fold("  "+paragraph, c.width())...)
	}
	return strings.Join(lines, "\n") + "\n"
}

// verdictOf puts a verdict into words.
func verdictOf(v parley.Verdict) (mark, outcome, colour string) {
	switch {
	case v.Promise.Holds && v.Broken == nil:
		return "✓", "held", green
	case v.Promise.Holds:
		return cross, "VIOLATED", red
	case v.Broken != nil:
		return "!", "not promised: broken", yellow
	}
	return "✓", "held, not promised", green
}

// costs is the table of what was measured beside what the theorem says.
func (c Card) costs() string {
	type measure struct {
		name string
		of   func(parley.Traffic) uint64
	}
	measures := []measure{
		{"messages", func(t parley.Traffic) uint64 { return t.Messages }},
		{"bits", func(t parley.Traffic) uint64 { return t.Bits }},
		{"signatures", func(t parley.Traffic) uint64 { return t.Signatures }},
	}
	measured := parley.Traffic{}
	for _, t := range c.Measured {
		measured = measured.Plus(t)
	}
	theorem := c.Cost.Total()
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
		note += Count(uint64(c.Cost.Rounds), "round", "rounds")
		notes = append(notes, note+", all processes correct, values of one bit")
	}
	if c.Counted != "" && len(c.Measured) > 0 {
		notes = append(notes, "measured: "+c.Counted)
	}
	text := g.render(c.width())
	for _, note := range notes {
		text += Fold(note, c.width()) + "\n"
	}
	return text
}

// entry is one round's number, or a dash if there is none.
func entry(rounds []parley.Traffic, r int, of func(parley.Traffic) uint64) string {
	if r >= len(rounds) {
		return "–"
	}
	return Number(of(rounds[r]))
}

func sum(rounds []parley.Traffic, total uint64) string {
	if len(rounds) == 0 {
		return "–"
	}
	return Number(total)
}
