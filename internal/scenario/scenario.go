// Package scenario reads the plan of a run from a scenario file (YAML), and writes it as flags. A plan lists the
// faults and other events of a run.
//
// # Decisions
//
// The events of a run are data ([run.Plan]), which this package reads from YAML or from flags. The seed determines
// everything that the plan does not specify. The package writes the complete plan as flags. Motive: one command
// repeats any run of a sweep, and a failing plan can be shrunk part by part. Cost: the code describes every fault of
// the simulator twice: in a table of this package, and in run.Plan.Describe.
package scenario

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"parley"
	"parley/internal/nearest"
	"parley/run"
)

// Keys are the scenario keys that make the plan, in the order in which they are written.
var Keys = func() (keys []string) {
	for _, f := range fieldsOf(new(run.Plan)) {
		keys = append(keys, f.key)
	}
	return keys
}()

// fieldsOf returns the keys of a plan, which read and write their values.
func fieldsOf(p *run.Plan) []field {
	return []field{
		value("delay", &p.Delay, delay), value("fifo", &p.FIFO, yes), value("loss", &p.Loss, chance),
		value("twice", &p.Twice, chance), value("graph", &p.Graph, graph), list("requests", &p.Requests, request),
		readOnly("workload", &p.Workload, reader.workload), list("links", &p.Links, link),
		readOnly("partitions", &p.Links, reader.partitions), list("crashes", &p.Crashes, crash),
		list("pauses", &p.Pauses, pause), list("clocks", &p.Clocks, clock),
		list("suspicions", &p.Suspicions, suspicion), value("detect", &p.Detect, moment),
		readOnly("random", &p.Random, reader.random), value("heal", &p.Heal, moment), value("until", &p.Until, moment),
		value("steps", &p.Steps, steps), mapping("promised", value("delay", &p.Promised.Delay, period),
			value("offset", &p.Promised.Offset, period), value("drift", &p.Promised.Drift, gain)),
	}
}

// LineError is an error in one line of the file.
type LineError struct {
	Line int
	Err  error
}

func (e *LineError) Error() string { return e.Err.Error() }

// Unwrap returns the error without the line.
func (e *LineError) Unwrap() error { return e.Err }

// Parse reads the value of one key from text, which is YAML and usually one line.
func Parse(p *run.Plan, key, text string, naming parley.Naming) error {
	n, err := parse(key, text)
	if err != nil {
		return err
	}
	return Set(p, key, n, naming)
}

// parse reads the text of a flag as YAML.
func parse(key, text string) (ast.Node, error) {
	tree, err := YAML([]byte(text))
	switch {
	case errors.Is(err, ErrTooDeep):
		return nil, err
	case err != nil:
		if _, _, twice := YAMLError(err); twice != "" {
			return nil, fmt.Errorf("the key %s is given twice: keep one", twice)
		}
		return nil, fmt.Errorf("%.40q is not YAML: write %s", text, cmp.Or(examples[key], "a plain value"))
	case len(tree.Docs) != 1 || tree.Docs[0].Body == nil:
		return nil, fmt.Errorf("it is empty: write %s", cmp.Or(examples[key], "a value"))
	}
	return tree.Docs[0].Body, nil
}

// maxDepth is how many brackets may be open in YAML. No key needs more than 4.
const maxDepth = 100

// ErrTooDeep is the error of YAML with too many open brackets, for which the parser would take minutes.
var ErrTooDeep = fmt.Errorf("more than %d brackets are open: close them", maxDepth)

// YAML parses a file or a value. It skips the byte order mark that some editors write.
func YAML(b []byte) (*ast.File, error) {
	open := 0
	for _, c := range b {
		switch c {
		case '[', '{':
			open++
		case ']', '}':
			open = max(open-1, 0)
		}
		if open > maxDepth {
			return nil, ErrTooDeep
		}
	}
	return parser.ParseBytes(bytes.TrimPrefix(b, []byte("\ufeff")), 0)
}

// YAMLError returns the place of an error of the YAML parser, which begins with [LINE:COLUMN], and the key
// that is given
// twice if that is the error.
func YAMLError(err error) (line, column int, twice string) {
	if n, _ := fmt.Sscanf(err.Error(), "[%d:%d] mapping key %q", &line, &column, &twice); n < 2 {
		return 1, 1, ""
	}
	return line, column, twice
}

// examples are values of the keys that take lists and mappings, quoted for a shell.
var examples = map[string]string{
	"requests":         "'[{at: 1, when: 100, broadcast: hello}]'",
	"workload":         "'{broadcasts: 10, within: 5000}'",
	"graph":            "'{1: [2, 3], 3: [4]}'",
	"links":            "'[{from: 1, to: [2, 3], loss: 1}]'",
	"partitions":       "'[{groups: [[1, 2], [3]], since: 100, until: 900}]'",
	"groups":           "'[[1, 2], [3]]'",
	"crashes":          "'[{process: 2, when: 1000}]'",
	"explored crashes": "'[{process: 2}]'",
	"pauses":           "'[{process: 2, since: 100, for: 900}]'",
	"clocks":           "'[{process: 2, offset: 5ms, drift: 100}]'",
	"suspicions":       "'[{process: 1, suspects: 2, when: 500}]'",
	"random":           "'{crashes: 1, within: 5000}'",
	"promised":         "'{delay: 900}'",
}

// ParseCrashing reads the crashes of an exploration, which have no time: [{process: P2}, {process: P3}].
func ParseCrashing(text string, naming parley.Naming) (at []parley.ID, err error) {
	const key = "explored crashes"
	n, err := parse(key, text)
	if err != nil {
		return nil, err
	}
	err = list(key, &at, func(id *parley.ID, _ []parley.ID) entry {
		return entry{fields: []field{value("process", id, process)}, needed: []string{"process"}}
	}).read(reader{naming: naming}, n)
	return at, err
}

// Set reads the value of one key into the plan. naming reads the user's name of a process. An error is a [LineError].
func Set(p *run.Plan, key string, value ast.Node, naming parley.Naming) error {
	for _, f := range fieldsOf(p) {
		if f.key == key {
			return at(value, f.read(reader{naming, max(p.Tick, 1)}, value))
		}
	}
	return at(value, fmt.Errorf("unknown key %q: %s", key, nearest.Names(key, Keys)))
}

// Flags returns a drawn plan as flags of a protocol, KEY=VALUE. Reading them yields the same plan: a flag whose
// absence would mean something else is written with an empty value.
func Flags(p run.Plan, proto parley.Protocol, name func(parley.ID) string) (flags []string) {
	for _, f := range fieldsOf(&p) {
		text := f.write(name)
		switch {
		case text != "":
		case f.key == "fifo" && proto.Relies.FIFO:
			text = "false"
		case f.key == "requests" && proto.Serves:
			text = "[]"
		default:
			continue
		}
		flags = append(flags, f.key+"="+text)
	}
	return flags
}
