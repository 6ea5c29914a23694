package interactive_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/interactive"
	"parley/agreement/om"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
)

// example is one of the lecture's: initial values, the faulty process if there is
// one, what it sends as a source, and what it relays, by receiver. The tables are
// as printed, a row for each receiver: what it heard from each process in turn,
// with a dot for itself, and "?" for 0/1, which is what the faulty one relays.
type example struct {
	name   string
	values string
	liar   int // -1: nobody
	sends  string
	relays string
	tables []string
	vector string
}

var examples = []example{
	{
		name: "example 1, nobody faulty", values: "1111", liar: -1,
		tables: []string{
			"P0: P1 1.11, P2 11.1, P3 111.", "P1: P0 .111, P2 11.1, P3 111.",
			"P2: P0 .111, P1 1.11, P3 111.", "P3: P0 .111, P1 1.11, P2 11.1",
		},
		vector: "{1,1,1,1}",
	},
	{
		name: "example 1, P3 says 0 to everybody", values: "1111", liar: 3, sends: "000-", relays: "000-",
		tables: []string{
			"P0: P1 1.1?, P2 11.?", "P1: P0 .11?, P2 11.?", "P2: P0 .11?, P1 1.1?", "P3: P0 .000, P1 0.00, P2 00.0",
		},
		vector: "{1,1,1,0}",
	},
	{
		name: "example 2", values: "11110", liar: 0, sends: "-0011", relays: "-0101",
		tables: []string{
			"P0: P1 0.011, P2 00.11, P3 100.1, P4 1001.",
			"P1: P2 ?1.11, P3 ?11.1, P4 ?111.",
			"P2: P1 ?.111, P3 ?11.1, P4 ?111.",
			"P3: P1 ?.111, P2 ?1.11, P4 ?111.",
			"P4: P1 ?.000, P2 ?0.00, P3 ?00.0",
		},
		vector: "{0,1,1,1,0}",
	},
	{
		name: "example 3", values: "01110", liar: 0, sends: "-0000", relays: "-0101",
		tables: []string{
			"P0: P1 0.000, P2 00.00, P3 000.0, P4 0000.",
			"P1: P2 ?1.11, P3 ?11.1, P4 ?111.",
			"P2: P1 ?.111, P3 ?11.1, P4 ?111.",
			"P3: P1 ?.111, P2 ?1.11, P4 ?111.",
			"P4: P1 ?.000, P2 ?0.00, P3 ?00.0",
		},
		vector: "{0,1,1,1,0}",
	},
	{name: "example 2, relaying 0", values: "11110", liar: 0, sends: "-0011", relays: "-0000", vector: "{0,1,1,1,0}"},
	{name: "example 2, relaying 1", values: "11110", liar: 0, sends: "-0011", relays: "-1111", vector: "{0,1,1,1,0}"},
}

// run runs the example over OM(1).
func (e example) run() (parley.Protocol, *sim.Sim) {
	n := len(e.values)
	say := func(path []parley.ID, to parley.ID, _ []byte) []byte {
		if len(path) == 1 {
			return []byte(e.sends[to : to+1])
		}
		return []byte(e.relays[to : to+1])
	}
	p := interactive.New(interactive.Config{Instance: instance(n, 1), Over: func(in problem.Instance) lockstep.Protocol {
		p := om.Rounds(in)
		p.Lies = om.Tell(in, say)
		return p
	}}, lockstep.Simulated)
	opt := sim.Options{Protocol: p, Requests: propose(strings.Split(e.values, "")...)}
	if e.liar >= 0 {
		opt.Faulty = map[parley.ID]faulty.Behaviour{parley.ID(e.liar): faulty.Script}
	}
	return p, sim.Run(opt)
}

// Interactive Consistency by Running the Byzantine Agreement Protocol, examples 1
// to 3: every cell of the tables, and the vectors.
func TestLecture(t *testing.T) {
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			p, s := e.run()
			for id, got := range vectors(t, &s.History) {
				if got != e.vector {
					t.Errorf("P%d decides %s, want %s", id, got, e.vector)
				}
			}
			for source, rows := range e.tables {
				_, rows, _ = strings.Cut(rows, ": ")
				for row := range strings.SplitSeq(rows, ", ") {
					receiver, heard, _ := strings.Cut(row, " ")
					at := parley.ID(receiver[1] - '0')
					want := strings.ReplaceAll(heard, "?", e.relay(at))
					if got := e.heard(p.Tree(s.Machine(at)), at, parley.ID(source)); got != want {
						t.Errorf("P%d sender: P%d received %s, want %s", source, at, got, want)
					}
				}
			}
		})
	}
}

func (e example) relay(to parley.ID) string {
	if e.liar < 0 {
		return ""
	}
	return e.relays[to : to+1]
}

// heard is a row of a table, from the tree of the receiver.
func (e example) heard(tree parley.Tree, at, source parley.ID) string {
	row := ""
	for from := range parley.ID(len(e.values)) {
		path := []parley.ID{source}
		switch from {
		case at:
			row += "."
			continue
		case source:
		default:
			path = append(path, from)
		}
		in, _, _ := tree.Node(path)
		row += string(in)
	}
	return row
}

// The tree of a process has the vector above the trees of the agreements.
func TestTree(t *testing.T) {
	e := examples[2]
	p, s := e.run()
	tree := p.Tree(s.Machine(1))
	in, out, children := tree.Node(tree.Root())
	if in != nil || string(out) != e.vector || !slices.Equal(children, []parley.ID{0, 1, 2, 3, 4}) {
		t.Errorf("the root has %q, %q and %v", in, out, children)
	}
	if _, out, children := tree.Node([]parley.ID{4}); string(out) != "0" || len(children) != 3 {
		t.Errorf("agreement 4 gives %q and has %v below it", out, children)
	}
	loaded := p.New(1)
	if !parley.Load(loaded, 0, parley.Save(s.Machine(1), 0, nil)) {
		t.Fatal("the state is not loaded")
	}
	if _, again, _ := p.Tree(loaded).Node(nil); !bytes.Equal(again, out) {
		t.Errorf("the root of a loaded process has %q", again)
	}
	fresh := p.Tree(p.New(1))
	if _, out, _ := fresh.Node(fresh.Root()); out != nil {
		t.Errorf("before the first round the vector is %q", out)
	}
	if interactive.Rounds(over(t, "sm", instance(4, 1))).Tree != nil {
		t.Error("over sm, which has no tree, there is one")
	}
}
