package conform

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/internal/conform/form"
	"parley/sim"
	"parley/trace"
)

// system is what the cases of oral, ic and sm have in common.
type system struct {
	head
	N         int      `json:"n"`
	M         int      `json:"m"`
	Processes []string `json:"processes"`
	Default   string   `json:"default"`
	Faulty    []string `json:"faulty"`
}

// prepare checks it and returns its processes, and its instance without a source.
func (c system) prepare() (cast, problem.Instance, error) {
	in := problem.Instance{N: c.N, M: c.M, Default: []byte(c.Default)}
	k, err := newCast(c.N, c.Processes, c.Faulty)
	switch {
	case err != nil:
		return k, in, err
	case c.M < 0 || c.M > c.N-2:
		return k, in, errors.New("m: allowed are 0 to n-2")
	case c.N*(c.N-1)*(c.M+1) > maxFrames:
		return k, in, fmt.Errorf("a case of %d frames, n(n-1)(m+1): allowed are %d", c.N*(c.N-1)*(c.M+1), maxFrames)
	}
	return k, in, checkWord("default", c.Default)
}

// maxFrames is the largest case that is run, in frames: its log holds each of them.
const maxFrames = 200_000

// sourced is a system in which one process has a value to agree on.
type sourced struct {
	system
	Source      string `json:"source"`
	SourceValue string `json:"source_value"`
}

func (c sourced) prepare() (cast, problem.Instance, error) {
	k, in, err := c.system.prepare()
	if err != nil {
		return k, in, err
	}
	if in.Source, err = k.id(c.Source); err != nil {
		return k, in, fmt.Errorf("source: %w", err)
	}
	return k, in, checkWord("source_value", c.SourceValue)
}

// outcome is what is expected of the decisions on one source's value.
type outcome struct {
	Decisions map[string]string `json:"decisions"`
	Agreement *bool             `json:"agreement"`
	Validity  json.RawMessage   `json:"validity" null:"allowed"` // null if the source is faulty
}

// compare compares it with a run.
func (want outcome) compare(k cast, source parley.ID, value string, s *sim.Sim, report reporter) error {
	decisions := k.decisions(s, source)
	if len(k.correct(source)) == 0 && (want.Agreement != nil || want.Validity != nil) {
		return errors.New("expect: agreement and validity are of correct processes beside the source, and there are none")
	}
	if want.Decisions != nil {
		if _, err := k.asCorrect("decisions", form.Keys(want.Decisions), source); err != nil {
			return err
		}
		report("decisions", want.Decisions, among(want.Decisions, decisions))
	}
	if want.Agreement != nil {
		report("agreement", *want.Agreement, alike(decisions))
	}
	if want.Validity != nil {
		var valid *bool
		if err := form.Decode(want.Validity, &valid); err != nil {
			return fmt.Errorf("expect: validity: %w", err)
		}
		report("validity", valid, k.validity(source, value, decisions))
	}
	return nil
}

// validity is null if the source is faulty, else whether all decided its value.
func (c cast) validity(source parley.ID, value string, decisions map[string]string) *bool {
	if _, bad := c.faulty[source]; bad {
		return nil
	}
	valid := true
	for _, v := range decisions {
		valid = valid && v == value
	}
	return &valid
}

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

// asCorrect reads the names of the processes of which a key of expect demands
// something: correct ones, and not the source where only lieutenants have it.
func (c cast) asCorrect(key string, names []string, source parley.ID) ([]parley.ID, error) {
	var out []parley.ID
	for _, name := range names {
		id, err := c.id(name)
		if err == nil {
			if _, bad := c.faulty[id]; bad {
				err = fmt.Errorf("%q is faulty: nothing can be expected of it", name)
			} else if id == source {
				err = fmt.Errorf("%q is the source: this is expected of lieutenants", name)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("expect: %s: %w", key, err)
		}
		out = append(out, id)
	}
	return out, nil
}

// run runs a protocol in which the given processes propose the given values.
func (c cast) run(p parley.Protocol, values map[parley.ID]string) (*sim.Sim, *trace.Log) {
	log := &trace.Log{Keep: true}
	return sim.Run(sim.Options{
		Protocol: p, Faulty: c.faulty, Log: log, Measure: true, Requests: requests(p.N, values),
	}), log
}

// honest runs the protocol with nobody faulty and returns what it sends by round.
func honest(p parley.Protocol, values map[parley.ID]string) []uint64 {
	s := sim.Run(sim.Options{Protocol: p, Measure: true, Requests: requests(p.N, values)})
	return messages(s.Stats.Sent, p.Cost(p.N, p.M).Rounds)
}

// requests are the proposals of the given values.
func requests(n int, values map[parley.ID]string) []sim.Request {
	var out []sim.Request
	for id := range parley.ID(n) {
		if v, proposes := values[id]; proposes {
			out = append(out, sim.Request{At: id, Msg: parley.Msg{Kind: parley.Propose, Body: []byte(v)}})
		}
	}
	return out
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

// byRound brings an expected list of counts, one a round, in which empty rounds at
// the end may be left out, to the length of what came.
func byRound(want, got []uint64) []uint64 {
	out := slices.Clone(want)
	for len(out) < len(got) {
		out = append(out, 0)
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

// among returns the entries of got whose keys are expected: a case need not list
// them all. One that is expected and not there stays missing.
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
func checkWord(what, v string) error {
	if len(v) > problem.MaxValue {
		return fmt.Errorf("%s: a value of %d bytes: allowed are %d", what, len(v), problem.MaxValue)
	}
	return nil
}
