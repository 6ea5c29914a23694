package conform

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/internal/conform/form"
	"parley/sim"
	"parley/trace"
)

// system has the common fields of the cases of oral, ic and sm.
type system struct {
	head
	N         int      `json:"n"`
	M         int      `json:"m"`
	Processes []string `json:"processes"`
	Default   string   `json:"default"`
	Faulty    []string `json:"faulty"`
}

// prepare checks the system and returns its processes, and its instance without a source.
func (c system) prepare() (cast, problem.Instance) {
	k := newCast(c.N, c.Processes, c.Faulty)
	switch frames := c.N * (c.N - 1) * (c.M + 1); {
	case c.M < 0 || c.M > c.N-2:
		fail("m: allowed are 0 to n-2")
	case frames > maxFrames:
		fail("a case of %d frames, n(n-1)(m+1): allowed are %d", frames, maxFrames)
	}
	checkWord("default", c.Default)
	return k, problem.Instance{N: c.N, M: c.M, Default: []byte(c.Default)}
}

// maxFrames is the maximum size of a case, in frames: its log holds each of them.
const maxFrames = 200_000

// sourced is a system in which one process has a value to agree on.
type sourced struct {
	system
	Source      string `json:"source"`
	SourceValue string `json:"source_value"`
}

func (c sourced) prepare() (cast, problem.Instance) {
	k, in := c.system.prepare()
	in.Source = k.id("source", c.Source)
	checkWord("source_value", c.SourceValue)
	return k, in
}

// outcome has the expectations about the decisions on one source's value.
type outcome struct {
	Decisions map[string]string `json:"decisions"`
	Agreement *bool             `json:"agreement"`
	Validity  json.RawMessage   `json:"validity" null:"allowed"` // null if the source is faulty
}

// compare compares the expectations with a run.
func (want outcome) compare(k cast, source parley.ID, value string, s *sim.Sim, report reporter) {
	decisions := k.decisions(s, source)
	if len(k.correct(source)) == 0 && (want.Agreement != nil || want.Validity != nil) {
		fail("expect: agreement and validity are of correct processes beside the source, and there are none")
	}
	k.asCorrect("decisions", form.Keys(want.Decisions), source)
	report("decisions", want.Decisions, among(want.Decisions, decisions))
	report("agreement", want.Agreement, alike(decisions))
	if want.Validity != nil {
		check("expect: validity", form.Decode(want.Validity, new(*bool)))
	}
	report("validity", want.Validity, k.validity(source, value, decisions))
}

// validity returns nil if the source is faulty, and otherwise whether all decided its value.
func (c cast) validity(source parley.ID, value string, decisions map[string]string) *bool {
	if c.bad(source) {
		return nil
	}
	valid := true
	for _, v := range decisions {
		valid = valid && v == value
	}
	return &valid
}

// cast has the processes of a case, with the names from the case.
type cast struct {
	names  []string
	faulty map[parley.ID]faulty.Behavior
}

// newCast checks that there are n processes with different names, and that the faulty ones are among them. Faulty
// processes send what the protocol's Lies, a script, says.
func newCast(n int, processes, bad []string) cast {
	c := cast{names: processes, faulty: make(map[parley.ID]faulty.Behavior)}
	if n < 2 || n > parley.MaxProcesses || len(processes) != n {
		fail("n is %d and there are %d processes: allowed are 2 to %d, and as many names",
			n, len(processes), parley.MaxProcesses)
	}
	for i, name := range processes {
		if name == "" || strings.Contains(name, ".") || slices.Contains(processes[:i], name) {
			fail("process %q: names are different, not empty and without dots", name)
		}
	}
	for _, name := range bad {
		id := c.id("", name)
		if c.bad(id) {
			fail("%q is faulty twice", name)
		}
		c.faulty[id] = faulty.Script
	}
	return c
}

func (c cast) bad(id parley.ID) bool {
	_, is := c.faulty[id]
	return is
}

// id reads a name. An error begins with what, unless that is empty.
func (c cast) id(what, name string) parley.ID {
	i := slices.Index(c.names, name)
	if i < 0 {
		check(what, fmt.Errorf("there is no process %q: allowed are %s", name, strings.Join(c.names, ", ")))
	}
	return parley.ID(i)
}

// ids reads several names.
func (c cast) ids(what string, names []string) (out []parley.ID) {
	for _, name := range names {
		out = append(out, c.id(what, name))
	}
	return out
}

func (c cast) path(ids []parley.ID) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = c.names[id]
	}
	return strings.Join(parts, ".")
}

// correct returns the correct processes except one.
func (c cast) correct(but parley.ID) (out []parley.ID) {
	for id := range parley.ID(len(c.names)) {
		if !c.bad(id) && id != but {
			out = append(out, id)
		}
	}
	return out
}

// asCorrect reads the names of the processes that a key of expect is about: correct ones, without the source if only
// lieutenants have the key.
func (c cast) asCorrect(key string, names []string, source parley.ID) []parley.ID {
	out := c.ids("expect: "+key, names)
	for i, id := range out {
		switch {
		case c.bad(id):
			fail("expect: %s: %q is faulty: nothing can be expected of it", key, names[i])
		case id == source:
			fail("expect: %s: %q is the source: this is expected of lieutenants", key, names[i])
		}
	}
	return out
}

// compare compares expectations about processes, by name, with the results.
func compare[T any](c cast, report reporter, key string, want, got map[string]T) {
	c.ids("expect: "+strings.Replace(key, ".", ": ", 1), form.Keys(want))
	report(key, want, among(want, got))
}

// run runs a protocol in which the given processes propose the given values.
func (c cast) run(p parley.Protocol, values map[parley.ID]string) (*sim.Sim, *trace.Log) {
	log := &trace.Log{Keep: true}
	return sim.Run(sim.Options{
		Protocol: p, Faulty: c.faulty, Log: log, Measure: true, Requests: requests(p.N, values),
	}), log
}

// honest runs the protocol without faulty processes and returns what it sends by round.
func honest(p parley.Protocol, values map[parley.ID]string) []uint64 {
	s := sim.Run(sim.Options{Protocol: p, Measure: true, Requests: requests(p.N, values)})
	return messages(s.Stats.Sent, p.Cost(p.N, p.M).Rounds)
}

// requests returns the proposals of the given values.
func requests(n int, values map[parley.ID]string) []sim.Request {
	var out []sim.Request
	for id := range parley.ID(n) {
		if v, proposes := values[id]; proposes {
			out = append(out, sim.Request{At: id, Msg: parley.Msg{Kind: parley.Propose, Body: []byte(v)}})
		}
	}
	return out
}

// messages returns the message counts of all rounds, including empty ones.
func messages(sent []parley.Traffic, rounds int) []uint64 {
	out := make([]uint64, rounds)
	for r, t := range sent {
		out[r] = t.Messages
	}
	return out
}

// byRound extends an expected list of counts, one for each round, to the length of the actual one: empty rounds at
// the end may be omitted.
func byRound(want, got []uint64) []uint64 {
	if want == nil {
		return nil
	}
	return append(slices.Clip(want), make([]uint64, max(0, len(got)-len(want)))...)
}

// alike reports whether all values are equal.
func alike(values map[string]string) bool {
	all := slices.Sorted(maps.Values(values))
	return len(slices.Compact(all)) < 2
}

// decisions returns the decisions of all correct processes except one, by name.
func (c cast) decisions(s *sim.Sim, but parley.ID) map[string]string {
	out := make(map[string]string)
	for id, v := range problem.Decisions(&s.History) {
		if id != but {
			out[c.names[id]] = string(v)
		}
	}
	return out
}

// among returns the entries of got whose keys are expected, because a case need not list all. An expected entry that
// does not exist stays missing.
func among[T any](want, got map[string]T) map[string]T {
	out := make(map[string]T)
	for k := range want {
		if v, ok := got[k]; ok {
			out[k] = v
		}
	}
	return out
}

// checkWord refuses values that no instance accepts.
func checkWord(what, v string) {
	if len(v) > problem.MaxValue {
		fail("%s: a value of %d bytes: allowed are %d", what, len(v), problem.MaxValue)
	}
}
