// Package scenario reads the plan of a run from YAML, and writes it as flags.
//
// # Decisions
//
// What befalls a run is data (internal/scenario.Plan). It is read from YAML or flags, draws from the
// seed what is left open, and is written back as flags. Motive: one command replays any run of a sweep,
// and a failing plan can be made smaller part by part. Cost: every fault of the simulator needs its
// words in three places: reading, writing and describing.
package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"parley"
	"parley/run"
	"parley/sim"
)

// Keys are the keys of a scenario that make the plan, in the order in which they
// are documented.
var Keys = []string{
	"requests", "workload", "delay", "fifo", "loss", "twice", "graph", "links", "partitions", "crashes", "pauses",
	"clocks", "suspicions", "detect", "random", "heal", "until", "steps", "promised",
}

// LineError is what is wrong with one line of the file.
type LineError struct {
	Line int
	Err  error
}

func (e *LineError) Error() string { return e.Err.Error() }

// Unwrap returns the error without the line.
func (e *LineError) Unwrap() error { return e.Err }

// Parse reads the value of one key from text: YAML, most often on one line.
func Parse(p *run.Plan, key, text string, naming parley.Naming) error {
	tree, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return fmt.Errorf("not YAML: %s", first)
	}
	if len(tree.Docs) != 1 || tree.Docs[0].Body == nil {
		return errors.New("nothing was given")
	}
	return Set(p, key, tree.Docs[0].Body, naming)
}

// Set reads the value of one key into the plan. naming
// reads the name of a process as the user writes it. An error is a [LineError].
func Set(p *run.Plan, key string, value ast.Node, naming parley.Naming) error {
	r := reader{naming, max(p.Tick, 1)}
	var err error
	switch key {
	case "requests":
		err = r.list(key, value, func(n ast.Node) error { return r.request(n, p) })
	case "workload":
		err = r.workload(value, &p.Workload)
	case "delay":
		p.Delay, err = r.delay(value)
	case "fifo":
		p.FIFO, err = r.yes(value)
	case "loss":
		p.Loss, err = r.chance(value)
	case "twice":
		p.Twice, err = r.chance(value)
	case "graph":
		p.Graph, err = r.graph(value)
	case "links":
		err = r.list(key, value, func(n ast.Node) error { return r.link(n, p) })
	case "partitions":
		err = r.list(key, value, func(n ast.Node) error { return r.partition(n, p) })
	case "crashes":
		err = r.list(key, value, func(n ast.Node) error { return r.crash(n, p) })
	case "pauses":
		err = r.list(key, value, func(n ast.Node) error { return r.pause(n, p) })
	case "clocks":
		err = r.list(key, value, func(n ast.Node) error { return r.clock(n, p) })
	case "suspicions":
		err = r.list(key, value, func(n ast.Node) error { return r.suspicion(n, p) })
	case "detect":
		p.Detect, err = r.time(value)
	case "random":
		err = r.random(value, &p.Random)
	case "heal":
		p.Heal, err = r.time(value)
	case "until":
		p.Until, err = r.time(value)
	case "promised":
		err = r.fields(value, map[string]func(ast.Node) error{
			"delay": into(&p.Promised.Delay, some(r.time)), "offset": into(&p.Promised.Offset, some(r.time)),
			"drift": into(&p.Promised.Drift, some(r.drift)),
		})
	case "steps":
		var n int
		n, err = r.count(value)
		p.Steps = uint64(n)
	default:
		err = fmt.Errorf("unknown key: allowed are %s", strings.Join(Keys, ", "))
	}
	return at(value, err)
}

// reader reads values.
type reader struct {
	naming parley.Naming
	lasts  time.Duration // a tick
}

// at places an error on the line of a node, unless it has one already.
func at(n ast.Node, err error) error {
	var placed *LineError
	if err == nil || errors.As(err, &placed) {
		return err
	}
	return &LineError{n.GetToken().Position.Line, err}
}

// fields goes through a mapping; each allowed key has a function that reads it, and
// those that are needed must be there.
func (r reader) fields(n ast.Node, allowed map[string]func(ast.Node) error, needed ...string) error {
	var pairs []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	default:
		return at(n, errors.New("\"key: value\" was expected"))
	}
	seen := make(map[string]bool)
	for _, pair := range pairs {
		key := pair.Key.GetToken().Value
		read, ok := allowed[key]
		if !ok {
			var names []string
			// order: sorted below
			for name := range allowed {
				names = append(names, name)
			}
			slices.Sort(names)
			return at(pair.Key, fmt.Errorf("unknown key %q: allowed are %s", key, strings.Join(names, ", ")))
		}
		if seen[key] {
			return at(pair.Key, fmt.Errorf("%s is given twice", key))
		}
		seen[key] = true
		if err := read(pair.Value); err != nil {
			return at(pair.Value, fmt.Errorf("%s: %w", key, err))
		}
	}
	for _, key := range needed {
		if !seen[key] {
			return at(n, fmt.Errorf("the key %s is missing", key))
		}
	}
	return nil
}

// list reads a list of anything.
func (r reader) list(key string, n ast.Node, each func(ast.Node) error) error {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		return at(n, fmt.Errorf("a list was expected, with a line \"- key: value\" for each of the %s", key))
	}
	for _, v := range seq.Values {
		if err := at(v, each(v)); err != nil {
			return err
		}
	}
	return nil
}

func (r reader) text(n ast.Node) (string, error) {
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.BoolNode, *ast.FloatNode:
		return n.GetToken().Value, nil
	}
	return "", at(n, errors.New("a plain value was expected"))
}

func (r reader) count(n ast.Node) (int, error) {
	text, err := r.text(n)
	if err != nil {
		return 0, err
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < 0 || v > mostCount {
		return 0, at(n, fmt.Errorf("%q: a whole number from 0 to %d was expected", text, mostCount))
	}
	return v, nil
}

// The most that there may be: a scenario may come from anybody. Times are less than
// 13 days, so that sums of a few of them are times too.
const (
	mostBroadcasts = 1_000_000
	mostFaults     = 10_000
	mostCount      = 1 << 30
	mostTime       = parley.Tick(1) << 50
	mostDrift      = 999_999 // parts in a million: a clock stands nearly still, or runs at twice the speed
)

// atMost reads a number with a limit.
func (r reader) atMost(most int) func(ast.Node) (int, error) {
	return func(n ast.Node) (int, error) {
		v, err := r.count(n)
		if err == nil && v > most {
			err = at(n, fmt.Errorf("%d: allowed are 0 to %d", v, most))
		}
		return v, err
	}
}

// drift reads how wrong a clock runs, in parts in a million.
func (r reader) drift(n ast.Node) (int64, error) {
	v, err := r.signed(n)
	if err == nil && (v > mostDrift || v < -mostDrift) {
		err = at(n, fmt.Errorf("%d parts in a million: allowed are %d to %d", v, -mostDrift, mostDrift))
	}
	return v, err
}

// signed reads a number that may be negative.
func (r reader) signed(n ast.Node) (int64, error) {
	text, err := r.text(n)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, at(n, fmt.Errorf("%q: a whole number was expected", text))
	}
	return v, nil
}

func (r reader) yes(n ast.Node) (bool, error) {
	text, err := r.text(n)
	if err == nil && text != "true" && text != "false" {
		err = at(n, fmt.Errorf("%q: allowed are true and false", text))
	}
	return text == "true", err
}

func (r reader) chance(n ast.Node) (float64, error) {
	text, err := r.text(n)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, at(n, fmt.Errorf("%q: a chance from 0 to 1 was expected", text))
	}
	return v, nil
}

// time reads ticks, or a duration with a unit.
func (r reader) time(n ast.Node) (parley.Tick, error) {
	text, err := r.text(n)
	if err != nil {
		return 0, err
	}
	d, err := r.tick(text)
	if err == nil && d < 0 {
		err = fmt.Errorf("%q: a time from 0 on was expected", text)
	}
	return d, at(n, err)
}

// some reads a time or a number that is not 0.
func some[T parley.Tick | int64 | int](read func(ast.Node) (T, error)) func(ast.Node) (T, error) {
	return func(n ast.Node) (T, error) {
		v, err := read(n)
		if err == nil && v < 1 {
			err = at(n, fmt.Errorf("%d: at least 1 was expected", v))
		}
		return v, err
	}
}

// tick reads a time that may be negative.
func (r reader) tick(text string) (parley.Tick, error) {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		var d time.Duration
		if d, err = time.ParseDuration(text); err != nil {
			return 0, fmt.Errorf("%q: ticks, as in 900, or a duration with its unit, as in 5ms, were expected", text)
		}
		v = int64(d / r.lasts)
	}
	if t := parley.Tick(v); t <= mostTime && t >= -mostTime {
		return t, nil
	}
	return 0, fmt.Errorf("%q: times of at most %d ticks, which are 13 days, were expected", text, mostTime)
}

// delay reads 1..900, or one time for all.
func (r reader) delay(n ast.Node) (sim.Delay, error) {
	text, err := r.text(n)
	if err != nil {
		return sim.Delay{}, err
	}
	least, most, spread := strings.Cut(text, "..")
	if !spread {
		most = least
	}
	var d sim.Delay
	if d.Least, err = r.tick(least); err == nil {
		d.Most, err = r.tick(most)
	}
	if err == nil && (d.Least < 1 || d.Most < d.Least) {
		err = fmt.Errorf("%q: LEAST..MOST was expected, as in 1..900, with at least 1", text)
	}
	return d, at(n, err)
}

func (r reader) process(n ast.Node) (parley.ID, error) {
	text, err := r.text(n)
	if err != nil {
		return 0, err
	}
	id, err := r.naming(text)
	return id, at(n, err)
}

// processes reads one process, or a list of them.
func (r reader) processes(n ast.Node) (parley.Set, error) {
	var s parley.Set
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		id, err := r.process(n)
		s.Add(id)
		return s, err
	}
	if len(seq.Values) == 0 {
		return s, at(n, errors.New("a process was expected, or a list of some"))
	}
	for _, v := range seq.Values {
		id, err := r.process(v)
		if err != nil {
			return s, err
		}
		if !s.Add(id) {
			return s, at(v, fmt.Errorf("process %s is named twice", v.GetToken().Value))
		}
	}
	return s, nil
}

// into makes a reading function that stores what it read.
func into[T any](to *T, read func(ast.Node) (T, error)) func(ast.Node) error {
	return func(n ast.Node) error {
		v, err := read(n)
		*to = v
		return err
	}
}

func (r reader) workload(n ast.Node, w *run.Workload) error {
	w.Broadcasts = run.Few
	return r.fields(n, map[string]func(ast.Node) error{
		"broadcasts": into(&w.Broadcasts, r.atMost(mostBroadcasts)), "from": into(&w.From, r.processes),
		"named": into(&w.Named, r.yes), "within": into(&w.Within, r.time),
	})
}

// graph reads the neighbours of each process: {P1: [P2, P3], P2: [P3]}. A link
// named once goes both ways.
func (r reader) graph(n ast.Node) ([]parley.Set, error) {
	graph := make([]parley.Set, parley.MaxProcesses)
	most := parley.ID(0)
	var pairs []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	default:
		return nil, at(n, errors.New("\"PROCESS: [NEIGHBOURS]\" was expected"))
	}
	for _, pair := range pairs {
		id, err := r.naming(pair.Key.GetToken().Value)
		if err != nil {
			return nil, at(pair.Key, err)
		}
		to, err := r.processes(pair.Value)
		if err != nil {
			return nil, err
		}
		if to.Has(id) {
			return nil, at(pair.Value, fmt.Errorf("process %s is its own neighbour", pair.Key.GetToken().Value))
		}
		most = max(most, id)
		for other := range to.All() {
			graph[id].Add(other)
			graph[other].Add(id)
			most = max(most, other)
		}
	}
	return graph[:most+1], nil
}
