package conform

import (
	"slices"

	"parley"
	"parley/agreement/consensus"
	"parley/agreement/interactive"
	"parley/agreement/problem"
	"parley/internal/conform/form"
	"parley/lockstep"
	"parley/sim"
)

// vectorCase is one interactive consistency, with consensus on top.
type vectorCase struct {
	system
	Values    map[string]string `json:"values"`
	Algorithm string            `json:"algorithm"`
	Sends     []oralSend        `json:"sends"`
}

type vectorExpect struct {
	Tables    map[string]map[string]map[string]string `json:"tables"`
	Vectors   map[string][]string                     `json:"vectors"`
	Consensus map[string]string                       `json:"consensus"`
}

func vector(c vectorCase, want vectorExpect, report reporter) {
	k, values, config := c.prepare()
	p := lockstep.Of(interactive.Rounds(config), lockstep.Simulated)
	s, _ := k.run(p, values)
	k.asCorrect("vectors", form.Keys(want.Vectors), parley.All)
	got := make(map[string][]string)
	for id, body := range problem.Decisions(&s.History) {
		entries, err := interactive.DecodeVector(body)
		check("", err)
		for _, v := range entries {
			got[k.names[id]] = append(got[k.names[id]], string(v))
		}
	}
	report("vectors", want.Vectors, among(want.Vectors, got))
	if want.Consensus != nil {
		k.asCorrect("consensus", form.Keys(want.Consensus), parley.All)
		p := lockstep.Of(consensus.Rounds(consensus.Config{Instance: config.Instance, Over: config.Over}), lockstep.Simulated)
		s, _ := k.run(p, values)
		report("consensus", want.Consensus, among(want.Consensus, k.decisions(s, parley.All)))
	}
	c.tables(k, p, s, want, report)
}

// tables compares what each process received about each source: from the source and from every relay.
func (c vectorCase) tables(k cast, p parley.Protocol, s *sim.Sim, want vectorExpect, report reporter) {
	if want.Tables != nil && c.M != 1 {
		fail("expect: tables: they are for m = 1, not %d", c.M)
	}
	for _, about := range form.Keys(want.Tables) {
		source := k.id("expect: tables", about)
		names := form.Keys(want.Tables[about])
		for i, self := range k.asCorrect("tables: "+about, names, source) {
			got := make(map[string]string)
			tree := p.Tree(s.Machine(self))
			in, _, relays := tree.Node([]parley.ID{source})
			got[about] = string(in)
			for _, q := range relays {
				in, _, _ := tree.Node([]parley.ID{source, q})
				got[k.names[q]] = string(in)
			}
			delete(got, names[i]) // its own copy, if the algorithm has one, is no cell
			cells := want.Tables[about][names[i]]
			report("tables."+about+"."+names[i], cells, among(cells, got))
		}
	}
}

// prepare checks the case and returns its processes, their proposals, and the instance. A faulty process needs no
// value: its messages are in the sends.
func (c vectorCase) prepare() (cast, map[parley.ID]string, interactive.Config) {
	k, instance := c.system.prepare()
	values := make(map[parley.ID]string)
	for _, name := range form.Keys(c.Values) {
		id := k.id("values", name)
		checkWord("values", c.Values[name])
		values[id] = c.Values[name]
	}
	for _, id := range k.correct(parley.All) {
		if _, given := values[id]; !given {
			fail("values: %q is correct and has none", k.names[id])
		}
	}
	say := script(c.Sends, k, c.M, func(path []parley.ID, to parley.ID) bool {
		return to != path[0] && (c.Algorithm != "om" || !slices.Contains(path, to))
	})
	over := func(in problem.Instance) lockstep.Protocol { return oralProtocol(c.Algorithm, in, c.N, say) }
	over(instance) // fails if the instance is too large
	return k, values, interactive.Config{Instance: instance, Over: over}
}
