package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"parley"
	"parley/internal/nearest"
	"parley/sim"
)

// reader reads values.
type reader struct {
	naming parley.Naming
	lasts  time.Duration // the duration of a tick
}

// The kinds of values. A zero number, time, chance or set is omitted when written.
var (
	text      = kind[string]{reader.text, func(_ names, s string) string { return s }}
	whole     = numeric(count)
	steps     = numeric(countOfSteps)
	moment    = numeric(timeFromZero)
	period    = numeric(some(timeFromZero))
	offset    = numeric(reader.ticks)
	drift     = numeric(rate)
	gain      = numeric(some(rate))
	chance    = numeric(probability)
	yes       = kind[bool]{scalar(truth), func(_ names, v bool) string { return map[bool]string{true: "true"}[v] }}
	process   = kind[parley.ID]{scalar(reader.process), func(n names, id parley.ID) string { return n(id) }}
	processes = kind[parley.Set]{reader.processes, set}
	graph     = kind[[]parley.Set]{reader.graph, edges}
	delay     = kind[sim.Delay]{scalar(reader.delay), bounds}
)

// Limits, because a scenario may come from an untrusted source. Times are below 13 days, so that sums of a few of
// them do not overflow.
const (
	mostBroadcasts = 1_000_000
	mostFaults     = 10_000
	mostCount      = 1 << 30
	mostTime       = parley.Tick(1) << 50
	mostDrift      = 999_999 // parts per million: a clock almost stops, or runs at twice the speed
)

// fields reads a mapping with some of the allowed keys and all needed ones.
func (r reader) fields(n ast.Node, allowed []field, needed ...string) error {
	pairs, ok := Pairs(n)
	if !ok {
		return at(n, fmt.Errorf("%s is not a mapping: write \"key: value\"", seen(n)))
	}
	seen := make(map[string]bool)
	for _, pair := range pairs {
		key := pair.Key.GetToken().Value
		i := slices.IndexFunc(allowed, func(f field) bool { return f.key == key })
		if i < 0 {
			var keys []string
			for _, f := range allowed {
				keys = append(keys, f.key)
			}
			slices.Sort(keys)
			return at(pair.Key, fmt.Errorf("unknown key %q: %s", key, nearest.Names(key, keys)))
		}
		if seen[key] {
			return at(pair.Key, fmt.Errorf("the key %s is given twice: keep one", key))
		}
		seen[key] = true
		if err := allowed[i].read(r, pair.Value); err != nil {
			return at(pair.Value, fmt.Errorf("%s: %w", key, err))
		}
	}
	for _, key := range needed {
		if !seen[key] {
			return at(n, fmt.Errorf("the key %s is missing: add it", key))
		}
	}
	return nil
}

// list reads a list.
func (r reader) list(key string, n ast.Node, each func(ast.Node) error) error {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		return at(n, notAList(key, n))
	}
	for _, v := range seq.Values {
		if err := at(v, each(v)); err != nil {
			return err
		}
	}
	return nil
}

// notAList is the error of a value that should be a list. A number is taken for how many are meant, which random says.
func notAList(key string, n ast.Node) error {
	hint := ""
	if _, number := n.(*ast.IntegerNode); number && slices.Contains(drawn, key) {
		hint = fmt.Sprintf("; for %s at random use --random '{%s: %s}'", key, key, n.GetToken().Value)
	}
	return fmt.Errorf("%s is not a list: write %s%s", seen(n), examples[key], hint)
}

// seen names a value in an error.
func seen(n ast.Node) string {
	switch _, mapping := Pairs(n); {
	case mapping:
		return "a mapping"
	case n.Type() == ast.SequenceType:
		return "a list"
	case n.Type() == ast.NullType:
		return "an empty value"
	}
	return fmt.Sprintf("%.40q", n.GetToken().Value)
}

// drawn are the keys of lists whose entries may be drawn from the seed: keys of random.
var drawn = []string{"crashes", "partitions", "pauses", "suspicions"}

func (r reader) text(n ast.Node) (string, error) {
	switch n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.BoolNode, *ast.FloatNode:
		return n.GetToken().Value, nil
	}
	return "", at(n, fmt.Errorf("%s is not allowed here: write one plain value", seen(n)))
}

// scalar returns a function that reads a plain value.
func scalar[T any](parse func(reader, string) (T, error)) func(reader, ast.Node) (T, error) {
	return func(r reader, n ast.Node) (v T, err error) {
		text, err := r.text(n)
		if err == nil {
			v, err = parse(r, text)
		}
		return v, at(n, err)
	}
}

// numeric returns a kind of numbers that omits 0.
func numeric[T ~int | ~int64 | ~uint64 | ~float64](parse func(reader, string) (T, error)) kind[T] {
	return kind[T]{scalar(parse), func(_ names, v T) string {
		if v == 0 {
			return ""
		}
		return fmt.Sprint(v)
	}}
}

func count(_ reader, text string) (int, error) {
	v, err := strconv.Atoi(text)
	if err != nil || v < 0 || v > mostCount {
		return 0, fmt.Errorf("%q: allowed are whole numbers from 0 to %d", text, mostCount)
	}
	return v, nil
}

func countOfSteps(r reader, text string) (uint64, error) {
	v, err := count(r, text)
	return uint64(v), err
}

// atMost returns a kind of counts with a limit.
func atMost(most int) kind[int] {
	return numeric(func(r reader, text string) (int, error) {
		v, err := count(r, text)
		if err == nil && v > most {
			err = fmt.Errorf("%d is too large: allowed are 0 to %d", v, most)
		}
		return v, err
	})
}

// some returns a parser of times or numbers above 0.
func some[T parley.Tick | int64 | int](parse func(reader, string) (T, error)) func(reader, string) (T, error) {
	return func(r reader, text string) (T, error) {
		v, err := parse(r, text)
		if err == nil && v < 1 {
			err = fmt.Errorf("%d is too small: at least 1 is allowed", v)
		}
		return v, err
	}
}

// rate parses the drift of a clock, in parts per million.
func rate(_ reader, text string) (int64, error) {
	v, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a whole number: write parts per million, as in 100", text)
	case v > mostDrift || v < -mostDrift:
		return 0, fmt.Errorf("%d parts per million: allowed are %d to %d", v, -mostDrift, mostDrift)
	}
	return v, nil
}

func truth(_ reader, text string) (bool, error) {
	if text != "true" && text != "false" {
		return false, fmt.Errorf("%q: allowed are true and false", text)
	}
	return text == "true", nil
}

func probability(_ reader, text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, fmt.Errorf("%q is not a probability: allowed are 0 to 1, as in 0.25", text)
	}
	return v, nil
}

// ticks parses a time that may be negative: a number of ticks, or a duration with a unit.
func (r reader) ticks(text string) (parley.Tick, error) {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		var d time.Duration
		if d, err = time.ParseDuration(text); err != nil {
			return 0, fmt.Errorf("%q is not a time: write ticks, as in 900, or a duration with its unit, as in 5ms", text)
		}
		v = int64(d / r.lasts)
	}
	if t := parley.Tick(v); t <= mostTime && t >= -mostTime {
		return t, nil
	}
	return 0, fmt.Errorf("%q is too long: allowed are %d ticks at most, which are 13 days", text, mostTime)
}

func timeFromZero(r reader, text string) (parley.Tick, error) {
	t, err := r.ticks(text)
	if err == nil && t < 0 {
		err = fmt.Errorf("%q is negative: allowed are times from 0", text)
	}
	return t, err
}

// delay parses a range such as 1..900, or one time.
func (r reader) delay(text string) (d sim.Delay, err error) {
	least, most, spread := strings.Cut(text, "..")
	if !spread {
		most = least
	}
	if d.Least, err = r.ticks(least); err == nil {
		d.Most, err = r.ticks(most)
	}
	if err == nil && (d.Least < 1 || d.Most < d.Least) {
		err = fmt.Errorf("%q is not a range of delays: write LEAST..MOST with LEAST at least 1, as in 1..900", text)
	}
	return d, err
}

// bounds writes a delay.
func bounds(_ names, d sim.Delay) string {
	if d == (sim.Delay{}) {
		return ""
	}
	return fmt.Sprintf("%d..%d", d.Least, d.Most)
}

func (r reader) process(text string) (parley.ID, error) { return r.naming(text) }

// processes reads one process, or a list of them.
func (r reader) processes(n ast.Node) (s parley.Set, err error) {
	all := []ast.Node{n}
	if seq, ok := n.(*ast.SequenceNode); ok {
		all = seq.Values
	}
	if len(all) == 0 {
		return s, at(n, errors.New("the list is empty: name at least one process"))
	}
	for _, v := range all {
		id, err := process.read(r, v)
		if err != nil {
			return s, err
		}
		if !s.Add(id) {
			return s, at(v, fmt.Errorf("process %s is named twice: name it once", v.GetToken().Value))
		}
	}
	return s, nil
}

// set writes a set, or "" if it is empty.
func set(n names, s parley.Set) string {
	var parts []string
	for id := range s.All() {
		parts = append(parts, n(id))
	}
	if len(parts) == 0 {
		return ""
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// graph reads the neighbors of each process: {P1: [P2, P3], P2: [P3]}. A link named once goes both ways.
func (r reader) graph(n ast.Node) ([]parley.Set, error) {
	pairs, ok := Pairs(n)
	if !ok {
		return nil, at(n, fmt.Errorf("%s is not a graph: write %s", seen(n), examples["graph"]))
	}
	graph, most := make([]parley.Set, parley.MaxProcesses), parley.ID(0)
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
			return nil, at(pair.Value, fmt.Errorf("process %s is its own neighbor", pair.Key.GetToken().Value))
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

// edges writes the neighbors of each process. A process without any is omitted; a graph without edges is not.
func edges(n names, g []parley.Set) string {
	var parts []string
	for id, to := range g {
		if to != (parley.Set{}) {
			parts = append(parts, n(parley.ID(id))+": "+set(n, to))
		}
	}
	if len(g) == 0 {
		return ""
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
