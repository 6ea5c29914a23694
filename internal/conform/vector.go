package conform

import (
	"fmt"

	"parley"
	"parley/agreement/consensus"
	"parley/agreement/interactive"
	"parley/agreement/problem"
	"parley/lockstep"
	"parley/sim"
)

// vectorCase is one interactive consistency, with consensus on top.
type vectorCase struct {
	head
	N         int               `json:"n"`
	M         int               `json:"m"`
	Processes []string          `json:"processes"`
	Values    map[string]string `json:"values"`
	Default   string            `json:"default"`
	Faulty    []string          `json:"faulty"`
	Algorithm string            `json:"algorithm"`
	Sends     []oralSend        `json:"sends"`
}

type vectorExpect struct {
	Tables    map[string]map[string]map[string]string `json:"tables"`
	Vectors   map[string][]string                     `json:"vectors"`
	Consensus map[string]string                       `json:"consensus"`
}

func vector(raw []byte, report func(key string, want, got any)) error {
	var c vectorCase
	if err := strict(raw, &c); err != nil {
		return err
	}
	var want vectorExpect
	if err := strict(c.Expect, &want); err != nil {
		return fmt.Errorf("expect: %w", err)
	}
	k, values, config, err := c.prepare()
	if err != nil {
		return err
	}
	p := lockstep.Of(interactive.Rounds(config), lockstep.Simulated)
	s, _ := k.run(p, values)
	if want.Vectors != nil {
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
		report("vectors", want.Vectors, got)
	}
	if want.Consensus != nil {
		p := lockstep.Of(consensus.Rounds(consensus.Config{Instance: config.Instance, Over: config.Over}), lockstep.Simulated)
		s, _ := k.run(p, values)
		report("consensus", want.Consensus, k.decisions(s, parley.All))
	}
	return c.tables(k, p, s, want, report)
}

// tables compares what each process heard of each source: from the source and
// from every relay.
func (c vectorCase) tables(k cast, p parley.Protocol, s *sim.Sim, want vectorExpect,
	report func(key string, want, got any),
) error {
	if want.Tables != nil && c.M != 1 {
		return fmt.Errorf("expect: tables: they are for m = 1, not %d", c.M)
	}
	for _, about := range keys(want.Tables) {
		source, err := k.id(about)
		if err != nil {
			return fmt.Errorf("expect: tables: %w", err)
		}
		for _, at := range keys(want.Tables[about]) {
			self, err := k.asCorrect(at)
			if err == nil && self == source {
				err = fmt.Errorf("%q hears nothing of itself", at)
			}
			if err != nil {
				return fmt.Errorf("expect: tables: %s: %w", about, err)
			}
			got := make(map[string]string)
			tree := p.Tree(s.Machine(self))
			in, _, relays := tree.Node([]parley.ID{source})
			got[about] = string(in)
			for _, q := range relays {
				in, _, _ := tree.Node([]parley.ID{source, q})
				got[k.names[q]] = string(in)
			}
			delete(got, at) // its own copy, where the algorithm has one, is no cell
			report("tables."+about+"."+at, want.Tables[about][at], got)
		}
	}
	return nil
}

func (c vectorCase) prepare() (cast, map[parley.ID]string, interactive.Config, error) {
	var config interactive.Config
	k, err := newCast(c.N, c.Processes, c.Faulty)
	if err != nil {
		return k, nil, config, err
	}
	values := make(map[parley.ID]string)
	for _, name := range keys(c.Values) {
		id, err := k.id(name)
		if err == nil {
			err = checkWord(c.Values[name])
		}
		if err != nil {
			return k, nil, config, fmt.Errorf("values: %w", err)
		}
		values[id] = c.Values[name]
	}
	if len(values) != c.N {
		return k, nil, config, fmt.Errorf("values: there are %d for %d processes", len(values), c.N)
	}
	say, err := script(c.Sends, k, c.M, func(path []parley.ID, to parley.ID) bool {
		return to != path[0] && (c.Algorithm != "om" || !within(path, to))
	})
	if err != nil {
		return k, nil, config, err
	}
	config.Instance = problem.Instance{N: c.N, M: c.M, Default: []byte(c.Default)}
	if _, err := oralProtocol(c.Algorithm, config.Instance, say); err != nil {
		return k, nil, config, err
	}
	config.Over = func(in problem.Instance) lockstep.Protocol {
		p, _ := oralProtocol(c.Algorithm, in, say)
		return p
	}
	return k, values, config, nil
}
