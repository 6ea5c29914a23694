package conform

import (
	"fmt"
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

func vector(raw []byte, report reporter) error {
	var c vectorCase
	var want vectorExpect
	if err := read(raw, &c, &want); err != nil {
		return err
	}
	k, values, config, err := c.prepare()
	if err != nil {
		return err
	}
	p := lockstep.Of(interactive.Rounds(config), lockstep.Simulated)
	s, _ := k.run(p, values)
	if want.Vectors != nil {
		if _, err := k.asCorrect("vectors", form.Keys(want.Vectors), parley.All); err != nil {
			return err
		}
		got := make(map[string][]string)
		for id, body := range problem.Decisions(&s.History) {
			entries, err := interactive.DecodeVector(body)
			if err != nil {
				return err
			}
			for _, v := range entries {
				got[k.names[id]] = append(got[k.names[id]], string(v))
			}
		}
		report("vectors", want.Vectors, among(want.Vectors, got))
	}
	if want.Consensus != nil {
		if _, err := k.asCorrect("consensus", form.Keys(want.Consensus), parley.All); err != nil {
			return err
		}
		p := lockstep.Of(consensus.Rounds(consensus.Config{Instance: config.Instance, Over: config.Over}), lockstep.Simulated)
		s, _ := k.run(p, values)
		report("consensus", want.Consensus, among(want.Consensus, k.decisions(s, parley.All)))
	}
	return c.tables(k, p, s, want, report)
}

// tables compares what each process heard of each source: from the source and
// from every relay.
func (c vectorCase) tables(k cast, p parley.Protocol, s *sim.Sim, want vectorExpect, report reporter) error {
	if want.Tables != nil && c.M != 1 {
		return fmt.Errorf("expect: tables: they are for m = 1, not %d", c.M)
	}
	for _, about := range form.Keys(want.Tables) {
		source, err := k.id(about)
		if err != nil {
			return fmt.Errorf("expect: tables: %w", err)
		}
		names := form.Keys(want.Tables[about])
		hearers, err := k.asCorrect("tables: "+about, names, source)
		if err != nil {
			return err
		}
		for i, self := range hearers {
			got := make(map[string]string)
			tree := p.Tree(s.Machine(self))
			in, _, relays := tree.Node([]parley.ID{source})
			got[about] = string(in)
			for _, q := range relays {
				in, _, _ := tree.Node([]parley.ID{source, q})
				got[k.names[q]] = string(in)
			}
			delete(got, names[i]) // its own copy, where the algorithm has one, is no cell
			cells := want.Tables[about][names[i]]
			report("tables."+about+"."+names[i], cells, among(cells, got))
		}
	}
	return nil
}

// prepare checks the case and returns its processes, what they propose, and the
// instance. A faulty process needs no value: what it says is in the sends.
func (c vectorCase) prepare() (cast, map[parley.ID]string, interactive.Config, error) {
	var config interactive.Config
	k, in, err := c.system.prepare()
	if err != nil {
		return k, nil, config, err
	}
	values := make(map[parley.ID]string)
	for _, name := range form.Keys(c.Values) {
		id, err := k.id(name)
		if err != nil {
			return k, nil, config, fmt.Errorf("values: %w", err)
		}
		if err := checkWord("values", c.Values[name]); err != nil {
			return k, nil, config, err
		}
		values[id] = c.Values[name]
	}
	for _, id := range k.correct(parley.All) {
		if _, given := values[id]; !given {
			return k, nil, config, fmt.Errorf("values: %q is correct and has none", k.names[id])
		}
	}
	say, err := script(c.Sends, k, c.M, func(path []parley.ID, to parley.ID) bool {
		return to != path[0] && (c.Algorithm != "om" || !slices.Contains(path, to))
	})
	if err != nil {
		return k, nil, config, err
	}
	if _, err := oralProtocol(c.Algorithm, in, c.N, say); err != nil {
		return k, nil, config, err
	}
	config.Instance = in
	config.Over = func(in problem.Instance) lockstep.Protocol {
		p, _ := oralProtocol(c.Algorithm, in, c.N, say)
		return p
	}
	return k, values, config, nil
}
