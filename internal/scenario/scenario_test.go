package scenario_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"parley"
	"parley/broadcast/diffusion"
	"parley/broadcast/problem"
	"parley/internal/scenario"
	"parley/replica/rsm"
	"parley/run"
	"parley/sim"
)

// naming reads P1 to P5, or 1 to 5.
func naming(text string) (parley.ID, error) {
	digit := strings.TrimPrefix(text, "P")
	if len(digit) != 1 || digit[0] < '1' || digit[0] > '5' {
		return 0, fmt.Errorf("%q is no process", text)
	}
	return parley.ID(digit[0] - '1'), nil
}

func name(id parley.ID) string { return fmt.Sprint(int(id) + 1) }

// parse reads keys and values, which alternate.
func parse(t *testing.T, pairs ...string) run.Plan {
	t.Helper()
	var p run.Plan
	for i := 0; i < len(pairs); i += 2 {
		if err := scenario.Parse(&p, pairs[i], pairs[i+1], naming); err != nil {
			t.Fatalf("%s: %s: %v", pairs[i], pairs[i+1], err)
		}
	}
	return p
}

// everything is a plan that uses each key.
var everything = []string{
	"requests", `[{at: P1, when: 100, broadcast: "hello, all"}, {at: 2, broadcast: m, to: [1, 3]}, {at: 3, propose: "1"},
	  {at: 4, when: 5, command: deposit 150, client: 7, number: 2}, {at: 4, leave: true},
	  {at: 5, setup: {active: [1, 2], wrong: 1, checked: true}}]`,
	"delay", "5..90", "fifo", "true", "loss", "0.25", "twice", "0.125", "graph", "{1: [2, 3], 3: [4]}",
	"links", "[{from: 1, to: [2, 3], since: 100, until: 900, loss: 0.5, delay: 7..9, twice: 1}, {to: 4, delay: 3}]",
	"partitions", "[{groups: [[1, 2], [3]], since: 10, until: 20}]",
	"crashes", "[{process: 2, when: 500, effects: 1, back: 900, disk: lost}, {process: 3, step: 4}]",
	"pauses", "[{process: 2, since: 100, for: 900}]",
	"clocks", "[{process: 2, offset: -5ms, drift: -100}]",
	"suspicions", "[{process: 1, suspects: 2, when: 500}]",
	"detect", "1000", "heal", "5us", "until", "1ms", "steps", "70", "promised", "{delay: 90, offset: 4, drift: 3}",
}

// Parsing yields what was written.
func TestParse(t *testing.T) {
	p := parse(t, everything...)
	of := parley.SetOf
	if len(p.Requests) != 6 || p.Requests[0].At != 0 || p.Requests[0].When != 100 ||
		string(p.Requests[0].Msg.Body) != "hello, all" || p.Requests[0].Msg.Kind != parley.Carried {
		t.Errorf("%+v", p.Requests)
	}
	if to, body, err := problem.Decode(p.Requests[1].Msg, 5); err != nil || to != of(0, 2) || string(body) != "m" {
		t.Errorf("%v %s %v", to, body, err)
	}
	if m := p.Requests[3].Msg; m.Value != 7 || m.Seq != 2 || string(m.Body) != "deposit 150" {
		t.Errorf("%+v", m)
	}
	// TestDescribe checks the rest in words.
	if !slices.Equal(p.Graph, []parley.Set{of(1, 2), of(0), of(0, 3), of(2)}) || p.Delay != (sim.Delay{Least: 5, Most: 90}) ||
		!p.FIFO || p.Until != 1_000_000 || p.Steps != 70 || p.Promised != (parley.ModelAssumptions{Delay: 90, Offset: 4, Drift: 3}) {
		t.Errorf("%+v", p)
	}
}

// A drawn plan that is written as flags and read again is the same plan: with every key, and drawn from many seeds.
func TestRoundTrip(t *testing.T) {
	again := func(p run.Plan) {
		t.Helper()
		var read run.Plan
		for _, flag := range scenario.Flags(p, parley.Protocol{}, name) {
			key, value, _ := strings.Cut(flag, "=")
			if err := scenario.Parse(&read, key, value, naming); err != nil {
				t.Fatalf("%s: %v", flag, err)
			}
		}
		for len(p.Graph) > len(read.Graph) && p.Graph[len(p.Graph)-1] == (parley.Set{}) {
			p.Graph = p.Graph[:len(p.Graph)-1]
		}
		for i := range p.Requests { // no body equals an empty one
			if len(p.Requests[i].Msg.Body) == 0 {
				p.Requests[i].Msg.Body = nil
			}
		}
		if !reflect.DeepEqual(p, read) {
			t.Fatalf("%q\nwas  %+v\nread %+v", scenario.Flags(p, parley.Protocol{}, name), p, read)
		}
	}
	again(parse(t, everything...))
	again(parse(t, "graph", "{}")) // no process has a link
	again(parse(t, "requests", `[{at: 1, broadcast: "a: b, {c} # \"d\"  - 'e'"}, {at: 1, broadcast: "-3"}, {at: 1, broadcast: "yes"}]`))
	open := parse(t, "workload", "{broadcasts: 5, named: true, within: 900}", "random",
		"{crashes: 1, restarts: 1, lost-disks: 1, partitions: 2, one-way: 1, slow: 1, lossy: 1, pauses: 2, suspicions: 3, "+
			"drift: 50, within: 5000, last: 900}")
	proto := diffusion.New(diffusion.Config{N: 5})
	for seed := range uint64(60) {
		p := open.Draw(proto, seed)
		for i := range p.Clocks {
			if p.Clocks[i].Drift == 0 { // it means nothing, and is written as a process alone
				p.Clocks[i] = sim.Clock{At: p.Clocks[i].At}
			}
		}
		again(p)
	}
}

// A request that could not be read again is not written.
func TestFlagsOfUnreadable(t *testing.T) {
	for _, m := range []parley.Msg{{Kind: parley.Decide}, {Kind: problem.CarryTo}, {Kind: rsm.Configure}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a request of kind %d is written", m.Kind)
				}
			}()
			scenario.Flags(run.Plan{Requests: []sim.Request{{Msg: m}}}, parley.Protocol{}, name)
		}()
	}
}

// The same seed draws the same, other seeds something else, and nothing is left open. All requested faults are drawn,
// but none for a spared process.
func TestDraw(t *testing.T) {
	open := parse(t, "workload", "{broadcasts: 4, from: [1, 2], within: 500}", "random",
		"{crashes: 1, restarts: 1, partitions: 1, pauses: 1, suspicions: 2, one-way: 1, slow: 1, lossy: 1, drift: 10, "+
			"within: 900, last: 50, spared: [1, 5]}")
	proto := diffusion.New(diffusion.Config{N: 5})
	seen := make(map[string]bool)
	for seed := range uint64(50) {
		p, q := open.Draw(proto, seed), open.Draw(proto, seed)
		if !reflect.DeepEqual(p, q) {
			t.Fatalf("seed %d draws\n%+v\nand\n%+v", seed, p, q)
		}
		seen[fmt.Sprint(scenario.Flags(p, parley.Protocol{}, name))] = true
		if p.Random != (run.Random{}) || p.Workload != (run.Workload{}) {
			t.Errorf("seed %d leaves %+v and %+v to draw", seed, p.Random, p.Workload)
		}
		var payloads []string
		for i, r := range p.Requests {
			if r.At > 1 || r.When < 1 || r.When > 500 || i > 0 && r.When < p.Requests[i-1].When {
				t.Errorf("seed %d: request %+v", seed, r)
			}
			payloads = append(payloads, string(r.Msg.Body))
		}
		if !slices.Equal(payloads, []string{"m1", "m2", "m3", "m4"}) {
			t.Errorf("seed %d: %v", seed, payloads)
		}
		if len(p.Crashes) != 2 || len(p.Links) != 5 || len(p.Pauses) != 1 || len(p.Clocks) != 5 || len(p.Suspicions) != 2 ||
			p.Crashes[0].At == p.Crashes[1].At || p.Crashes[0].Back != 0 || p.Crashes[1].Back == 0 || p.Crashes[1].LostDisk {
			t.Errorf("seed %d: %+v", seed, p)
		}
		for _, c := range p.Crashes {
			if c.At == 0 || c.At == 4 || c.When < 1 || c.When > 900 || c.Back > 50 {
				t.Errorf("seed %d: %+v; 1 and 5 are spared", seed, c)
			}
		}
		for _, s := range p.Suspicions {
			if s.At == s.Of {
				t.Errorf("seed %d: %d suspects itself", seed, s.At)
			}
		}
	}
	if len(seen) < 45 {
		t.Errorf("%d plans of 50 seeds", len(seen))
	}
}

// If a plan says neither when nor how many, a few are drawn, with times.
func TestDrawWithoutTimes(t *testing.T) {
	proto := diffusion.New(diffusion.Config{N: 3})
	open := parse(t, "random", "{crashes: 1, pauses: 2}", "workload", "{named: true}")
	late := 0
	for seed := range uint64(40) {
		p := open.Draw(proto, seed)
		if len(p.Requests) != run.Few || len(p.Crashes) != 1 || len(p.Pauses) != 2 {
			t.Fatalf("seed %d: %+v", seed, p)
		}
		if p.Crashes[0].When > 1000 && p.Requests[run.Few-1].When > 1000 && p.Pauses[0].For > 1 {
			late++
		}
	}
	if late < 20 {
		t.Errorf("%d of 40 runs have a late fault", late)
	}
	open.Random.Spared = parley.Everyone(3)
	for _, calm := range []run.Plan{open, {}} {
		if p := calm.Draw(proto, 1); p.Faults() != 0 {
			t.Errorf("%+v: got %+v, want no faults", calm, p)
		}
	}
}

// A default that the protocol would get for an omitted flag is written as empty.
func TestFlagsOfNothing(t *testing.T) {
	proto := diffusion.New(diffusion.Config{N: 3})
	if flags := scenario.Flags(run.Plan{FIFO: true}, proto, name); !slices.Equal(flags, []string{"fifo=true", "requests=[]"}) {
		t.Errorf("%q", flags)
	}
	proto.Relies.FIFO = true
	if flags := scenario.Flags(run.Plan{}, proto, name); !slices.Equal(flags, []string{"fifo=false", "requests=[]"}) {
		t.Errorf("%q", flags)
	}
}

// An error names its line and says what is allowed.
func TestErrors(t *testing.T) {
	for _, test := range []struct {
		key, value string
		line       int
		says       string
	}{
		{"lunch", "noon", 1, `unknown key "lunch": allowed are delay, fifo, loss`},
		{"delay", "9..1", 1, "write LEAST..MOST with LEAST at least 1, as in 1..900"},
		{"delay", "soon", 1, "write ticks, as in 900, or a duration with its unit"},
		{"loss", "2", 1, "is not a probability: allowed are 0 to 1"},
		{"fifo", "maybe", 1, "allowed are true and false"},
		{"until", "-4", 1, `"-4" is negative: allowed are times from 0`},
		{"steps", "many", 1, `"many": allowed are whole numbers from 0 to 1073741824`},
		{"graph", "[1]", 1, "a list is not a graph: write '{1: [2, 3], 3: [4]}'"},
		{"graph", "\n1: [2]\n2: [9]", 3, `"9" is no process`},
		{"requests", "hello", 1, `"hello" is not a list: write '[{at: 1, when: 100, broadcast: hello}]'`},
		{"requests", "\n- {at: 1, broadcast: a}\n- {at: 1}", 3, "exactly one of broadcast, propose, command, leave, and setup"},
		{"requests", "[{at: 1, broadcast: a, propose: b}]", 1, "one of broadcast, propose"},
		{"requests", "[{at: 1, propose: a, to: [2]}]", 1, "only a broadcast has receivers, not a propose"},
		{"requests", "[{at: 1, command: a}]", 1, "a command has one, from 1"},
		{"requests", "[{at: 1, broadcast: a, client: 3}]", 1, "only a command has client and number, not a broadcast"},
		{"requests", "[{at: 1, leave: false}]", 1, "write true, or omit leave"},
		{"requests", "[{at: 1, setup: {active: [1], wrong: 1}}]", 1, "more must be active than may be wrong"},
		{"requests", "[{at: 6, broadcast: a}]", 1, `at: "6" is no process`},
		{"requests", "[{at: 1, broadcast: a, at: 2}]", 1, "at"},
		{"requests", "[{at: 1, brodcast: a}]", 1, `unknown key "brodcast": did you mean broadcast?`},
		{"links", "\n- from: 1\n  to: 2\n  until: soon", 4, "until: "},
		{"links", "[{since: 5, until: 5}]", 1, "until is 5: allowed are times after since, which is 5"},
		{"partitions", "[{groups: [[1, 2]]}]", 1, "a partition has at least two groups"},
		{"partitions", "[{groups: [[1, 1], [2]]}]", 1, "process 1 is named twice"},
		{"crashes", "3", 1, `"3" is not a list: write '[{process: 2, when: 1000}]'; for crashes at random use --random '{crashes: 3}'`},
		{"crashes", "{process: 1}", 1, "a mapping is not a list: write '[{process: 2, when: 1000}]'"},
		{"links", "1", 1, `"1" is not a list: write '[{from: 1, to: [2, 3], loss: 1}]'`},
		{"crashes", "[{process: 1}]", 1, "a crash has either step, from 1, or when, from 0"},
		{"crashes", "[{process: 1, step: 1, when: 1}]", 1, "either step, from 1, or when"},
		{"crashes", "[{process: 1, step: 1, disk: gone}]", 1, "allowed are kept and lost"},
		{"clocks", "[{process: 1, drift: fast}]", 1, `"fast" is not a whole number: write parts per million`},
		{"random", "{crashes: few}", 1, "crashes: \"few\""},
		{"workload", "{broadcasts: -1}", 1, "allowed are whole numbers from 0 to"},
		// A required key is missing. No default process is assumed.
		{"requests", "[{broadcast: a}]", 1, "the key at is missing"},
		{"crashes", "\n- {process: 1, when: 3}\n- {when: 3}", 3, "the key process is missing"},
		{"pauses", "[{since: 1, for: 2}]", 1, "the key process is missing"},
		{"pauses", "[{process: 1, since: 1}]", 1, "the key for is missing"},
		{"clocks", "[{drift: 2}]", 1, "the key process is missing"},
		{"suspicions", "[{process: 1}]", 1, "the key suspects is missing"},
		{"requests", "[{at: 1, setup: {wrong: 0}}]", 1, "setup: the key active is missing"},
		// Values that the simulator does not accept.
		{"pauses", "[{process: 1, for: 0}]", 1, "for: 0 is too small: at least 1"},
		{"clocks", "[{process: 1, drift: -1000000}]", 1, "parts per million: allowed are -999999 to 999999"},
		{"clocks", "[{process: 1, drift: 1}, {process: 1, drift: 2}]", 1, "the clock of this process is given twice"},
		{"random", "{drift: 1000000}", 1, "1000000 is too large: allowed are 0 to 999999"},
		{"until", "400h", 1, "is too long: allowed are 1125899906842624 ticks at most, which are 13 days"},
		{"delay", "1..9223372036854775807", 1, "is too long: allowed are"},
		{"suspicions", "[{process: 1, suspects: 1, when: 5}]", 1, "a process cannot suspect itself"},
		{"crashes", "[{process: 1, when: 5, back: 0}]", 1, "back: 0 is too small: at least 1"},
		{"crashes", "[{process: 1, when: 5, disk: lost}]", 1, "disk: the process does not restart: add back"},
		{"graph", "{1: [1, 2]}", 1, "process 1 is its own neighbor"},
		{"links", "[{from: [], loss: 1}]", 1, "from: the list is empty: name at least one process"},
		{"requests", "[{at: 1, broadcast: a, to: []}]", 1, "to: the list is empty: name at least one process"},
		{"partitions", "[{groups: [[1, 2], [2, 3]]}]", 1, "groups: a process is in two groups"},
		{"partitions", "[{groups: [[1, 2], []]}]", 1, "groups: the list is empty"},
		{"partitions", "[{groups: [[1], [2]], since: 9, until: 3}]", 1, "until is 3: allowed are times after since, which is 9"},
		{"promised", "{delay: 0}", 1, "delay: 0 is too small: at least 1"},
		{"promised", "{drift: -5}", 1, "drift: -5 is too small: at least 1"},
		{"promised", "{peace: 1}", 1, `unknown key "peace": allowed are delay, drift, offset`},
	} {
		var p run.Plan
		err := scenario.Parse(&p, test.key, test.value, naming)
		var placed *scenario.LineError
		switch {
		case err == nil:
			t.Errorf("%s: %s is taken", test.key, test.value)
		case !strings.Contains(err.Error(), test.says):
			t.Errorf("%s: %s: %v; want %q", test.key, test.value, err, test.says)
		case errors.As(err, &placed) && placed.Line != test.line:
			t.Errorf("%s: %s: line %d and not %d", test.key, test.value, placed.Line, test.line)
		}
	}
	var p run.Plan
	for _, bad := range []string{"", "{", "a: [", "---\n1\n---\n2"} {
		if scenario.Parse(&p, "links", bad, naming) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// The crashes of an exploration name processes, and nothing else.
func TestParseCrashing(t *testing.T) {
	at, err := scenario.ParseCrashing("[{process: 2}, {process: P3}]", naming)
	if err != nil || !slices.Equal(at, []parley.ID{1, 2}) {
		t.Errorf("got %v, %v, want processes 1 and 2", at, err)
	}
	for value, want := range map[string]string{
		"[{process: 2, when: 5}]": `unknown key "when": allowed are process`, "[{}]": "the key process is missing",
		"{process: 2}": "a mapping is not a list: write '[{process: 2}]'", "[{process: 9}]": `"9" is no process`, "[": "is not YAML",
	} {
		if _, err := scenario.ParseCrashing(value, naming); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", value, err, want)
		}
	}
}

// A value printed on one line equals the value written over several.
func TestFlow(t *testing.T) {
	text := "\n- at: 1\n  when: 5\n  broadcast: 'hello, all'\n- {at: 2, broadcast: \"-\", to: [1, P3]}\n"
	tree, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	var node ast.Node = tree.Docs[0].Body
	flat := scenario.Flow(node)
	if strings.Contains(flat, "\n") {
		t.Errorf("%q is more than a line", flat)
	}
	var long, short run.Plan
	if err := scenario.Set(&long, "requests", node, naming); err != nil {
		t.Fatal(err)
	}
	if err := scenario.Parse(&short, "requests", flat, naming); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(long, short) {
		t.Errorf("%s\n%+v\n%+v", flat, long, short)
	}
}

// The events of a run are described in words, one line for each.
func TestDescribe(t *testing.T) {
	got := strings.Join(parse(t, everything...).Describe(func(id parley.ID) string { return "P" + name(id) }), "\n")
	want := `links lose 25% of all messages
links double 12.5% of all messages
the link from P1 to P2 P3 loses 50% of its messages, doubles 100% of its messages, takes 7 to 9 ticks, from tick 100 to 900
the link from any process to P4 takes 3 ticks, at all times
the link from P1 P2 to P3 is cut, from tick 10 to 20
the link from P3 to P1 P2 is cut, from tick 10 to 20
P2 crashes in its first step with effects from tick 500 on, after 1 effect, and restarts 900 ticks later without its disk
P3 crashes in its step 4, before any effect
P2 is paused from tick 100 to 1000
the clock of P2 is behind by 5000000 ticks and runs slow by 100 parts in a million
P1 suspects P2 at tick 500
the others are notified of a crash 1000 ticks later
links have no faults from tick 5000 on`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Every field of a plan reaches the simulator.
func TestOptions(t *testing.T) {
	p := parse(t, everything...)
	opt := run.Spec{Protocol: diffusion.New(diffusion.Config{N: 5}), Plan: p, Seed: 3}.Options()
	from, to := reflect.ValueOf(p), reflect.ValueOf(opt)
	for i := range from.NumField() {
		switch name := from.Type().Field(i).Name; name {
		case "Tick", "Workload", "Random": // nothing is left to read or to draw
		case "Graph":
			if len(opt.Graph) != 5 {
				t.Errorf("a graph of %d processes, want 5", len(opt.Graph))
			}
		default:
			if got := to.FieldByName(name).Interface(); !reflect.DeepEqual(got, from.Field(i).Interface()) {
				t.Errorf("%s: got %+v, want %+v", name, got, from.Field(i))
			}
		}
	}
	if opt.Seed != 3 {
		t.Errorf("got seed %d, want 3", opt.Seed)
	}
}
