// Package exploration makes a search from the flags of "parley explore", and puts the model and the outcome of the
// search into words. It uses neither a terminal nor files, so the command line and the web page of "parley lab"
// share it.
package exploration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/explore"
	"parley/explore/goal"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/lists"
	"parley/internal/naming"
)

// Search describes a complete search.
type Search struct {
	flags    *Flags
	protocol parley.Protocol
	bare     bool
	options  explore.Options
	names    naming.Names
	aim      string    // one of the keys of aims: the flag that sets the goal; empty: promises
	goal     goal.Goal // what that flag says
	begins   initialStates
}

// aims maps the flags that set a goal to the words before it: for the search, for a run that reaches or breaks it,
// and for a search without such a run.
var aims = map[string]struct{ sought, broken, holds string }{
	"goal":   {"looks for a state in which ", "", "no run reaches a state in which "},
	"always": {"looks for a state in which this does not hold: ", "always: ", "holds: in every state "},
	"eventually": {
		"looks for a terminal state in which this does not hold: ", "eventually: ", "holds: at the end of every run ",
	},
}

// Size returns the number of processes, and of faulty ones that are tolerated.
func (s *Search) Size() (n, m int) { return s.protocol.N, s.protocol.M }

// head describes the explored system with a remark on its size, its liars and its requests.
func (s *Search) head(size string) []string {
	p := s.protocol
	out := []string{p.Name + ": " + p.Title, fmt.Sprintf("n = %d processes, m = %d%s", p.N, p.M, size), s.liars()}
	if asked := s.asked(); asked != "" {
		out = append(out, asked)
	}
	return out
}

// Model describes what is explored.
func (s *Search) Model() []string {
	size := ""
	if p := s.protocol; p.Bound != nil && p.Bound(p.N, p.M) != nil {
		size = ": beyond the bound"
	}
	return append(s.head(size), s.wrongs(), s.way())
}

// liars says which processes lie, and how.
func (s *Search) liars() string {
	all := s.begins.liars
	if len(all[0]) == 0 {
		return "no process lies"
	}
	if !s.begins.chosen {
		lie, them := "lie", "processes"
		if len(all[0]) == 1 {
			lie, them = "lies", "process"
		}
		return fmt.Sprintf("%d of the %d processes %s %s; all %s of the faulty %s are tried", len(all[0]),
			s.protocol.N, lie, s.anyway(), prose.Count(uint64(len(all)), "choice", "choices"), them)
	}
	var parts []string
	for id := range parley.ID(s.protocol.N) {
		if how, lies := all[0][id]; lies && atWill(how) {
			parts = append(parts, s.names.Full(id)+" (lies "+s.anyway()+")")
		} else if lies {
			parts = append(parts, s.names.Full(id)+" ("+how.Name+")")
		}
	}
	return "faulty: " + strings.Join(parts, ", ")
}

// anyway describes how liars without a behavior of their own lie.
func (s *Search) anyway() string {
	if s.flags.outspoken {
		return "in every possible way except silence"
	}
	return "in every possible way"
}

// asked describes the requests.
func (s *Search) asked() string {
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
		parts = append(parts, prose.Number(uint64(n))+" initial states")
	}
	return strings.Join(parts, "; ")
}

// usual is the message delay, in ticks, where a protocol assumes none.
const usual parley.Tick = 900

// wrongs describes the possible faults other than lies.
func (s *Search) wrongs() string {
	m := s.options.Model
	links := "messages arrive in any order"
	switch {
	case s.protocol.Timing == parley.Synchronous:
		links = "every message arrives in the round in which it was sent"
	case m.FIFO:
		links = "each link keeps the order of its messages"
	}
	if m.InTime {
		links += fmt.Sprintf(", within %s ticks", prose.Number(uint64(cmp.Or(s.protocol.Relies.Delay, usual))))
	}
	var most []string
	for _, c := range faultCounts(&m) {
		if *c.n > 0 {
			some := prose.Count(uint64(*c.n), c.one, c.many)
			if c.flag == "crashes" && m.CrashOnly != (parley.Set{}) {
				some += " of " + strings.Join(lists.Each(m.CrashOnly.All(), s.names.Full), " or ")
			}
			most = append(most, some)
		}
	}
	text := links + "; no other faults"
	if len(most) > 0 {
		text = links + "; at most " + strings.Join(most, ", ")
	}
	if m.Detect && m.Crashes > 0 {
		text += "; processes are notified of a crash after all messages of the crashed process have arrived"
		if m.Overtaking {
			text = strings.TrimSuffix(text, "after all messages of the crashed process have arrived") +
				"at any time after it, even before earlier messages of the crashed process arrive"
		}
	}
	return text
}

// way says how and for what the search was made.
func (s *Search) way() string {
	text := "a step is one message, timer, or crash"
	if s.options.Step == explore.Rounds {
		text = "a step is one round"
	}
	if s.flags.step == "split" {
		return text + ", and the last round is split by receiver; " + s.searchedFor()
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
		text += fmt.Sprintf("; runs of at most %s", prose.Count(uint64(s.options.Depth), "step", "steps"))
	}
	return text + "; " + s.searchedFor()
}

// searchedFor says what is searched for.
func (s *Search) searchedFor() string {
	if s.aim != "" {
		return aims[s.aim].sought + s.goal.Says
	}
	text := "looks for a broken promise"
	if s.options.Beyond {
		text = "looks for a property that breaks, promised or not"
	}
	if len(s.options.Only) > 0 {
		text += "; only " + strings.Join(s.options.Only, ", ")
	}
	return text
}

func nameOf(p parley.Property) string { return p.Name }

// looked returns the properties of a mode that the search checks.
func (s *Search) looked(mode parley.Mode) (names []string) {
	for _, q := range s.protocol.Properties {
		if q.Mode == mode && (len(s.options.Only) == 0 || slices.Contains(s.options.Only, q.Name)) {
			names = append(names, q.Name)
		}
	}
	return names
}

// broken says what a run breaks, or which goal it reaches.
func (s *Search) broken(f *explore.Finding) string {
	switch {
	case f.Property == explore.NoPanic:
		return "a panic"
	case f.Property == "":
		return aims[s.aim].broken + s.goal.Says
	}
	return f.Property
}

// Protocol returns the explored protocol.
func (s *Search) Protocol() parley.Protocol { return s.protocol }
