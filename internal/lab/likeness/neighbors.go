package likeness

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley"
	"parley/faulty"
	"parley/internal/form"
	"parley/internal/lists"
)

// Other is another run, which differs from a given one only in flags.
type Other struct {
	Flags map[string]string // those that differ
	Says  []string          // how it differs
}

// maker proposes runs that differ from a run, with what one process sees of it unchanged as far as that is known
// before a run is made.
type maker struct {
	form.Run
	of       parley.ID
	alphabet []string
	faulty   []change[map[parley.ID]string]
	values   []change[map[parley.ID]string]
	seeds    []change[uint64]
}

// change is another value of a part of a run. The first one of a list belongs to the run itself.
type change[V any] struct {
	value V
	says  string
}

const (
	moreSeeds    = 8 // tried beside the seed of the run
	mostProposed = 1000
)

// Others proposes other runs, those that differ in one thing first: each faulty process is correct or behaves in
// another way, or another process is faulty in its place or in addition, if at most m are; each process proposes
// another value; or the seed is another one. The process of is correct in all of them, and its own value is the same.
// alphabet are the values that processes may propose.
func Others(r form.Run, of parley.ID, alphabet []string) []Other {
	m := maker{Run: r, of: of, alphabet: alphabet}
	m.addFaulty()
	m.addValues()
	m.seeds = []change[uint64]{{r.Seed, ""}}
	for seed := uint64(1); len(m.seeds) <= moreSeeds; seed++ {
		if seed != r.Seed {
			m.seeds = append(m.seeds, change[uint64]{seed, fmt.Sprintf("the seed is %d", seed)})
		}
	}
	var all []Other
	for changes := 1; changes <= 3; changes++ {
		for f := range m.faulty {
			for v := range m.values {
				for s := range m.seeds {
					if some(f)+some(v)+some(s) == changes && len(all) < mostProposed {
						all = append(all, m.other(f, v, s))
					}
				}
			}
		}
	}
	return all
}

// some returns 1 for a change, and 0 for what the run itself has.
func some(i int) int { return min(i, 1) }

func (m *maker) other(f, v, s int) Other {
	o := Other{Flags: make(map[string]string)}
	for _, says := range []string{m.faulty[f].says, m.values[v].says, m.seeds[s].says} {
		if says != "" {
			o.Says = append(o.Says, says)
		}
	}
	if f > 0 {
		o.Flags["faulty"] = m.flag(m.faulty[f].value)
	}
	if v > 0 {
		o.Flags["values"] = strings.Join(lists.Each(m.Protocol.Proposers.All(), func(id parley.ID) string {
			return m.values[v].value[id]
		}), ",")
	}
	if s > 0 {
		o.Flags["seed"] = fmt.Sprint(m.seeds[s].value)
	}
	return o
}

// flag writes faulty processes and their behaviors as the flag does.
func (m *maker) flag(how map[parley.ID]string) string {
	if len(how) == 0 {
		return "none"
	}
	return strings.Join(lists.Of(slices.Sorted(maps.Keys(how)), func(id parley.ID) string {
		return m.Names.Bare(id) + "=" + how[id]
	}), ",")
}

// addFaulty lists what could be faulty instead.
func (m *maker) addFaulty() {
	base := make(map[parley.ID]string)
	for id, b := range m.Faulty { // order: a map again
		base[id] = b.Name
	}
	known := make(map[string]bool)
	add := func(how map[parley.ID]string, says string) {
		if flag := m.flag(how); !known[flag] && len(how) < m.Protocol.N {
			known[flag] = true
			m.faulty = append(m.faulty, change[map[parley.ID]string]{how, says})
		}
	}
	with := func(less []parley.ID, id parley.ID, behavior string) map[parley.ID]string {
		how := maps.Clone(base)
		for _, l := range less {
			delete(how, l)
		}
		how[id] = behavior
		return how
	}
	add(base, "")
	bad := slices.Sorted(maps.Keys(base))
	for _, id := range bad {
		less := maps.Clone(base)
		delete(less, id)
		add(less, m.Names.Full(id)+" is correct")
		for _, l := range m.lies(id) {
			if l.value != base[id] {
				add(with(nil, id, l.value), l.says)
			}
		}
	}
	for id := range parley.ID(m.Protocol.N) {
		if _, is := base[id]; is || id == m.of || m.Down().Has(id) {
			continue
		}
		for _, l := range m.lies(id) {
			for _, instead := range bad {
				add(with([]parley.ID{instead}, id, l.value), m.Names.Full(instead)+" is correct, and "+l.says)
			}
			if m.Down().Len() < m.Protocol.M {
				add(with(nil, id, l.value), l.says)
			}
		}
	}
}

// mostSingle is the largest n for which every single lie is proposed. Beyond it, only those to the process itself are.
const mostSingle = 5

// lies returns the behaviors that a faulty process could have. In a protocol in rounds, a process may also lie once, to
// one receiver, and be honest otherwise.
func (m *maker) lies(id parley.ID) (all []change[string]) {
	name, p := m.Names.Full(id), m.Protocol
	for _, b := range faulty.Named() {
		if b.Name != faulty.Honest.Name && m.suits(b.Name) {
			all = append(all, change[string]{b.Name, name + " is faulty (" + b.Name + ")"})
		}
	}
	if p.Timing != parley.Synchronous || p.OnDemand || p.Lies == nil || p.Cost == nil {
		return all
	}
	for round := range p.Cost(p.N, p.M).Rounds {
		for to := range parley.ID(p.N) {
			if to == id || p.N > mostSingle && to != m.of {
				continue
			}
			lie := faulty.Moves(faulty.Move{Round: round, To: to, Answer: 1})
			all = append(all, change[string]{
				lie.Name, fmt.Sprintf("%s lies once, to %s in round %d", name, m.Names.Full(to), round),
			})
		}
	}
	return all
}

// suits reports whether a faulty process can behave in a way, and differently from a correct one.
func (m *maker) suits(behavior string) bool {
	b, err := faulty.Parse(behavior)
	if err != nil || b.Suits(m.Protocol) != nil {
		return false
	}
	return b.Choose == nil || m.Protocol.Lies != nil
}

// addValues lists what the other processes could propose instead.
func (m *maker) addValues() {
	base := make(map[parley.ID]string)
	for id := range m.Protocol.Proposers.All() {
		base[id] = string(m.Values[id])
	}
	m.values = []change[map[parley.ID]string]{{base, ""}}
	for _, v := range base { // order: any of them will do
		if strings.Contains(v, ",") {
			return // a flag cannot have it beside others
		}
	}
	for id := range m.Protocol.Proposers.All() {
		for _, v := range m.alphabet {
			if id == m.of || v == base[id] || strings.Contains(v, ",") {
				continue
			}
			other := maps.Clone(base)
			other[id] = v
			m.values = append(m.values, change[map[parley.ID]string]{
				other, fmt.Sprintf("%s proposes %s", m.Names.Full(id), parley.Printable([]byte(v))),
			})
		}
	}
}
