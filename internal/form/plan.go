package form

import (
	"errors"
	"fmt"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"parley"
	"parley/broadcast/problem"
	"parley/internal/scenario"
	"parley/run"
)

// PlanFlags are the flags for the plan of a run: the keys of a scenario, each with a value in YAML.
type PlanFlags struct {
	fs    *pflag.FlagSet
	keys  []string
	nodes map[string]ast.Node // the keys that a scenario file has set
}

// planHelp describes each key, with an example.
var planHelp = map[string]string{
	"requests": "`list` of requests to processes, as in '[{at: 1, when: 100, broadcast: hi, to: [1, 2]}]'; " +
		"\"at\" is the process that gets the request, and \"when\" is the time; other kinds of requests have, instead " +
		"of broadcast and to, propose: VALUE, or leave: true, or setup: {active: [1, 2]}, or the three keys " +
		"command: WORDS, client: NUMBER, number: NUMBER",
	"workload": "random broadcasts, a `mapping`, as in '{broadcasts: 10, from: [1, 2], named: true, within: " +
		"5000}'",
	"delay": "delay of messages, in `ticks` or with a unit, as in 1..900",
	"fifo":  "links keep the order of messages (default: true if the protocol relies on it)",
	"loss":  "`probability` that a link loses a message, from 0 to 1 (default: 0)",
	"twice": "`probability` that a link delivers a message twice, from 0 to 1 (default: 0)",
	"graph": "links between processes, a `mapping`, as in '{1: [2, 3], 3: [4]}' (default: all)",
	"links": "`list` of rules for links, as in '[{from: 1, to: [2, 3], since: 100, until: 900, loss: 1, " +
		"delay: 5..9}]'",
	"partitions": "`list` of partitions, as in '[{groups: [[1, 2], [3]], since: 100, until: 900}]'",
	"crashes": "`list` of crashes, as in '[{process: 2, when: 500, effects: 1, back: 900, disk: lost}]': " +
		"process 2 crashes in its first step from tick 500 on, after one effect of this step, and restarts 900 " +
		"ticks later without its durable state; to name the third step instead of a tick, write step: 3 in place of " +
		"when: 500",
	"pauses":     "`list` of pauses of processes, as in '[{process: 2, since: 100, for: 900}]'",
	"clocks":     "`list` of wrong clocks, as in '[{process: 2, offset: 5ms, drift: 100}]'; drift is in parts per million",
	"suspicions": "`list` of false suspicions, as in '[{process: 1, suspects: 2, when: 500}]'",
	"detect": "notify the other processes of each crash after this many `ticks`; such a notice is never " +
		"false (default: no notices)",
	"random": "random faults, a `mapping`, as in '{crashes: 1, restarts: 1, partitions: 1, suspicions: 2, " +
		"within: 5000, last: 900}'",
	"heal":  "`time` from which links neither lose nor delay messages, in ticks or with a unit (default: never)",
	"until": "`time` at which the run ends, in ticks or with a unit (default: when nothing is due)",
	"promised": "delays and clock errors that the protocol may rely on, a `mapping`, as in '{delay: 900, " +
		"offset: 5ms, drift: 100}' (default: what the other settings imply)",
	"steps": "maximum `number` of steps of the run",
}

// Declare adds the flags of the given keys to fs. more is additional help for a key.
func (f *PlanFlags) Declare(fs *pflag.FlagSet, keys []string, more map[string]string) {
	f.fs, f.nodes = fs, make(map[string]ast.Node)
	for _, key := range keys {
		if fs.Lookup(key) != nil {
			continue // the protocol's own flag, such as the graph along which it sends
		}
		f.keys = append(f.keys, key)
		if key == "fifo" {
			fs.VarPF(new(switchValue), key, "", planHelp[key]+more[key]).NoOptDefVal = "true"
			continue
		}
		fs.String(key, "", planHelp[key]+more[key])
	}
}

// switchValue is the value of a key that is true or false. Plan checks it.
type switchValue string

// Set, String and Type make it a flag.
func (v *switchValue) Set(text string) error {
	*v = switchValue(text)
	return nil
}

func (v *switchValue) String() string { return string(*v) }

// Type is what the help calls the value: a switch has none.
func (v *switchValue) Type() string { return "bool" }

// set sets a key to its value in a scenario file.
func (f *PlanFlags) set(key string, value ast.Node) error {
	f.nodes[key] = value
	return f.fs.Set(key, scenario.Flow(value))
}

// Given reports whether a key was set.
func (f *PlanFlags) Given(key string) bool {
	g := f.fs.Lookup(key)
	return g != nil && g.Changed
}

// Plan reads the flags for a protocol. tick is the duration of a tick, by which it divides times with a unit.
func (f *PlanFlags) Plan(p parley.Protocol, naming parley.Naming, tick time.Duration) (run.Plan, error) {
	plan := run.Plan{Tick: tick}
	for _, key := range f.keys {
		g := f.fs.Lookup(key)
		if !g.Changed {
			continue
		}
		var err error
		if node, ok := f.nodes[key]; ok {
			err = scenario.Set(&plan, key, node, naming)
		} else {
			err = scenario.Parse(&plan, key, g.Value.String(), naming)
		}
		if err != nil {
			return plan, &parley.FlagError{Flag: key, Err: err}
		}
	}
	if err := f.suits(p, plan); err != nil {
		return plan, err
	}
	if p.Serves && !f.Given("requests") && !f.Given("workload") {
		plan.Workload.Broadcasts = run.Few
	}
	if p.Relies.FIFO && !f.Given("fifo") {
		plan.FIFO = true
	}
	return plan, nil
}

// suits refuses a plan with requests that the protocol cannot handle.
func (f *PlanFlags) suits(p parley.Protocol, plan run.Plan) error {
	if !p.Serves && plan.Workload.Broadcasts > 0 {
		return parley.FlagErrorf("workload", "%s has no broadcasts: omit it", p.Name)
	}
	for i, q := range plan.Requests {
		switch {
		case (q.Msg.Kind == parley.Carried || q.Msg.Kind == problem.CarryTo) && !p.Serves:
			return f.Entry("requests", i, fmt.Errorf("%s has no broadcasts: omit it", p.Name))
		case q.Msg.Kind == parley.Propose && p.Proposers == (parley.Set{}):
			return f.Entry("requests", i, fmt.Errorf("no process proposes a value to %s: omit propose", p.Name))
		case q.Msg.Kind == parley.Propose && !p.Proposers.Has(q.At):
			return f.Entry("requests", i, fmt.Errorf("this process proposes no value to %s: name another process", p.Name))
		case q.Msg.Kind == parley.Propose && q.When > 0 && p.Timing == parley.Synchronous && !p.OnDemand:
			return f.Entry("requests", i, errors.New("when: values are proposed before the first round: write 0, or omit it"))
		}
	}
	return nil
}

// Entry returns an error about one entry of a list, with the entry's line if a file has set it.
func (f *PlanFlags) Entry(key string, i int, err error) error {
	if list, ok := f.nodes[key].(*ast.SequenceNode); ok && i < len(list.Values) {
		err = &scenario.LineError{Line: list.Values[i].GetToken().Position.Line, Err: err}
	}
	return &parley.FlagError{Flag: key, Err: err}
}
