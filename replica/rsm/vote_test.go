package rsm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/replica/rsm"
	"parley/sim"
)

// words returns the hash reports that a machine has broadcast.
func words(b *bench) (out []parley.Msg) {
	for _, e := range b.effects {
		if e.Op == parley.OpBroadcast {
			out = append(out, e.Msg)
		}
	}
	return out
}

// The reports of one process on one position count once, and are kept once.
func TestOneWordEach(t *testing.T) {
	b := newBench(t, rsm.Config{N: 4, New: account, Every: 1}, 0)
	b.receive(0, parley.Msg{Kind: 1, Value: 5, Seq: 1, Body: []byte("balance")})
	b.receive(1, parley.Msg{Kind: 2, Seq: 1, Value: 7})
	size := len(parley.Save(b, 0, nil))
	for k := range 1000 {
		b.receive(1, parley.Msg{Kind: 2, Seq: 1, Value: uint64(8 + k)})
	}
	if n := len(parley.Save(b, 0, nil)); n != size || b.refused["a second word of one state"] != 1000 {
		t.Errorf("%d bytes became %d, refused %v", size, n, b.refused)
	}
}

// Unrequested reports are not kept: where states are never compared, and at a spare.
func TestStrayWords(t *testing.T) {
	for _, every := range []uint64{0, 1} {
		setup := rsm.Setup{Active: parley.SetOf(0, 1, 2)}
		b := newBench(t, rsm.Config{N: 4, New: account, Every: every, Setup: setup}, 3)
		for k := range uint64(5000) {
			b.receive(0, parley.Msg{Kind: 1, Value: 77, Seq: k + 1, Body: []byte("balance")})
			if len(words(b)) > 0 {
				t.Fatal("a spare says what its state is")
			}
			for q := range parley.ID(3) {
				b.receive(q, parley.Msg{Kind: 2, Seq: k + 1, Value: uint64(5 + q)})
				b.receive(q, parley.Msg{Kind: 2, Seq: k + 100, Value: uint64(5 + q)})
				b.receive(q, parley.Msg{Kind: 2, Seq: k + 1<<40, Value: uint64(5 + q)})
			}
		}
		if n := len(parley.Save(b, 0, nil)); n > 20_000 {
			t.Errorf("every %d: %d bytes after 5000 commands", every, n)
		}
	}
}

// A spare whose state is not that of the majority notices it, and stops.
func TestSpareStops(t *testing.T) {
	setup := rsm.Setup{Active: parley.SetOf(0, 1, 2)}
	b := newBench(t, rsm.Config{N: 4, New: account, Every: 1, Setup: setup}, 3)
	b.receive(0, parley.Msg{Kind: 1, Value: 77, Seq: 1, Body: []byte("balance")})
	var told []parley.Kind
	for q := range parley.ID(3) {
		b.receive(q, parley.Msg{Kind: 2, Seq: 1, Value: 5})
		for _, e := range b.effects {
			if told = append(told, e.Msg.Kind); e.Msg.Origin != 3 {
				t.Errorf("%+v", e.Msg)
			}
		}
	}
	if !slices.Equal(told, []parley.Kind{rsm.Diverged, rsm.Stopped}) {
		t.Errorf("it indicates %v", told)
	}
}

// All replicas answer commands of clients, with sessions and under setups. An ordered command changes the
// setup from its position on.
func TestAnswers(t *testing.T) {
	of := func(m int, active ...parley.ID) rsm.Config {
		return rsm.Config{Setup: rsm.Setup{Active: parley.SetOf(active...), M: m, Checked: m > 0}}
	}
	change := func(at parley.ID, when parley.Tick, to rsm.Config) sim.Request {
		return sim.Request{At: at, When: when, Msg: parley.Msg{Kind: rsm.Configure, Body: to.Setup.Append(nil)}}
	}
	same := func(answers string) []string { return slices.Repeat([]string{answers}, 3) }
	forgets := []sim.Request{
		command(0, 5000, 77, 1, "deposit 100"), command(1, 9000, 78, 1, "balance"), command(2, 12_000, 77, 1, "deposit 100"),
	}
	for name, c := range map[string]struct {
		config   rsm.Config
		requests []sim.Request
		want     []string
		refused  string // once by each replica
	}{
		// A client's retry, at any replica, is answered again and not applied again.
		"retries": {rsm.Config{}, []sim.Request{
			command(1, 10, 77, 1, "deposit 100"), command(2, 20, 77, 1, "deposit 100"),
			command(0, 5000, 77, 1, "deposit 100"), command(1, 9000, 77, 2, "balance"),
			command(2, 12_000, 77, 1, "deposit 100"), // long ago: not even answered
		}, same("1:1100 1:1100 1:1100 2:1100 "), "command that was answered long ago"},
		// A forgotten client is promised nothing, and no other client is affected.
		"remembered": {rsm.Config{Sessions: 2}, forgets, same("1:1100 2:1100 1:1100 "), ""},
		"forgotten":  {rsm.Config{Sessions: 1}, forgets, same("1:1100 2:1100 3:1200 "), ""},
		// With checked answers a retry is answered again, even if the first answer was confirmed long ago.
		"checked retry": {of(1, 0, 1, 2), []sim.Request{
			command(1, 10, 77, 1, "deposit 100"), command(1, 9000, 77, 1, "deposit 100"), // at its position
			ask(0, 12_000, "deposit 5"), command(2, 19_000, 77, 1, "deposit 100"), // and later
		}, same("1:1100 1:1100 2:1105 1:1100 "), ""},
		// The replicas that are active at a command answer it, whatever they are when the reports of the
		// others arrive. A retry after the change belongs to the new setup.
		"change behind a command": {of(1, 0, 1), []sim.Request{
			command(0, 10, 77, 1, "deposit 100"), change(0, 11, of(1, 0, 2, 3)), command(3, 9000, 77, 1, "deposit 100"),
		}, []string{"1:1100 1:1100 ", "1:1100 ", "1:1100 ", "1:1100 "}, ""},
		// A process that requests another setup keeps the old one until the request is ordered.
		"change that waits": {of(0, 0, 1, 2), []sim.Request{
			change(3, 9, of(0, 0, 2, 3)), command(0, 10, 77, 1, "deposit 100"), command(0, 9000, 77, 2, "balance"),
		}, []string{"1:1100 3:1100 ", "1:1100 ", "1:1100 3:1100 ", "3:1100 "}, ""},
		// A spare applies and does not answer until it is active. An invalid setup changes nothing.
		"spare": {of(1, 0, 1, 2), []sim.Request{
			ask(0, 10, "deposit 1"), ask(1, 3000, "deposit 2"), change(2, 9000, of(0, 0, 2, 3)),
			ask(0, 15_000, "deposit 3"), ask(3, 18_000, "deposit 4"),
			{At: 2, When: 20_000, Msg: parley.Msg{Kind: rsm.Configure, Body: []byte{9}}},
		}, []string{"1:1001 2:1003 4:1006 5:1010 ", "1:1001 2:1003 ", "1:1001 2:1003 4:1006 5:1010 ", "4:1006 5:1010 "}, ""},
	} {
		for seed := range uint64(60) {
			p := over(sequencer(len(c.want)), c.config)
			s := sim.Run(sim.Options{Protocol: p, Seed: seed, FIFO: true, Requests: c.requests})
			judge(t, seed, p, s)
			if got := answers(&s.History); !slices.Equal(got, c.want) {
				t.Fatalf("%s, seed %d: %q, refused %v", name, seed, got, s.Stats.Refused)
			}
			if s.Stats.Refused["word of a state that nobody asked for"] > 0 || c.refused != "" && s.Stats.Refused[c.refused] != 3 {
				t.Fatalf("%s, seed %d: refused %v", name, seed, s.Stats.Refused)
			}
			for _, d := range s.History.Deliveries {
				if c.config.Setup.Checked && d.When < 12 {
					t.Fatalf("%s, seed %d: answered at %d, before anybody could confirm", name, seed, d.When)
				}
			}
			x := promised(t, p, s.RunConditions(), rsm.Completion)
			if active := c.config.Setup.Active.Len(); x.Holds != (active == 0 || active == len(c.want)) {
				t.Fatalf("%s, seed %d: %+v", name, seed, x)
			}
		}
	}
}

// Replicas with the same application state may still answer differently if they remember different clients. So
// their states count as different.
func TestSessionsAreCompared(t *testing.T) {
	var said []uint64
	for client := range uint64(2) {
		b := newBench(t, rsm.Config{N: 4, New: account, Every: 1}, 0)
		b.receive(1, parley.Msg{Kind: 1, Value: 70 + client, Seq: 1, Body: []byte("balance")})
		said = append(said, words(b)[0].Value)
	}
	if said[0] == said[1] {
		t.Errorf("%x is the word of both states", said[0])
	}
}

// The replicas that were active at a position vote on it, and their setup's M applies.
func TestElectorate(t *testing.T) {
	first := rsm.Setup{Active: parley.SetOf(0, 1, 2, 3), M: 2, Checked: true}
	then := rsm.Setup{Active: parley.SetOf(0, 4), M: 0, Checked: true}
	b := newBench(t, rsm.Config{N: 5, New: account, Setup: first}, 0)
	b.receive(1, parley.Msg{Kind: 1, Value: 77, Seq: 1, Body: []byte("balance")})
	said := words(b)[0]
	b.receive(1, parley.Msg{Kind: 3, Body: then.Append(nil)})
	for i, from := range []parley.ID{0, 4, 1, 3} {
		b.receive(from, said)
		if got := len(b.effects); (got > 0) != (i == 3) || i == 3 && string(b.effects[0].Msg.Body) != "1000" {
			t.Errorf("after the word of %d: %v", from, b.effects)
		}
	}
	if b.refused["word of a state that nobody asked for"] != 1 {
		t.Errorf("refused %v", b.refused)
	}
}

// Answers of a spare, and checked answers of too few replicas, are not promised.
func TestWhichProcessAnswers(t *testing.T) {
	all := parley.Everyone(3)
	for _, c := range []struct {
		setup  rsm.Setup
		faulty int
		want   string
	}{
		{rsm.Setup{}, 2, ""},
		{rsm.Setup{Active: parley.SetOf(0, 1)}, 0, "a spare"},
		{rsm.Setup{Active: all, M: 1, Checked: true}, 1, ""},
		{rsm.Setup{Active: all, M: 1, Checked: true}, 2, "too few"},
	} {
		p := over(sequencer(3), rsm.Config{Setup: c.setup})
		x := promised(t, p, parley.RunConditions{N: 3, Faulty: c.faulty}, rsm.Completion)
		if x.Holds != (c.want == "") || !strings.HasPrefix(x.Because, c.want) {
			t.Errorf("%+v: %+v", c, x)
		}
	}
}

// Total order and agreement speak of correct processes: the answers of one that crashes may be out of order. A
// process that restarts without a state counts its positions from scratch. Without a known order, nothing that
// needs one is promised.
func TestPromisesOfEachOrder(t *testing.T) {
	calm, crash := parley.RunConditions{N: 3}, parley.RunConditions{N: 3, Faulty: 1}
	back := parley.RunConditions{N: 3, Processes: parley.ProcessFaults{Restarted: true}}
	all := []string{rsm.Consistency, rsm.OneMachine, rsm.Once, rsm.Completion}
	unknown := rsm.New(rsm.Config{N: 3, New: account})
	for name, c := range map[string]struct {
		p    parley.Protocol
		a    parley.RunConditions
		want []string
	}{
		"calm":             {over(sequencer(3), rsm.Config{}), calm, all},
		"crash":            {over(sequencer(3), rsm.Config{}), crash, []string{all[0], all[2], all[3]}},
		"back":             {over(sequencer(3), rsm.Config{}), back, nil},
		"views, crash":     {returning(3, rsm.Config{}), crash, all},
		"views, back":      {returning(3, rsm.Config{}), back, all[:3]},
		"unknown":          {unknown, calm, []string{rsm.Once}},
		"unknown and back": {unknown, back, nil},
		"causal":           {over(causally(3), rsm.Config{}), calm, []string{rsm.Once, rsm.Completion}},
		"causal, compared": {over(causally(3), rsm.Config{Every: 1}), calm, []string{rsm.Once}},
	} {
		for _, property := range all {
			if x := promised(t, c.p, c.a, property); x.Holds != slices.Contains(c.want, property) || x.Because == "" {
				t.Errorf("%s: %+v", name, x)
			}
		}
	}
}

// Invalid configurations panic.
func TestNewPanics(t *testing.T) {
	for _, c := range []rsm.Config{
		{N: 0, New: account}, {N: 3}, {N: 3, New: account, Sessions: -1},
		{N: 3, New: account, Setup: rsm.Setup{Active: parley.SetOf(0, 3)}},
		{N: 3, New: account, Setup: rsm.Setup{Active: parley.SetOf(0, 1), M: 2}},
		{N: 3, New: account, Setup: rsm.Setup{Active: parley.SetOf(0, 1), M: -1}},
		{N: 3, New: account, Setup: rsm.Setup{Checked: true}},
		{N: 3, New: account, Durable: true}, {N: 3, New: account, Piece: 1}, {N: 3, New: account, Transfer: true, Liars: 1},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is taken", fmt.Sprintf("%+v", c.Setup))
				}
			}()
			rsm.New(c)
		}()
	}
}
