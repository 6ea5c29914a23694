package om_test

import (
	"bytes"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/om"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/parleytest"
)

// Slide "Algorithm OM(m), m > 0", step 2: to each of the n-2 other processes.
// No process sends to itself, to the source, or to a process on the path; and the
// others all get the same body.
func TestNoProcessSendsToProcessesOnThePath(t *testing.T) {
	tb := newTable(om.Config{N: 7, M: 2, Source: 3, Default: []byte("0")})
	tb.propose("1")
	for r := range 3 {
		for id := range parley.ID(7) {
			receivers := make(map[string]parley.Set)
			for _, e := range tb.sends(id, r) {
				if e.To == parley.All && r == 0 && id == 3 {
					continue
				}
				path := e.Msg.Body[:r]
				if e.To == id || e.To == 3 || bytes.IndexByte(path, byte(e.To)) >= 0 || path[r-1] != byte(id) {
					t.Errorf("round %d: %d sends %v to %d", r, id, path, e.To)
				}
				set := receivers[string(path)]
				if !set.Add(e.To) {
					t.Errorf("round %d: %d sends %v to %d twice", r, id, path, e.To)
				}
				receivers[string(path)] = set
			}
			for path, set := range receivers {
				if set.Len() != 6-r {
					t.Errorf("round %d: %d sends %q to %d processes", r, id, path, set.Len())
				}
			}
		}
		tb.round(r)
	}
}

// Only the first message that is due counts. All others are refused and change nothing.
func TestRefusals(t *testing.T) {
	big := strings.Repeat("x", problem.MaxValue)
	with := func(m parley.Msg, change func(m *parley.Msg)) parley.Msg {
		change(&m)
		return m
	}
	for _, bad := range []struct {
		r    int
		from parley.ID
		m    parley.Msg
		why  string
	}{
		{0, 2, message(nil, "1"), "path that does not end in its sender"},
		{1, 2, message([]byte{3}, "1"), "path that does not end in its sender"},
		{2, 2, message([]byte{2, 3}, "1"), "path that does not end in its sender"},
		{1, 0, message([]byte{0}, "1"), "path with a cycle or through its receiver"},
		{2, 2, message([]byte{1, 2}, "1"), "path with a cycle or through its receiver"},
		{2, 2, message([]byte{2, 2}, "1"), "path with a cycle or through its receiver"},
		{2, 2, message([]byte{0, 2}, "1"), "path with a cycle or through its receiver"},
		{2, 2, message([]byte{200, 2}, "1"), "path with a cycle or through its receiver"},
		{3, 2, message([]byte{4, 3, 2}, "1"), "path with a cycle or through its receiver"},
		{1, 2, message([]byte{3, 2}, "1"), "not a message of this round"},
		{2, 2, message([]byte{2}, "1"), "not a message of this round"},
		{2, 2, parley.Msg{Kind: om.Value, Seq: 2, Body: []byte{2}}, "not a message of this round"},
		{2, 2, parley.Msg{Kind: om.Value, Seq: 1 << 63, Body: []byte{3, 2}}, "not a message of this round"},
		{1, 2, with(message([]byte{2}, "1"), func(m *parley.Msg) { m.Kind = 2 }), "not a message of this round"},
		{1, 2, with(message([]byte{2}, "1"), func(m *parley.Msg) { m.Origin = 2 }), "not a message of this round"},
		{1, 2, with(message([]byte{2}, "1"), func(m *parley.Msg) { m.Value = 1 }), "not a message of this round"},
		{1, 2, message([]byte{2}, big+"x"), "oversized value"},
	} {
		tb := newTable(om.Config{N: 5, M: 2, Default: []byte("0")})
		before := save(tb.seats[1])
		tb.absorb(1, bad.r, bad.from, bad.m)
		if !slices.Equal(tb.refused, []string{bad.why}) || !bytes.Equal(save(tb.seats[1]), before) {
			t.Errorf("round %d from %d %v: refused %q, expected %q", bad.r, bad.from, bad.m, tb.refused, bad.why)
		}
	}

	tb := newTable(om.Config{N: 5, M: 2, Default: []byte("0")})
	tb.absorb(1, 2, 2, message([]byte{4, 2}, big))
	if len(tb.refused) != 0 {
		t.Errorf("a message that is due and as large as may be: refused %q", tb.refused)
	}
	before := save(tb.seats[1])
	tb.absorb(1, 2, 2, message([]byte{4, 2}, "1"))
	second := []string{"second value along a path"}
	if !slices.Equal(tb.refused, second) || !bytes.Equal(save(tb.seats[1]), before) {
		t.Errorf("a second value: refused %q", tb.refused)
	}
	tb.absorb(0, 1, 2, message([]byte{2}, "1"))
	if len(tb.refused) != 2 || tb.refused[1] != "message to the source" {
		t.Errorf("a message to the source: refused %q", tb.refused)
	}
}

// A faulty process that sends anything besides its lies gains nothing: neither by
// messages in other names, nor by a second message along a path.
func TestJunkChangesNothing(t *testing.T) {
	junk := 0
	for seed := range uint64(60) {
		c := om.Config{N: 7, M: 2, Source: parley.ID(seed % 7), Default: []byte("0")}
		how := draw(seed, 7, 2, c.Source, []faulty.Behavior{faulty.Script})
		say := liar(seed, "0", "1")
		p := om.Rounds(c)
		p.Lies = func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
			said := om.Tell(c, say)(s, t)
			for _, sent := range said {
				again := message(sent.Msg.Body[:sent.Msg.Seq], "2")
				for i := range byte(8) {
					forged := slices.Clone(again.Body)
					if t.Round > 0 && parley.ID(i) != t.Self {
						forged[t.Round-1] = i
						said = append(said, parley.Outgoing{Msg: parley.Msg{Kind: om.Value, Seq: again.Seq, Body: forged}})
					}
				}
				said = append(said, parley.Outgoing{Msg: again}, parley.Outgoing{Msg: parley.Msg{Kind: 7}})
			}
			return said
		}
		a := run(told(c, say), c.Source, "1", seed, how)
		b := run(lockstep.Of(p, lockstep.Simulated), c.Source, "1", seed, how)
		other := problem.Decisions(&b.History)
		for id, v := range problem.Decisions(&a.History) {
			if !bytes.Equal(v, other[id]) {
				t.Errorf("seed %d: %d decides %s, and %s if there is junk", seed, id, v, other[id])
			}
		}
		junk += int(b.Stats.RefusedFaulty)
	}
	if junk == 0 {
		t.Error("no junk arrived")
	}
}

// The tree has inputs when the rounds close, and outputs when all are over; each output is
// the strict majority of the node's input and the children's outputs.
func TestTree(t *testing.T) {
	tb := newTable(om.Config{N: 7, M: 2, Default: []byte("d")})
	say := liar(1, "0", "1", "2")
	tb.propose("1")
	root := []parley.ID{0}
	for r := range 3 {
		in, out, children := tb.p.Tree(tb.seats[2]).Node(root)
		if (in != nil) != (r > 0) || out != nil || !slices.Equal(children, []parley.ID{1, 3, 4, 5, 6}) {
			t.Errorf("before round %d: in %q, out %q, children %v", r, in, out, children)
		}
		for _, from := range []parley.ID{3, 4} { // they send first, so that their lies count
			for _, e := range tb.sends(from, r) {
				if v := say([]parley.ID{from}, e.To, nil); v != nil {
					tb.absorb(e.To, r, from, message(e.Msg.Body[:r], string(v)))
				}
			}
		}
		tb.round(r)
	}
	nodes, nowhere := 0, 0
	var walk func(tree parley.Tree, path []parley.ID)
	walk = func(tree parley.Tree, path []parley.ID) {
		nodes++
		in, out, children := tree.Node(path)
		votes := map[string]int{string(in): 1}
		for _, j := range children {
			if j == 2 || slices.Contains(path, j) {
				t.Errorf("%v has child %d", path, j)
			}
			_, vote, _ := tree.Node(append(slices.Clone(path), j))
			votes[string(vote)]++
			walk(tree, append(slices.Clone(path), j))
		}
		want := "d"
		for v, n := range votes {
			if 2*n > len(children)+1 {
				want = v
			}
		}
		if want == "d" {
			nowhere++
		}
		if string(out) != want {
			t.Errorf("%v: out %q of votes %v", path, out, votes)
		}
	}
	tree := tb.p.Tree(tb.seats[2])
	walk(tree, tree.Root())
	if nodes != 1+5+5*4 || nowhere == 0 {
		t.Errorf("%d nodes, %d without a majority", nodes, nowhere)
	}
	for _, path := range [][]parley.ID{nil, {1}, {0, 2}, {0, 0}, {0, 3, 3}, {0, 3, 4, 5}, {0, 300}} {
		if in, out, children := tree.Node(path); in != nil || out != nil || children != nil {
			t.Errorf("%v is a node", path)
		}
	}
	in, out, children := tb.p.Tree(tb.seats[0]).Node(root)
	if string(in) != "1" || string(out) != "1" || children != nil {
		t.Errorf("the source's own: in %q, out %q, children %v", in, out, children)
	}
}

// A faulty process chooses among what it holds, each other value of the alphabet, and silence.
func TestLies(t *testing.T) {
	c := om.Config{N: 4, M: 1, Default: []byte("0"), Alphabet: [][]byte{[]byte("a"), []byte("b"), []byte("c")}}
	tb := newTable(c)
	for held, want := range map[string]string{"b": "b a c", "x": "x a b c"} {
		alternatives := len(strings.Fields(want)) + 1
		for k := range alternatives {
			tb.answers, tb.asked = []int{k}, nil
			honest := []parley.Outgoing{{Path: 5, Msg: message([]byte{2}, held)}}
			turn := &parley.Turn{Self: 2, To: 1, Round: 1, Honest: honest}
			said := tb.p.Lies(&tb.step, turn)
			if !slices.Equal(tb.asked, []int{alternatives}) {
				t.Errorf("held %s: asked %v", held, tb.asked)
			}
			if k == alternatives-1 {
				if said != nil {
					t.Errorf("held %s: the last answer is silence, not %v", held, said)
				}
				continue
			}
			m := message([]byte{2}, strings.Fields(want)[k])
			if len(said) != 1 || said[0].Path != 5 || fmt.Sprint(said[0].Msg) != fmt.Sprint(m) {
				t.Errorf("held %s, answer %d: said %v, expected %v", held, k, said, m)
			}
		}
	}
}

// A reader sees {value,path}, the source first.
func TestExplain(t *testing.T) {
	p := om.Rounds(om.Config{N: 12, M: 2, Source: 0, Default: []byte("0")})
	article := func(id parley.ID) string { return fmt.Sprint(id + 1) }
	for want, m := range map[string]parley.Msg{
		"{0,1}":        message(nil, "0"),
		"{0,1.3.2}":    message([]byte{2, 1}, "0"),
		"{yes,1.11.2}": message([]byte{10, 1}, "yes"),
	} {
		if got := slices.Collect(p.Explain(parley.Env{}, m, article)); !slices.Equal(got, []string{want}) {
			t.Errorf("%v, expected %s", got, want)
		}
	}
	if got := slices.Collect(p.Explain(parley.Env{}, parley.Msg{Kind: om.Value, Seq: 3}, article)); got != nil {
		t.Errorf("a message that is none reads %v", got)
	}
}

// Any bytes up to the largest size are values, including none; and names go up to
// the largest n.
func TestValuesAndNames(t *testing.T) {
	for _, value := range []string{"", "0", "\x00\xff", strings.Repeat("v", problem.MaxValue)} {
		c := om.Config{N: 4, M: 1, Source: 3, Default: []byte("other")}
		s := run(om.New(c, lockstep.Simulated), 3, value, 1, map[parley.ID]faulty.Behavior{1: faulty.Silent})
		got := problem.Decisions(&s.History)
		if len(got) != 3 || string(got[0]) != value || string(got[2]) != value {
			t.Errorf("%q proposed, %q decided", value, got)
		}
	}
	honestly := func(_ []parley.ID, _ parley.ID, held []byte) []byte { return held }
	c := om.Config{N: 4, M: 1, Default: []byte("other")}
	empty := run(told(c, honestly), 0, "", 1, scripted(0))
	if got := problem.Decisions(&empty.History); len(got) != 3 || len(got[1])+len(got[2])+len(got[3]) != 0 {
		t.Errorf("a liar that holds the empty value and says so: %q decided", got)
	}

	tb := newTable(om.Config{N: 4, M: 1, Default: []byte("0")})
	before := save(tb.seats[0])
	tb.propose(strings.Repeat("v", problem.MaxValue+1))
	p, s := tb.at(1)
	p.Request(s, parley.Msg{Kind: parley.Propose, Body: []byte("1")})
	if !bytes.Equal(save(tb.seats[0]), before) || len(save(p)) != len(save(tb.seats[2])) {
		t.Error("an oversized value, or one for a lieutenant, is taken")
	}

	c = om.Config{N: parley.MaxProcesses, M: 1, Source: 7, Default: []byte("0")}
	big := run(om.New(c, lockstep.Simulated), 7, "1", 1, map[parley.ID]faulty.Behavior{255: faulty.Flip})
	if names := parleytest.Judge(t, om.New(c, lockstep.Simulated), big, c.M); names != nil || len(big.Stats.Refused) != 0 {
		t.Errorf("n = 256: broken %v, refused %v", names, big.Stats.Refused)
	}
}

// The flags make the instance; m follows from n, and an instance that would not terminate is
// refused with a reason.
func TestFlags(t *testing.T) {
	p := om.New(om.Config{N: 4, M: 1, Default: []byte("0")}, lockstep.Simulated)
	parse := func(args ...string) (parley.Protocol, error) {
		fs := flag.NewFlagSet("om", flag.ContinueOnError)
		protocol := p.Flags(fs)
		if err := fs.Parse(args); err != nil {
			return parley.Protocol{}, err
		}
		return protocol(func(string) (parley.ID, error) { return 2, nil })
	}
	if q, err := parse("-n", "7", "-source", "P3"); err != nil || q.N != 7 || q.M != 2 || !q.Proposers.Has(2) {
		t.Errorf("n %d, m %d, proposers %v: %v", q.N, q.M, slices.Collect(q.Proposers.All()), err)
	}
	if _, err := parse("-n", "16"); err != nil {
		t.Error("4.0 million messages:", err)
	}
	if _, err := parse("-n", "4", "-m", "3"); err == nil {
		t.Error("of one correct process nothing can be asked")
	}
	// A run that needs too much memory reports that beforehand.
	for n, least := range map[string]uint64{"19": 60e9, "250": 1 << 63} {
		if q, err := parse("-n", n); err != nil || q.Memory() < least {
			t.Errorf("n = %s needs %d bytes, %v", n, q.Memory(), err)
		}
	}
}
