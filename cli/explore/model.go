package explore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/cli/console"
	"parley/explore"
	"parley/explore/goal"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/lists"
)

// search is a search that can be made.
type search struct {
	flags    *flags
	protocol parley.Protocol
	bare     bool
	options  explore.Options
	names    console.Names
	aim      string    // the flag that says what is searched for, in place of promises: one of aims
	goal     goal.Goal // that it says
	begins   initialStates
}

// aims are the flags that say what is searched for, and the words before that: while it is sought, where it
// was found or broke, and where no run shows that.
var aims = map[string]struct{ sought, broken, holds string }{
	"goal":       {"a state is searched in which ", "", "no run comes to a state in which "},
	"always":     {"a state is searched in which this is not so: ", "always: ", "holds: in every state "},
	"eventually": {"an end is searched at which this is not so: ", "eventually: ", "holds: at the end of every run "},
}

// head says which system is explored, with what is to be said of its size, who lies in it and what is asked.
func (s *search) head(size string) []string {
	p := s.protocol
	out := []string{p.Name + ": " + p.Title, fmt.Sprintf("n = %d processes, m = %d%s", p.N, p.M, size), s.liars()}
	if asked := s.asked(); asked != "" {
		out = append(out, asked)
	}
	return out
}

// model says what is explored, in words.
func (s *search) model() []string {
	size := ""
	if p := s.protocol; p.Bound != nil && p.Bound(p.N, p.M) != nil {
		size = ": beyond the bound"
	}
	return append(s.head(size), s.wrongs(), s.way())
}

// liars says who lies, and how.
func (s *search) liars() string {
	all := s.begins.liars
	if len(all[0]) == 0 {
		return "nobody lies"
	}
	if !s.begins.chosen {
		lie := "lie"
		if len(all[0]) == 1 {
			lie = "lies"
		}
		return fmt.Sprintf("%d of the %d processes %s, %s: all %s are tried", len(all[0]),
			s.protocol.N, lie, s.anyway(), prose.Count(uint64(len(all)), "choice", "choices"))
	}
	var parts []string
	for id := range parley.ID(s.protocol.N) {
		if how, lies := all[0][id]; lies && atWill(how) {
			parts = append(parts, s.names.Full(id)+" ("+s.anyway()+")")
		} else if lies {
			parts = append(parts, s.names.Full(id)+" ("+how.Name+")")
		}
	}
	return "faulty: " + strings.Join(parts, ", ")
}

// anyway says how liars lie of whom nothing else is said.
func (s *search) anyway() string {
	if s.flags.outspoken {
		return "in any way but silence"
	}
	return "in any way there is"
}

// asked says what is asked of whom.
func (s *search) asked() string {
	var parts []string
	if open := s.protocol.Proposers.Minus(s.begins.fixed); open != (parley.Set{}) {
		who := lists.Each(open.All(), s.names.Full)
		verb := " proposes "
		if len(who) > 1 {
			verb = " each propose "
		}
		parts = append(parts, prose.And(who)+verb+strings.Join(s.begins.values, " or "))
	}
	words := reading.Words{Style: reading.Style{Name: s.names.Full, Width: 1 << 12}, Protocol: s.protocol}
	for _, q := range s.begins.asked {
		parts = append(parts, s.names.Full(q.At)+" "+words.Asked(0, q.Msg))
	}
	if n := len(s.begins.roots); n > 1 {
		parts = append(parts, fmt.Sprintf("%s ways to begin in all", prose.Number(uint64(n))))
	}
	return strings.Join(parts, "; ")
}

// usual is the delay of messages where a protocol relies on none of its own.
const usual parley.Tick = 900

// wrongs says what may go wrong beside lies.
func (s *search) wrongs() string {
	m := s.options.Model
	links := "messages arrive in any order"
	switch {
	case s.protocol.Timing == parley.Synchronous:
		links = "what is sent in a round arrives in it"
	case m.FIFO:
		links = "each link keeps the order of its messages"
	}
	if m.InTime {
		links += fmt.Sprintf(", within %s ticks", prose.Number(uint64(cmp.Or(s.protocol.Relies.Delay, usual))))
	}
	var most []string
	for _, c := range faultCounts(&m) {
		if *c.n > 0 {
			most = append(most, prose.Count(uint64(*c.n), c.one, c.many))
		}
	}
	text := links + "; nothing else goes wrong"
	if len(most) > 0 {
		text = links + "; at most " + strings.Join(most, ", ")
	}
	if m.Detect && m.Crashes > 0 {
		text += "; processes are told of a crash when what was sent there has arrived"
		if m.Overtaking {
			text = strings.TrimSuffix(text, "when what was sent there has arrived") +
				"at any time after it, even before what was sent there arrives"
		}
	}
	return text
}

// way says how the search was made, and for what.
func (s *search) way() string {
	text := "a step is a message"
	if s.options.Step == explore.Rounds {
		text = "a step is a round"
	}
	if s.flags.step == "split" {
		return text + ", and the last is split by receiver; " + s.searchedFor()
	}
	switch s.options.Order {
	case explore.BreadthFirst:
		text += "; breadth first"
	case explore.DepthFirst:
		text += "; depth first"
	case explore.RandomOrder:
		text += fmt.Sprintf("; %s at random", prose.Count(uint64(s.options.Walks), "run", "runs"))
	}
	if s.options.Depth > 0 {
		text += fmt.Sprintf("; at most %s deep", prose.Count(uint64(s.options.Depth), "step", "steps"))
	}
	return text + "; " + s.searchedFor()
}

// searchedFor says what is searched for.
func (s *search) searchedFor() string {
	if s.aim != "" {
		return aims[s.aim].sought + s.goal.Says
	}
	text := "a broken promise is searched for"
	if s.options.Beyond {
		text = "a property that breaks is searched for, promised or not"
	}
	if len(s.options.Only) > 0 {
		text += ", of " + strings.Join(s.options.Only, ", ")
	}
	return text
}

func nameOf(p parley.Property) string { return p.Name }

// looked returns the properties of a mode that the search looks at.
func (s *search) looked(mode parley.Mode) (names []string) {
	for _, q := range s.protocol.Properties {
		if q.Mode == mode && (len(s.options.Only) == 0 || slices.Contains(s.options.Only, q.Name)) {
			names = append(names, q.Name)
		}
	}
	return names
}

// broken says what a run breaks, or comes to.
func (s *search) broken(f *explore.Finding) string {
	switch {
	case f.Property == explore.NoPanic:
		return "a panic"
	case f.Property == "":
		return aims[s.aim].broken + s.goal.Says
	}
	return f.Property
}
