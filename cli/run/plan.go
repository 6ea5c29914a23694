package run

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
	"requests": "what processes are asked, as in '[{at: 1, when: 100, broadcast: hi, to: [1, 2]}]'; in place of " +
		"broadcast propose: VALUE, command: WORDS with client and number, leave: true or setup: {active: [1, 2]}",
	"workload":   "broadcasts to draw, as in '{broadcasts: 10, from: [1, 2], named: true, within: 5000}'",
	"delay":      "how long messages take, as in 1..900 (`ticks`, or with units)",
	"fifo":       "links keep the order of messages: true or false",
	"loss":       "the `chance` that a link loses a message",
	"twice":      "the `chance` that a link delivers a message twice",
	"graph":      "who has a link to whom, as in '{1: [2, 3], 3: [4]}' (default: all)",
	"links":      "rules for links, as in '[{from: 1, to: [2, 3], since: 100, until: 900, loss: 1, delay: 5..9}]'",
	"partitions": "who is cut off from whom, as in '[{groups: [[1, 2], [3]], since: 100, until: 900}]'",
	"crashes":    "who crashes, as in '[{process: 2, when: 500, effects: 1, back: 900, disk: lost}]', or by its step: 3",
	"pauses":     "who stands still, as in '[{process: 2, since: 100, for: 900}]'",
	"clocks":     "whose clock is wrong, as in '[{process: 2, offset: 5ms, drift: 100}]' (parts in a million)",
	"suspicions": "false suspicions, as in '[{process: 1, suspects: 2, when: 500}]'",
	"detect":     "how many `ticks` after a crash the others are told of it, never falsely (default: never)",
	"random": "faults to draw from the seed, as in '{crashes: 1, restarts: 1, partitions: 1, suspicions: 2, " +
		"within: 5000, last: 900}'",
	"heal":  "the `time` from which the network is whole again",
	"until": "the `time` at which the run ends (default: when nothing is due any more)",
	"promised": "what the protocol may rely on, as in '{delay: 900, offset: 5ms, drift: 100}' " +
		"(default: what the other flags say)",
	"steps": "the `number` of steps after which the run is given up",
}

// Declare adds the flags of the given keys to fs. more is additional help for a key.
func (f *PlanFlags) Declare(fs *pflag.FlagSet, keys []string, more map[string]string) {
	f.fs, f.nodes = fs, make(map[string]ast.Node)
	for _, key := range keys {
		if fs.Lookup(key) != nil {
			continue // the protocol's own flag, such as the graph along which it sends
		}
		f.keys = append(f.keys, key)
		fs.String(key, "", planHelp[key]+more[key])
	}
}

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
		return parley.FlagErrorf("workload", "%s broadcasts nothing", p.Name)
	}
	for i, q := range plan.Requests {
		switch {
		case (q.Msg.Kind == parley.Carried || q.Msg.Kind == problem.CarryTo) && !p.Serves:
			return f.entry("requests", i, fmt.Errorf("%s broadcasts nothing", p.Name))
		case q.Msg.Kind == parley.Propose && p.Proposers == (parley.Set{}):
			return f.entry("requests", i, fmt.Errorf("nobody proposes anything to %s", p.Name))
		case q.Msg.Kind == parley.Propose && !p.Proposers.Has(q.At):
			return f.entry("requests", i, fmt.Errorf("this process proposes nothing to %s", p.Name))
		case q.Msg.Kind == parley.Propose && q.When > 0 && p.Timing == parley.Synchronous && !p.OnDemand:
			return f.entry("requests", i, errors.New("when: before the first round, at time 0, or never"))
		}
	}
	return nil
}

// entry returns an error about one entry of a list, with the entry's line if a file has set it.
func (f *PlanFlags) entry(key string, i int, err error) error {
	if list, ok := f.nodes[key].(*ast.SequenceNode); ok && i < len(list.Values) {
		err = &scenario.LineError{Line: list.Values[i].GetToken().Position.Line, Err: err}
	}
	return &parley.FlagError{Flag: key, Err: err}
}
