package ordered

import (
	"testing"

	"parley"
	"parley/commit/problem"
	"parley/commit/service"
	"parley/internal/committest"
)

// driven drives the machine of process 3 of four, of which one may lie.
type driven struct {
	committest.Host
	m *Machine
	s *parley.Step
}

func drive(log ...parley.Record) *driven { return driveWith(Config{}, nil, log) }

// driveWith starts the machine with a saved state and with log records.
func driveWith(c Config, saved []byte, log []parley.Record) *driven {
	c.N, c.M, c.Delta, c.Votes = 4, 1, 10, 100
	d := &driven{m: newMachine(c.withDefaults(), 3)}
	if saved != nil && !parley.LoadDurable(d.m, 0, saved) {
		panic("the state cannot be read")
	}
	d.s = &parley.Step{Self: 3, N: 4, Host: d, Restart: log != nil || saved != nil, Log: log}
	d.m.Start(d.s)
	d.s.Restart, d.s.Log = false, nil
	return d
}

// do runs a clause and returns what it delivers, appends and broadcasts, and how many messages it sends.
func (d *driven) do(clause func()) (delivered []parley.Msg, log []parley.Record, cast []parley.Msg, sent int) {
	d.s.Effects = d.s.Effects[:0]
	clause()
	for _, e := range d.s.Effects {
		switch e.Op {
		case parley.OpDeliver:
			delivered = append(delivered, e.Msg)
		case parley.OpAppend:
			log = append(log, parley.Record{Body: e.Msg.Body})
		case parley.OpBroadcast:
			cast = append(cast, e.Msg)
		case parley.OpSend:
			sent++
		}
	}
	return delivered, log, cast, sent
}

// carried has the order deliver q, at its position or at the next one.
func (d *driven) carried(from parley.ID, q parley.Msg) []parley.Msg {
	if q.Seq == 0 {
		q.Seq = d.m.at + 1
	}
	delivered, _, _, _ := d.do(func() {
		d.s.Carried = true
		d.m.Receive(d.s, from, q)
		d.s.Carried = false
	})
	return delivered
}

// transfer returns a transaction of processes 0 and 3.
func transfer() service.Spec {
	return service.Spec{
		Name: "t", Digest: 7, Members: []parley.ID{0, 3},
		Parts: []service.Part{{ID: 0, Body: []byte("y")}, {ID: 3, Body: []byte("y")}},
	}
}

// A process that voted yes before a crash asks the others. It accepts an outcome from two of the three, of
// which one may lie, but not from one, nor from two that differ, nor from one twice. It asks until it knows,
// and when the outcome is carried out nothing is left.
func TestRecallBelievesMoreThanMayLie(t *testing.T) {
	of, first := transfer(), drive()
	asked := first.carried(0, parley.Msg{Kind: Begin, Body: of.Encode()})
	if len(asked) != 1 || asked[0].Kind != service.Prepare {
		t.Fatal(asked)
	}
	number := asked[0].Value
	_, log, cast, _ := first.do(func() { first.m.Request(first.s, parley.Msg{Kind: service.Voted, Value: number, Seq: 1}) })
	if len(log) != 1 || len(cast) != 1 || cast[0].Kind != Vote {
		t.Fatal(log, cast)
	}
	d := drive(log...)
	if len(d.s.Effects) == 0 || d.s.Effects[0].Msg.Kind != service.Prepare || d.s.Effects[0].Msg.Value != number {
		t.Fatal("it does not prepare again")
	}
	says := func(from parley.ID, o problem.Outcome, want int) {
		t.Helper()
		body := of.Only(parley.All).Encode()
		told, _, _, _ := d.do(func() { d.m.Receive(d.s, from, parley.Msg{Kind: msgSays, Seq: uint64(o), Body: body}) })
		if len(told) != want || want > 0 && (told[0].Kind != service.Ended || problem.Outcome(told[0].Seq) != o ||
			told[0].Origin != service.Participant) {
			t.Errorf("process %d says %v: %v", from, o, told)
		}
	}
	asks := func() int {
		_, _, _, sent := d.do(func() { d.s.Now += 40; d.m.Timeout(d.s, askTimer) })
		return sent
	}
	says(0, problem.Abort, 0)
	says(0, problem.Abort, 0)
	says(1, problem.Commit, 0)
	if asks() != 1 {
		t.Error("it does not ask again")
	}
	says(2, problem.Commit, 1)
	says(0, problem.Commit, 0)
	if asks() != 0 {
		t.Error("it asks for what it knows")
	}
	_, done, _, _ := d.do(func() { d.m.Request(d.s, parley.Msg{Kind: service.Applied, Value: number}) })
	if again := drive(append(log, done...)...); len(done) != 1 || len(again.m.outcomes.inDoubt) > 0 {
		t.Error("what is over comes back")
	}
	// Unrequested or unreadable messages are refused.
	before, body := len(d.Why), of.Only(parley.All).Encode()
	says(1, problem.Commit, 0)
	for _, q := range []parley.Msg{
		{Kind: msgSays, Seq: 7, Body: body}, {Kind: msgAsk}, {Kind: 9}, {Kind: msgAsk, Body: of.Encode()},
	} {
		d.do(func() { d.m.Receive(d.s, 1, q) })
	}
	if got := len(d.Why) - before; got != 5 {
		t.Errorf("%d are refused, and not 5", got)
	}
}

// A process whose transaction is refused asks for no outcome. One that receives nothing of the order learns
// the outcomes of several transactions.
func TestWants(t *testing.T) {
	d := drive()
	commit := func(name string, digest uint64) service.Spec {
		of := service.Spec{
			Name: name, Digest: digest, Members: []parley.ID{3, 0}, Parts: []service.Part{{ID: 0, Body: []byte("y")}},
		}
		d.do(func() { d.m.Request(d.s, parley.Msg{Kind: service.Commit, Body: of.Encode()}) })
		return of
	}
	d.carried(0, parley.Msg{Kind: Begin, Body: transfer().Encode()})
	other := commit("t", 8)
	told := d.carried(3, parley.Msg{Kind: Begin, Body: other.Encode()})
	if len(told) != 1 || told[0].Kind != service.Refused || told[0].Seq != service.NameTaken || len(d.m.outcomes.inDoubt) != 0 {
		t.Error(told, d.m.outcomes.inDoubt)
	}
	for _, name := range []string{"a", "b"} {
		body := commit(name, 1).Only(parley.All).Encode()
		for from := range parley.ID(2) {
			told, _, _, _ = d.do(func() {
				d.m.Receive(d.s, from, parley.Msg{Kind: msgSays, Seq: uint64(problem.Commit), Body: body})
			})
		}
		if x, known := d.m.Find(name); len(told) != 1 || !known || x.Outcome != problem.Commit {
			t.Errorf("%s: %v, %t, %v", name, told, known, x)
		}
	}
	d.do(func() { d.s.Now += 1000; d.m.Timeout(d.s, askTimer) })
	if len(d.m.outcomes.inDoubt) != 0 {
		t.Error("it goes on asking")
	}
}

// Once it has asked for an outcome, a waiting process is in the same state after each question.
func TestWaitsInOneState(t *testing.T) {
	d := drive()
	of := transfer()
	of.Members = []parley.ID{3, 0}
	d.do(func() { d.m.Request(d.s, parley.Msg{Kind: service.Commit, Body: of.Encode()}) })
	var states []string
	for range 8 {
		d.do(func() { d.s.Now += 40; d.m.Timeout(d.s, askTimer) })
		states = append(states, string(parley.Save(d.m, d.s.Now, nil)))
	}
	if states[0] == states[1] || states[6] != states[7] {
		t.Errorf("the state changes from the first question to the second: %t; from the seventh to the eighth: %t",
			states[0] != states[1], states[6] != states[7])
	}
}

// A process that learned an outcome from others before the order brought the transaction delivers it once. A
// caller that requests that transaction again is answered at once.
func TestNotifiedOnce(t *testing.T) {
	of := transfer()
	of.Members = []parley.ID{3, 0}
	commit := parley.Msg{Kind: service.Commit, Body: of.Encode()}
	says := parley.Msg{Kind: msgSays, Seq: uint64(problem.Abort), Body: of.Only(parley.All).Encode()}
	d := drive()
	d.do(func() { d.m.Request(d.s, commit) })
	for from := range parley.ID(2) {
		told, _, _, _ := d.do(func() { d.m.Receive(d.s, from, says) })
		if len(told) != int(from) {
			t.Errorf("process %d says abort: %v", from, told)
		}
	}
	if asked := d.carried(3, parley.Msg{Kind: Begin, Body: of.Encode()}); len(asked) > 0 {
		t.Errorf("the participant is asked when all is over: %v", asked)
	}
	if told := d.carried(0, parley.Msg{Kind: Vote, Body: ballot(false, of, nil)}); len(told) > 0 {
		t.Errorf("the outcome is told once more: %v", told)
	}
	told, _, cast, _ := d.do(func() { d.m.Request(d.s, commit) })
	if len(told) != 1 || told[0].Origin != service.Repeated || len(cast) > 0 || len(d.m.outcomes.inDoubt) > 0 {
		t.Errorf("asked again it tells %v, broadcasts %v and waits for %v", told, cast, d.m.outcomes.inDoubt)
	}
}
