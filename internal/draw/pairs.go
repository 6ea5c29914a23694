package draw

import (
	"slices"
	"strings"

	"parley"
	"parley/trace"
)

// Pairs is an argument with runs that look the same to somebody, drawn side by side as
// the lecture draws the cases of its proof that three processes cannot agree.
type Pairs struct {
	Style
	Title, Subtitle string
	Pairs           []Pair
	// End is what follows from all of them.
	End string
}

// Pair is two runs that look the same to one process.
type Pair struct {
	Same  parley.ID
	Cases [2]Case
	// Must says for each of them what the process must decide there, and why.
	Must [2]string
}

// Case is one run.
type Case struct {
	Title  string // Case one
	Faulty parley.Set
	Events []trace.Event
	Lies   []Lie
}

// Lie is what a liar tells one correct process in a round and honestly would not.
type Lie struct {
	Round    int
	From, To parley.ID
	Instead  []parley.Sent // what it honestly would say
}

// saying is what one process tells another one in a round.
type saying struct {
	round    int
	title    string
	from, to parley.ID
	rows     []string
	values   []Share
	lie      bool
	instead  []string
}

// says is what a reader sees of it.
func (t *saying) says() string { return strings.Join(t.rows, " ") }

// scene is a case as it is read off its events.
type scene struct {
	Case
	s      Style
	p      parley.Protocol
	starts []Outcome
	said   []saying
	heard  []saying // by the process that the pair is about
}

// read reads a case.
func (d Pairs) read(p parley.Protocol, pair *Pair, which int) *scene {
	c := &scene{Case: pair.Cases[which], s: d.Style, p: p}
	c.s.Faulty = c.Faulty
	h := &parley.History{N: p.N, Faulty: c.Faulty}
	for _, e := range c.Events {
		switch {
		case e.Op == trace.Request:
			h.Requests = append(h.Requests, parley.Happening{At: e.At, Msg: e.Msg})
		case e.Op == trace.Receive && e.At == pair.Same:
			c.heard = c.message(c.heard, e, e.Peer, e.At)
		case e.Op == trace.Send && e.Peer != parley.All:
			c.said = c.message(c.said, e, e.At, e.Peer)
		case e.Op == trace.Send:
			for to := range parley.Everyone(p.N).All() {
				c.said = c.message(c.said, e, e.At, to)
			}
		}
	}
	c.starts = Outcomes(h, p.Proposers, nil)
	for id := range c.Faulty.All() {
		c.starts[id].Starts = nil // it says what it likes
	}
	for _, lie := range c.Lies {
		c.mark(&lie)
	}
	inOrder := func(a, b saying) int {
		if a.round != b.round {
			return a.round - b.round
		}
		if a.from != b.from {
			return int(a.from) - int(b.from)
		}
		return int(a.to) - int(b.to)
	}
	slices.SortStableFunc(c.said, inOrder)
	slices.SortStableFunc(c.heard, inOrder)
	return c
}

// message adds what a message says to one process, unless that is nothing.
func (c *scene) message(list []saying, e trace.Event, from, to parley.ID) []saying {
	if from == to {
		return list
	}
	r := reader{p: c.p, g: Gathering{Style: c.s}}
	t := saying{from: from, to: to}
	t.round, t.title = r.roundOf(e)
	e.At, e.Peer = from, to
	said := r.explain(from, content{events: []trace.Event{e}, to: []parley.ID{to}}, counted)
	if said.Total == 0 {
		return list
	}
	t.rows, t.values = said.Rows, said.Values
	return append(list, t)
}

// mark notes that something is a lie. What the only proposer says first is none that
// could be told from the truth: nobody but itself knows its value.
func (c *scene) mark(lie *Lie) {
	i := slices.IndexFunc(c.said, func(t saying) bool {
		return t.round == lie.Round && t.from == lie.From && t.to == lie.To
	})
	if i < 0 {
		i = len(c.said)
		c.said = append(c.said, saying{round: lie.Round, from: lie.From, to: lie.To})
	}
	if lie.Round == 0 && c.source() == lie.From {
		return
	}
	c.said[i].lie = true
	for _, sent := range lie.Instead {
		honest := trace.Event{Op: trace.Send, Path: sent.Path, Epoch: sent.Epoch, Msg: sent.Msg}
		for _, t := range c.message(nil, honest, lie.From, lie.To) {
			c.said[i].instead = append(c.said[i].instead, t.rows...)
		}
	}
}

// source is the only process that proposes, if there is just one.
func (c *scene) source() parley.ID {
	if c.p.Proposers.Len() == 1 {
		for id := range c.p.Proposers.All() {
			return id
		}
	}
	return parley.All
}

// about says who is faulty, and what it does.
func (c *scene) about() string {
	var out []string
	source := c.source()
	switch {
	case source == parley.All:
		var starts []string
		for _, o := range c.starts {
			if o.Starts != nil {
				starts = append(starts, c.s.name(o.Process)+" starts with "+c.s.value(o.Starts))
			}
		}
		out = append(out, strings.Join(starts, ", "))
	case c.Faulty.Has(source):
		out = append(out, c.s.name(source)+", the source, is faulty: it says "+c.orders(source))
	default:
		out = append(out, c.s.name(source)+", the source, is correct and says "+c.s.value(c.starts[source].Starts))
	}
	for id := range c.Faulty.All() {
		lies := c.liesOf(id)
		switch {
		case len(lies) > 0:
			out = append(out, c.s.name(id)+" is faulty: it tells "+strings.Join(lies, ", and "))
		case id != source:
			out = append(out, c.s.name(id)+" is faulty, and tells no lie in this run")
		}
	}
	return strings.Join(slices.DeleteFunc(out, func(s string) bool { return s == "" }), ". ") + "."
}

// orders is what a faulty source says first.
func (c *scene) orders(source parley.ID) string {
	type order struct {
		what string
		to   []parley.ID
	}
	var all []order
	for _, t := range c.said {
		if t.from != source || t.round != 0 {
			continue
		}
		what := one(t.values)
		switch {
		case len(t.rows) == 0:
			what = "nothing"
		case what == "":
			what = t.says()
		}
		i := slices.IndexFunc(all, func(o order) bool { return o.what == what })
		if i < 0 {
			i = len(all)
			all = append(all, order{what: what})
		}
		all[i].to = append(all[i].to, t.to)
	}
	var parts []string
	for _, o := range all {
		parts = append(parts, o.what+" to "+c.s.list(o.to))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return And(parts)
}

// liesOf are the lies of one process, those of one content together.
func (c *scene) liesOf(id parley.ID) (out []string) {
	for _, g := range grouped(c.said) {
		if t := &g.saying; t.from == id && t.lie {
			out = append(out, c.s.list(g.to)+" "+saysOr(t.says(), "nothing")+" in place of "+
				saysOr(strings.Join(t.instead, " "), "nothing"))
		}
	}
	return out
}

func saysOr(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// sharedBy is what one process tells several in a round.
type sharedBy struct {
	saying
	to []parley.ID
}

// grouped puts together what one process tells several in a round.
func grouped(all []saying) (out []sharedBy) {
	for _, t := range all {
		i := slices.IndexFunc(out, func(a sharedBy) bool {
			return a.round == t.round && a.from == t.from && a.lie == t.lie &&
				slices.Equal(a.rows, t.rows) && slices.Equal(a.instead, t.instead)
		})
		if i < 0 {
			i = len(out)
			out = append(out, sharedBy{saying: t})
		}
		out[i].to = append(out[i].to, t.to)
	}
	return out
}

// round is the title of a round.
func (t *saying) head() string { return titleOf(t.title, "Round "+Number(uint64(max(t.round, 0)))) }

// sees is what the process that the pair is about sees in a run, a line each.
func (c *scene) sees(id parley.ID) (out []string) {
	if o := c.starts[id]; o.Starts != nil {
		out = append(out, "it starts with "+c.s.value(o.Starts))
	}
	for i := range c.heard {
		t := &c.heard[i]
		out = append(out, t.head()+", from "+c.s.name(t.from)+": "+t.says())
	}
	if len(out) == 0 {
		out = append(out, "nothing")
	}
	return out
}

// CaseWords is what stands beside the picture of a case.
type CaseWords struct {
	About    string   // who is faulty, and what it does
	Messages []string // what each process says, a line each
	Sees     []string // what the process sees that the pair is about
}

// Words returns what stands beside the pictures of one pair.
func (d Pairs) Words(p parley.Protocol, which int) (out [2]CaseWords) {
	for i := range out {
		c := d.read(p, &d.Pairs[which], i)
		out[i] = CaseWords{About: c.about(), Sees: c.sees(d.Pairs[which].Same)}
		for _, g := range grouped(c.said) {
			out[i].Messages = append(out[i].Messages, g.head()+", "+c.line(&g))
		}
	}
	return out
}

// line is what one process tells others in a round.
func (c *scene) line(g *sharedBy) string {
	text := c.s.name(g.from) + " to " + c.s.list(g.to) + ": " + saysOr(g.says(), silence)
	if g.lie && len(g.rows) > 0 {
		text += ", a lie"
	}
	return text
}
