package bracha_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/bracha"
	"parley/broadcast/problem"
	"parley/parleytest"
	"parley/sim"
)

// one is a single machine.
type one struct {
	parley.Machine
	step parley.Step
}

func alone(c bracha.Config, self parley.ID) *one {
	m := &one{bracha.New(c).New(self), parley.Step{Self: self, N: c.N, Host: &small{}}}
	m.Start(&m.step)
	return m
}

// receive passes a message to the machine and returns its effects.
func (m *one) receive(from parley.ID, q parley.Msg) string {
	m.step.Effects = m.step.Effects[:0]
	m.Receive(&m.step, from, q)
	return m.did()
}

func (m *one) request(payload string) string {
	m.step.Effects = m.step.Effects[:0]
	m.Request(&m.step, problem.Request([]byte(payload)))
	return m.did()
}

func (m *one) did() string {
	var out []string
	for _, e := range m.step.Effects {
		what := "deliver"
		if e.Op == parley.OpSend {
			what = []string{"", "initial", "echo", "ready"}[e.Msg.Kind]
		}
		out = append(out, fmt.Sprintf("%s %s", what, e.Msg.Body))
	}
	return fmt.Sprint(out)
}

func msg(kind parley.Kind, sender parley.ID, seq uint64, value string) parley.Msg {
	return parley.Msg{Kind: kind, Origin: sender, Seq: seq, Body: []byte(value)}
}

// The thresholds: more than (n+m)/2 echoes, or m+1 readies, to vouch; 2m+1 readies to deliver. The test
// counts them from outside, including the process's own.
func TestThresholds(t *testing.T) {
	for _, c := range []bracha.Config{{N: 4, M: 1}, {N: 5, M: 1}, {N: 6, M: 1}, {N: 7, M: 2}, {N: 9, M: 2}, {N: 10, M: 3}} {
		var mostEchoes int // the most echoes of which twice the number is at most n+m
		for 2*mostEchoes <= c.N+c.M {
			mostEchoes++
		}
		p := alone(c, 0)
		if got := p.receive(1, msg(bracha.Initial, 1, 1, "v")); got != "[echo v]" {
			t.Fatalf("initial: %s", got)
		}
		for have := 2; have <= mostEchoes; have++ { // including its own
			want := "[]"
			if have == mostEchoes {
				want = "[ready v]"
			}
			if got := p.receive(parley.ID(have-1), msg(bracha.Echo, 1, 1, "v")); got != want {
				t.Errorf("n=%d m=%d: %d echoes: %s, not %s", c.N, c.M, have, got, want)
			}
		}
		for have := 2; have <= 2*c.M+1; have++ { // including its own
			want := "[]"
			if have == 2*c.M+1 {
				want = "[deliver v]"
			}
			if got := p.receive(parley.ID(have-1), msg(bracha.Ready, 1, 1, "v")); got != want {
				t.Errorf("n=%d m=%d: %d readies: %s, not %s", c.N, c.M, have, got, want)
			}
		}
		// Without any echo, a process believes m+1 others that vouch.
		p = alone(c, 0)
		for have := 1; have <= c.M+1; have++ {
			want := "[]"
			if have == c.M+1 {
				want = "[echo v ready v]"
				if c.M+2 >= 2*c.M+1 {
					want = "[echo v ready v deliver v]"
				}
			}
			if got := p.receive(parley.ID(have), msg(bracha.Ready, 1, 1, "v")); got != want {
				t.Errorf("n=%d m=%d: %d others vouch: %s, not %s", c.N, c.M, have, got, want)
			}
		}
	}
}

// Without a message of the sender, more than (n+m)/2 echoes of others are enough.
func TestEchoesAlone(t *testing.T) {
	p := alone(bracha.Config{N: 7, M: 2}, 0)
	for id := parley.ID(2); id < 6; id++ {
		if got := p.receive(id, msg(bracha.Echo, 1, 1, "v")); got != "[]" {
			t.Errorf("%d echoes: %s", id-1, got)
		}
	}
	if got := p.receive(6, msg(bracha.Echo, 1, 1, "v")); got != "[echo v ready v]" {
		t.Errorf("five echoes: %s", got)
	}
}

// Each process counts once, for the first value that it speaks for; and it echoes and vouches once itself.
func TestEachCountsOnce(t *testing.T) {
	p := alone(bracha.Config{N: 4, M: 1}, 0)
	p.receive(1, msg(bracha.Initial, 1, 1, "a"))
	for range 5 {
		for _, value := range []string{"a", "b", "c"} {
			for _, kind := range []parley.Kind{bracha.Initial, bracha.Echo, bracha.Ready} {
				if got := p.receive(1, msg(kind, 1, 1, value)); got != "[]" {
					t.Fatalf("a liar alone makes it %s", got)
				}
			}
		}
	}
	if got := p.receive(2, msg(bracha.Echo, 1, 1, "b")); got != "[]" {
		t.Fatalf("two echoes for each of two values: %s", got)
	}
	if got := p.receive(3, msg(bracha.Echo, 1, 1, "a")); got != "[ready a]" {
		t.Fatalf("three echoes: %s", got)
	}
	if got := p.receive(2, msg(bracha.Ready, 1, 1, "b")); got != "[]" {
		t.Fatalf("it vouches for two values: %s", got)
	}
	if got := p.receive(3, msg(bracha.Ready, 1, 1, "a")); got != "[deliver a]" {
		t.Fatalf("three readies: %s", got)
	}
	if got := p.receive(2, msg(bracha.Ready, 1, 1, "a")); got != "[]" {
		t.Fatalf("delivers again: %s", got)
	}
}

// A sender's broadcasts are numbered and kept apart; those delivered out of order are remembered until the
// first one is delivered.
func TestNumbers(t *testing.T) {
	c := bracha.Config{N: 4, M: 1}
	p := alone(c, 0)
	finish := func(seq uint64, value string) string {
		for id := parley.ID(1); id < 3; id++ {
			p.receive(id, msg(bracha.Ready, 1, seq, value))
		}
		return p.did() + p.receive(3, msg(bracha.Ready, 1, seq, value))
	}
	for _, x := range []struct {
		seq  uint64
		want string
	}{
		{2, "[echo b2 ready b2 deliver b2][]"}, {3, "[echo b3 ready b3 deliver b3][]"}, {2, "[][]"},
		{1, "[echo b1 ready b1 deliver b1][]"}, {3, "[][]"}, {1, "[][]"}, {4, "[echo b4 ready b4 deliver b4][]"},
	} {
		if got := finish(x.seq, fmt.Sprint("b", x.seq)); got != x.want {
			t.Errorf("broadcast %d: %s, not %s", x.seq, got, x.want)
		}
	}
	if vars := parley.Show(p.Machine, 0); len(vars) > 12 {
		t.Errorf("it still holds: %v", vars)
	}
}

// The thirds of the window: a sender broadcasts in the first, the others accept INITIAL in the first two, and
// the other messages in all three.
func TestWindow(t *testing.T) {
	c := bracha.Config{N: 4, M: 1, Window: 9}
	p := alone(c, 0)
	for i := range 5 {
		want := "[]"
		if i < 3 {
			want = fmt.Sprintf("[initial %d echo %d]", i, i)
		}
		if got := p.request(fmt.Sprint(i)); got != want {
			t.Errorf("own broadcast %d: %s, not %s", i, got, want)
		}
	}
	for id := parley.ID(1); id < 3; id++ { // the second broadcast is delivered, then the first
		p.receive(id, msg(bracha.Ready, 0, 2, "1"))
	}
	p.receive(1, msg(bracha.Ready, 0, 1, "0"))
	if got := p.receive(2, msg(bracha.Ready, 0, 1, "0")); got != "[ready 0 deliver 0 initial 3 echo 3 initial 4 echo 4]" {
		t.Errorf("when two are delivered: %s", got)
	}
	for _, x := range []struct {
		seq     uint64
		initial string
		help    string
	}{{6, "[echo v]", "[ready v deliver v]"}, {7, "[]", "[echo v ready v deliver v]"},
		{9, "[]", "[echo v ready v deliver v]"}, {10, "[]", "[]"}} {
		p := alone(c, 0)
		if got := p.receive(1, msg(bracha.Initial, 1, x.seq, "v")); got != x.initial {
			t.Errorf("initial %d: %s", x.seq, got)
		}
		p.receive(2, msg(bracha.Ready, 1, x.seq, "v"))
		if got := p.receive(3, msg(bracha.Ready, 1, x.seq, "v")); got != x.help {
			t.Errorf("ready %d: %s", x.seq, got)
		}
	}
}

// Many broadcasts of all processes through small windows.
func TestManyBroadcasts(t *testing.T) {
	const each = 40
	for seed := range uint64(5) {
		opt := lying(bracha.Config{N: 4, M: 1, Window: 60}, seed, 1)
		opt.Requests = nil
		for id := range parley.ID(4) {
			for k := range each {
				opt.Requests = append(opt.Requests, sim.Request{At: id, When: parley.Tick(10 * k),
					Msg: problem.Request(fmt.Appendf(nil, "%d.%d", id, k))})
			}
		}
		s := sim.Run(opt)
		parleytest.Judge(t, opt.Protocol, s, seed)
		if len(s.History.Deliveries) < 3*3*each {
			t.Errorf("seed %d: %d deliveries", seed, len(s.History.Deliveries))
		}
	}
}

// Memory is bounded whatever a liar sends: two values of its own in each broadcast of a window.
func TestFlood(t *testing.T) {
	c := bracha.Config{N: 4, M: 1, Window: 12, Limit: 100}
	p := alone(c, 0)
	for seq := range uint64(100) {
		for k := range 20 {
			for _, kind := range []parley.Kind{bracha.Initial, bracha.Echo, bracha.Ready} {
				for sender := range parley.ID(4) {
					p.receive(3, msg(kind, sender, seq, fmt.Sprintf("%d-%090d", seq, k)))
				}
			}
		}
	}
	values := 0
	for _, v := range parley.Show(p.Machine, 0) {
		if len(v.Name) > 6 && v.Name[len(v.Name)-6:] == ".value" {
			values++
		}
	}
	// Accepted INITIAL messages of its own broadcasts are echoed besides, with one of these values.
	if most := 4 * c.Window * 2; values > most {
		t.Errorf("%d values are held, and not at most %d", values, most)
	}
	if got := p.receive(3, msg(bracha.Initial, 3, 1, string(make([]byte, 101)))); got != "[]" {
		t.Errorf("too large a value: %s", got)
	}
}

// Messages that no peer would send are refused and change nothing.
func TestRefuses(t *testing.T) {
	good := msg(bracha.Initial, 1, 1, "v")
	change := func(f func(m *parley.Msg)) parley.Msg {
		m := good
		f(&m)
		return m
	}
	for name, m := range map[string]parley.Msg{
		"initial of another":  change(func(m *parley.Msg) { m.Origin = 2 }),
		"sender out of range": change(func(m *parley.Msg) { m.Origin, m.Kind = 4, bracha.Echo }),
		"no number":           change(func(m *parley.Msg) { m.Seq = 0 }),
		"a value":             change(func(m *parley.Msg) { m.Value = 1 }),
		"no kind":             change(func(m *parley.Msg) { m.Kind = 0 }),
		"unknown kind":        change(func(m *parley.Msg) { m.Kind = 4 }),
		"far ahead":           change(func(m *parley.Msg) { m.Seq = 1 << 63 }),
	} {
		p := alone(bracha.Config{N: 4, M: 1}, 0)
		before := parley.Save(p.Machine, 0, nil)
		if got := p.receive(1, m); got != "[]" || !bytes.Equal(before, parley.Save(p.Machine, 0, nil)) {
			t.Errorf("%s: %s, or the state has changed", name, got)
		}
	}
	if got := alone(bracha.Config{N: 4, M: 1}, 0).receive(1, good); got != "[echo v]" {
		t.Errorf("the good one: %s", got)
	}
}

// A restarted process has forgotten what it vouched for, and is silent.
func TestRestartedIsSilent(t *testing.T) {
	p := alone(bracha.Config{N: 4, M: 1}, 0)
	p.step.Restart = true
	p.Start(&p.step)
	p.step.Restart = false
	for id := parley.ID(1); id < 4; id++ {
		for _, kind := range []parley.Kind{bracha.Initial, bracha.Echo, bracha.Ready} {
			if got := p.receive(id, msg(kind, 1, 1, "v")); got != "[]" {
				t.Errorf("it %s", got)
			}
		}
	}
	if got := p.request("v"); got != "[]" {
		t.Errorf("it %s", got)
	}
}

// One message of each kind, as it travels and as people read it.
func TestMessages(t *testing.T) {
	p := bracha.New(bracha.Config{N: 4, M: 1})
	for _, x := range []struct {
		m    parley.Msg
		want string
	}{
		{msg(bracha.Initial, 2, 7, "hello"), "2#7 hello"},
		{msg(bracha.Echo, 2, 7, "hello"), "echo 2#7 hello"},
		{msg(bracha.Ready, 2, 7, "hello"), "ready 2#7 hello"},
	} {
		_, m, err := parley.Decode(parley.Encode(nil, parley.Env{}, x.m))
		if err != nil {
			t.Fatal(err)
		}
		if rows := slices.Collect(p.Explain(parley.Env{}, m, parley.ID.String)); len(rows) != 1 || rows[0] != x.want {
			t.Errorf("%v: %q, not %q", m, rows, x.want)
		}
		perm := []parley.ID{3, 2, 1, 0}
		if r := p.Rename(parley.Env{}, m, perm); r.Origin != 1 || r.Seq != 7 {
			t.Errorf("renamed: %v", r)
		}
	}
}

// In steady state receiving allocates nothing.
func TestAllocations(t *testing.T) {
	const n = 31
	c := bracha.Config{N: n, M: 10}
	p := alone(c, 0)
	seq := uint64(0)
	value := []byte("value")
	got := testing.AllocsPerRun(200, func() {
		seq++
		p.step.Effects = p.step.Effects[:0]
		p.Receive(&p.step, 1, parley.Msg{Kind: bracha.Initial, Origin: 1, Seq: seq, Body: value})
		for _, kind := range []parley.Kind{bracha.Echo, bracha.Ready} {
			for id := range parley.ID(n - 1) {
				p.Receive(&p.step, id+1, parley.Msg{Kind: kind, Origin: 1, Seq: seq, Body: value})
			}
		}
		if len(p.step.Effects) != 3 {
			t.Fatalf("broadcast %d: %s", seq, p.did())
		}
	})
	if got > 0 {
		t.Errorf("%v allocations a broadcast", got)
	}
}

func TestConfig(t *testing.T) {
	for name, c := range map[string]bracha.Config{
		"no processes": {}, "too many": {N: 257}, "all faulty": {N: 4, M: 4}, "negative": {N: 4, M: -1},
		"window": {N: 4, M: 1, Window: 2}, "limit": {N: 4, M: 1, Limit: -1},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: accepted", name)
				}
			}()
			bracha.New(c)
		}()
	}
	if bracha.New(bracha.Config{N: 3, M: 1}).Bound(3, 1) == nil {
		t.Error("three processes are said to tolerate a liar")
	}
}
