package catalog_test

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/catalog"
	"parley/lockstep"
	"parley/parleytest"
	"parley/replica/rsm"
	"parley/sim"
	"parley/trace"
)

// elsewhere are the protocols that the catalog takes unchanged from their packages, which test them with their
// own inputs and conditions.
var elsewhere = []string{
	"tetra", "stream", "diffusion", "uniform", "fifo", "causal", "vector", "atomic-views", "timestamp", "bracha",
	"detector", "expel", "group", "ballot", "convergence", "dated", "twophase", "threephase", "quorum", "agreed", "transactions", "ordered",
}

// Every protocol that is built here keeps its promises, as any protocol must.
func TestSuite(t *testing.T) {
	for _, p := range catalog.All() {
		if slices.Contains(elsewhere, p.Name) {
			continue
		}
		o := parleytest.Options{Seeds: 40, Sim: sim.Options{FIFO: p.Relies.FIFO}}
		switch p.Name {
		case "sm":
			// One liar more than m, because nothing breaks within n >= m+2.
			in := problem.Instance{N: 5, M: 1, Default: []byte("0")}
			o.Seeds, o.Beyond = 300, []parleytest.Beyond{{Protocol: sm.New(sm.Config{Instance: in}, lockstep.Simulated), Faulty: 2}}
		case "atomic", "forwarding", "guard", "bank":
			// A restarted process takes no part, or rejoins. A broadcast costs what it does alone, without the
			// heartbeats of a longer run.
			o.NeverBack, p.Cost = true, nil
		case "news", "news-fifo", "bank-causal":
			o.NeverBack = true // a restarted process has lost its state
		}
		if p.Serves && p.Bound != nil {
			o.NothingBeyond = "what breaks beyond the bound is an end, which a run that is cut off does not show"
		}
		t.Run(p.Name, func(t *testing.T) { parleytest.Suite(t, p, o) })
	}
}

// Every protocol has a unique name, a title that fits on a line, and a source. Its flags, none of them given,
// make the same protocol.
func TestNames(t *testing.T) {
	names := make(map[string]bool)
	for _, p := range catalog.All() {
		if names[p.Name] || p.Name == "" || p.Title == "" || p.Paper == "" {
			t.Errorf("%q, %q, %q: a protocol needs a name of its own, a title and a source", p.Name, p.Title, p.Paper)
		}
		names[p.Name] = true
		if p.Title[0] >= 'A' && p.Title[0] <= 'Z' && p.Title[1] >= 'a' && p.Title[:9] != "Byzantine" {
			t.Errorf("%s: a title begins small: %s", p.Name, p.Title)
		}
		made := remake(t, p)
		if made.Name != p.Name || made.N != p.N || made.M != p.M || made.Span != p.Span || made.Relies != p.Relies {
			t.Errorf("%s: its flags make %s, n = %d, m = %d, span %d, relying on %+v; it is n = %d, m = %d, span %d, %+v",
				p.Name, made.Name, made.N, made.M, made.Span, made.Relies, p.N, p.M, p.Span, p.Relies)
		}
		if len(made.Properties) != len(p.Properties) || len(made.Kinds) != len(p.Kinds) || made.Faults != p.Faults {
			t.Errorf("%s: its flags make another protocol", p.Name)
		}
	}
}

// remake makes a protocol with its flags.
func remake(t *testing.T, p parley.Protocol, args ...string) parley.Protocol {
	t.Helper()
	fs := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	if p.Flags == nil {
		t.Fatalf("%s has no flags", p.Name)
	}
	build := p.Flags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	made, err := build(naming)
	if err != nil {
		t.Fatalf("%s %q: %v", p.Name, args, err)
	}
	return made
}

// naming reads P1 as process 0.
func naming(text string) (parley.ID, error) { return parley.ID(text[len(text)-1] - '1'), nil }

// byDesign are the properties that a protocol does not promise even without faults. It is in the catalog to
// show what they cost, or how they fail without another protocol.
var byDesign = map[string][]string{
	"atomic":      {"uniform agreement", "uniform total order"},
	"news-fifo":   {rsm.Consistency, rsm.OneMachine, "understanding"},
	"news":        {rsm.Consistency, rsm.OneMachine},
	"bank-causal": {rsm.Consistency, rsm.OneMachine},
}

// Without faults each property is promised by some protocol, and by all that have it, except byDesign. Those
// give a reason.
func TestPromisedByAnyProtocol(t *testing.T) {
	promised := make(map[string]bool)
	for _, p := range catalog.All() {
		for _, v := range parley.Judge(p, parley.RunConditions{N: p.N, M: p.M}, &parley.History{N: p.N}) {
			name := v.Property.Name
			switch {
			case v.Property.Mode == parley.Sometimes:
				continue
			case v.Promise.Holds == slices.Contains(byDesign[p.Name], name) || v.Promise.Because == "":
				t.Errorf("%s: %s is promised: %t (%q)", p.Name, name, v.Promise.Holds, v.Promise.Because)
			}
			promised[name] = promised[name] || v.Promise.Holds
		}
	}
	for name, somebody := range promised {
		if !somebody {
			t.Errorf("%s is promised by nobody", name)
		}
	}
}

// asked returns a run in which all Proposers of a protocol propose, and a process gets a request to broadcast.
func asked(p parley.Protocol, who parley.ID) sim.Options {
	opt := sim.Options{Protocol: p, FIFO: p.Relies.FIFO, Steps: 1 << 20}
	for id := range p.Proposers.All() {
		opt.Requests = append(opt.Requests, sim.Request{At: id, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("1")}})
	}
	if p.Serves {
		opt.Requests = append(opt.Requests, sim.Request{At: who, When: 1500, Msg: parley.Msg{Kind: parley.Carried, Body: []byte("m")}})
	}
	return opt
}

// With nothing but its name a protocol runs, ends and shows something, and all its promises hold.
func TestAlone(t *testing.T) {
	for _, p := range catalog.All() {
		t.Run(p.Name, func(t *testing.T) {
			opt := asked(p, 0)
			if p.Serves { // so that the second broadcast carries the first
				opt.Requests = append(opt.Requests,
					sim.Request{When: 1400, Msg: parley.Msg{Kind: parley.Carried, Body: []byte("l")}})
			}
			log := trace.Log{Keep: true}
			opt.Seed, opt.Until, opt.Log = 1, p.Span, &log
			s := sim.Run(opt)
			for _, e := range log.Events {
				if e.Op == trace.Send && p.Explain != nil {
					readable(t, p, e)
				}
			}
			if s.Stats.OutOfSteps || s.Stats.Deliveries == 0 {
				t.Errorf("%d steps, %d messages", s.Stats.Steps, s.Stats.Deliveries)
			}
			for _, v := range parley.Judge(p, s.RunConditions(), &s.History) {
				if v.Property.Mode == parley.Sometimes {
					continue
				}
				if v.Broken != nil || v.Promise.Holds == slices.Contains(byDesign[p.Name], v.Property.Name) {
					t.Errorf("%s: promised %v (%s), %v", v.Property.Name, v.Promise.Holds, v.Promise.Because, v.Broken)
				}
			}
		})
	}
}

// readable checks that a message of a correct process can be explained.
func readable(t *testing.T, p parley.Protocol, e trace.Event) {
	env := parley.Env{From: e.At, To: e.Peer, Epoch: e.Epoch, Path: e.Path}
	for row := range p.Explain(env, e.Msg, func(id parley.ID) string { return id.String() }) {
		if strings.Contains(row, "parley:") {
			t.Errorf("a message is explained as %q", row)
		}
	}
}

// A state that is damaged in a byte or two is refused, or taken for another one, and nothing panics.
func TestDamagedState(t *testing.T) {
	values := []byte{0, 1, 2, 9, 0x7f, 0x80, 0xff}
	for _, p := range catalog.All() {
		t.Run(p.Name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			refused, tried := 0, 0
			var state []byte
			opt := asked(p, 0)
			opt.Seed, opt.Until, opt.Steps = 1, max(1<<20, p.Span), 3000
			opt.Between = func(s *sim.Sim) {
				seat := r.IntN(len(s.Seats()))
				state = parley.Save(s.Seats()[seat].Machine, s.Now(), state[:0])
				for range 5 {
					damaged := bytes.Clone(state)
					for range 1 + r.IntN(2) {
						damaged[r.IntN(len(damaged))] = values[r.IntN(len(values))]
					}
					tried++
					if !parley.Load(s.Fresh(seat), s.Now(), damaged) {
						refused++
					}
				}
			}
			if sim.Run(opt); refused == 0 || refused == tried {
				t.Errorf("%d of %d refused", refused, tried)
			}
		})
	}
}

// Everything that a protocol passes to the layer above has words.
func TestWords(t *testing.T) {
	for _, p := range catalog.All() {
		opt := asked(p, 1)
		opt.Seed, opt.Until, opt.Crashes = 3, max(p.Span, 1<<14), []sim.Crash{{At: 0, When: 1200}}
		s := sim.Run(opt)
		for _, i := range s.History.Indications {
			if i.Msg.Kind == parley.Suspect || i.Msg.Kind == parley.View {
				continue
			}
			words := ""
			for row := range p.Explain(parley.Env{Path: i.Path}, i.Msg, func(id parley.ID) string { return id.String() }) {
				words = row
			}
			if words == "" || words == "?" || words == "a message of no kind" {
				t.Errorf("%s has no words for an indication of kind %#x: %q", p.Name, i.Msg.Kind, words)
			}
		}
	}
}

// taken returns the named protocol, and those of the bad flags that it accepts.
func taken(t *testing.T, name string, bad ...[]string) (p parley.Protocol, wrong [][]string) {
	t.Helper()
	p = catalog.All()[slices.IndexFunc(catalog.All(), func(p parley.Protocol) bool { return p.Name == name })]
	for _, args := range bad {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		build := p.Flags(fs)
		if err := fs.Parse(args); err != nil {
			t.Fatal(err)
		}
		if _, err := build(naming); err == nil {
			wrong = append(wrong, args)
		}
	}
	return p, wrong
}

// Diffusion has a flag for its graph.
func TestEdges(t *testing.T) {
	diffusion, wrong := taken(t, "diffusion", []string{"-edges", "P1"}, []string{"-edges", "P1-P1"},
		[]string{"-edges", "P1-P2,P2-P1"}, []string{"-edges", "P1-P2,"})
	ring := remake(t, diffusion, "-edges", "P1-P2,P2-P3,P3-P4,P4-P1", "-m", "1")
	if ring.M != 1 || ring.Cost(4, 1).Total().Messages != 9 || len(wrong) > 0 {
		t.Errorf("m = %d, %d messages, %q are taken for graphs", ring.M, ring.Cost(4, 1).Total().Messages, wrong)
	}
}

// Invalid setups of a replicated service are refused, and nothing panics.
func TestSetupFlags(t *testing.T) {
	bank, wrong := taken(t, "bank", []string{"-n", "0"}, []string{"-n", "3", "-active", "P4"}, []string{"-active", "P1,P1"},
		[]string{"-active", "P1,P2", "-wrong", "2"}, []string{"-wrong", "-1"})
	remake(t, bank, "-n", "4", "-active", "P1,P4", "-wrong", "1", "-checked")
	if len(wrong) > 0 {
		t.Errorf("%q are taken for setups", wrong)
	}
}
