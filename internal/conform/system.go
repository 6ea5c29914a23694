package conform

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/sim"
	"parley/trace"
)

// cast are the processes of a case, by the names it gives them.
type cast struct {
	names  []string
	faulty map[parley.ID]faulty.Behaviour
}

// newCast checks that the processes are n, of different names, and the faulty
// ones among them. Faulty processes say what the protocol's Lies, a script, says.
func newCast(n int, processes, bad []string) (cast, error) {
	c := cast{names: processes, faulty: make(map[parley.ID]faulty.Behaviour)}
	if n < 2 || n > parley.MaxProcesses || len(processes) != n {
		return c, fmt.Errorf("n is %d and there are %d processes: allowed are 2 to %d, and as many names",
			n, len(processes), parley.MaxProcesses)
	}
	for i, name := range processes {
		if name == "" || strings.Contains(name, ".") || slices.Contains(processes[:i], name) {
			return c, fmt.Errorf("process %q: names are different, not empty and without dots", name)
		}
	}
	for _, name := range bad {
		id, err := c.id(name)
		if err != nil {
			return c, err
		}
		if _, twice := c.faulty[id]; twice {
			return c, fmt.Errorf("%q is faulty twice", name)
		}
		c.faulty[id] = faulty.Script
	}
	return c, nil
}

func (c cast) id(name string) (parley.ID, error) {
	i := slices.Index(c.names, name)
	if i < 0 {
		return 0, fmt.Errorf("there is no process %q: allowed are %s", name, strings.Join(c.names, ", "))
	}
	return parley.ID(i), nil
}

// ids reads several names.
func (c cast) ids(names []string) ([]parley.ID, error) {
	var out []parley.ID
	for _, name := range names {
		id, err := c.id(name)
		if err != nil {
			return nil, err
		}
		out = append(out, id)
	}
	return out, nil
}

func (c cast) path(ids []parley.ID) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = c.names[id]
	}
	return strings.Join(parts, ".")
}

// correct goes through the correct processes but one.
func (c cast) correct(but parley.ID) []parley.ID {
	var out []parley.ID
	for id := range parley.ID(len(c.names)) {
		if _, bad := c.faulty[id]; !bad && id != but {
			out = append(out, id)
		}
	}
	return out
}

// asCorrect reads the name of a process about whose inside something is expected.
func (c cast) asCorrect(name string) (parley.ID, error) {
	id, err := c.id(name)
	if err == nil {
		if _, bad := c.faulty[id]; bad {
			err = fmt.Errorf("%q is faulty: nothing can be expected of it", name)
		}
	}
	return id, err
}

// check runs a protocol in which the given processes propose the given values.
func (c cast) run(p parley.Protocol, values map[parley.ID]string) (*sim.Sim, *trace.Log) {
	log := &trace.Log{Keep: true}
	opt := sim.Options{Protocol: p, Faulty: c.faulty, Log: log, Measure: true}
	for id := range parley.ID(len(c.names)) {
		if v, proposes := values[id]; proposes {
			opt.Requests = append(opt.Requests, sim.Request{
				At: id, Msg: parley.Msg{Kind: parley.Propose, Body: []byte(v)},
			})
		}
	}
	return sim.Run(opt), log
}

// honest runs the protocol with nobody faulty and returns what it sends by round.
func honest(p parley.Protocol, values map[parley.ID]string) []uint64 {
	opt := sim.Options{Protocol: p, Measure: true}
	for id := range parley.ID(p.N) {
		if v, proposes := values[id]; proposes {
			opt.Requests = append(opt.Requests, sim.Request{
				At: id, Msg: parley.Msg{Kind: parley.Propose, Body: []byte(v)},
			})
		}
	}
	return messages(sim.Run(opt).Stats.Sent, p.Cost(p.N, p.M).Rounds)
}

// messages returns the counts of messages of all rounds, also of those in which
// nothing was sent.
func messages(sent []parley.Traffic, rounds int) []uint64 {
	out := make([]uint64, rounds)
	for r, t := range sent {
		out[r] = t.Messages
	}
	return out
}

// word is the text of a value, and of a decision that is missing.
func word(b []byte) string { return string(b) }

// alike tells whether all values are the same.
func alike(values map[string]string) bool {
	first := ""
	for _, v := range values {
		first = v
	}
	for _, v := range values {
		if v != first {
			return false
		}
	}
	return true
}

// decisions returns what the correct processes but one decided, by name.
func (c cast) decisions(s *sim.Sim, but parley.ID) map[string]string {
	out := make(map[string]string)
	for id, v := range problem.Decisions(&s.History) {
		if id != but {
			out[c.names[id]] = string(v)
		}
	}
	return out
}

// among returns the entries of got whose keys are expected, so that a case need
// not list every process.
func among[T any](want map[string]T, got map[string]T) map[string]T {
	out := make(map[string]T)
	for k := range want {
		if v, ok := got[k]; ok {
			out[k] = v
		}
	}
	return out
}

// checkWord refuses values that no instance accepts.
func checkWord(v string) error {
	if len(v) > problem.MaxValue {
		return fmt.Errorf("a value of %d bytes: allowed are %d", len(v), problem.MaxValue)
	}
	return nil
}

var errFaults = errors.New("m: allowed are 0 to n-2")
