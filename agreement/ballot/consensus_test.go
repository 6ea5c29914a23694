package ballot_test

import (
	"bytes"
	"slices"
	"testing"

	"parley"
	"parley/agreement/ballot"
	"parley/agreement/problem"
)

// single is one process of plain consensus among three, and a record of its actions.
type single struct {
	m       parley.Machine
	self    parley.ID
	timer   parley.Tick // last set, -1 if it was stopped
	asked   int         // PREPAREs to another process
	decided []string
	log     []parley.Record
	refused int
}

func newSingle(self parley.ID) *single {
	p := &single{m: ballot.New(ballot.Config{N: 3, M: 1}).New(self), self: self}
	p.do(func(s *parley.Step) { p.m.Start(s) })
	return p
}

// Choose and the others make it a parley.Host.
func (p *single) Choose(int) int                        { return 0 }
func (p *single) Sign(parley.ID, []byte) []byte         { return nil }
func (p *single) Verify(parley.ID, []byte, []byte) bool { return false }
func (p *single) Refused(parley.ID, parley.ID, string)  { p.refused++ }

func (p *single) do(clause func(*parley.Step)) {
	s := &parley.Step{Self: p.self, N: 3, Host: p}
	clause(s)
	for _, e := range s.Effects {
		switch {
		case e.Op == parley.OpSetTimer:
			p.timer = e.After
		case e.Op == parley.OpStopTimer:
			p.timer = -1
		case e.Op == parley.OpSend && e.Msg.Kind == ballot.Prepare && e.To == (p.self+1)%3:
			p.asked++
		case e.Op == parley.OpDeliver:
			p.decided = append(p.decided, string(e.Msg.Body))
		case e.Op == parley.OpAppend:
			p.log = append(p.log, parley.Record{Body: e.Msg.Body})
		}
	}
	if slices.ContainsFunc(s.Effects, func(e parley.Effect) bool { return e.Op == parley.OpCompact }) {
		p.log = nil
	}
}

func (p *single) propose(v string) {
	p.do(func(s *parley.Step) { p.m.Request(s, parley.Msg{Kind: parley.Propose, Body: []byte(v)}) })
}

func (p *single) receive(from parley.ID, m parley.Msg) {
	p.do(func(s *parley.Step) { p.m.Receive(s, from, m) })
}

func (p *single) suspect(q parley.ID) { p.receive(p.self, parley.Msg{Kind: parley.Suspect, Origin: q}) }

// "Lowest-ranked unsuspected member first; rank r waits T + r*S, then doubles."
func TestRetry(t *testing.T) {
	for self, first := range []parley.Tick{5000, 7000, 9000} {
		p := newSingle(parley.ID(self))
		p.propose("a")
		if p.timer != first || (p.asked == 1) != (self == 0) {
			t.Errorf("rank %d: a timer of %d, asked %d times", self, p.timer, p.asked)
		}
		for k := range 3 {
			before := p.asked
			p.do(func(s *parley.Step) { p.m.Timeout(s, 1) })
			if want := first << (k + 1); p.timer != want || p.asked != before+1 {
				t.Errorf("rank %d then waits for %d, not %d", self, p.timer, want)
			}
		}
	}
}

// A process starts a ballot when it becomes the lowest unsuspected process, once; a message
// shows that its sender is up.
func TestLowest(t *testing.T) {
	p := newSingle(2)
	p.propose("c")
	refusal := parley.Msg{Kind: ballot.Refuse, Seq: 3}
	p.suspect(0)
	p.receive(0, refusal)
	p.suspect(1)
	if p.asked != 0 {
		t.Fatal("it asks although it has heard of the first one")
	}
	p.suspect(0)
	p.suspect(0)
	if p.asked != 1 {
		t.Errorf("it asks %d times", p.asked)
	}
	p.receive(1, refusal)
	if p.suspect(1); p.asked != 2 {
		t.Errorf("when it becomes the lowest again it has asked %d times", p.asked)
	}
}

// A process proposes one value, which is not too long. After the decision it needs no timer,
// and only the decision of its log.
func TestDecides(t *testing.T) {
	p := newSingle(0)
	p.propose(string(make([]byte, problem.MaxValue+1)))
	if p.asked > 0 {
		t.Error("a value that is too long is proposed")
	}
	p.propose("a")
	p.propose("b")
	p.receive(2, parley.Msg{Kind: ballot.Promise, Seq: 3})
	p.receive(2, parley.Msg{Kind: ballot.Accepted, Seq: 3})
	if !slices.Equal(p.decided, []string{"a"}) || p.timer != -1 || len(p.log) > 0 {
		t.Errorf("decided %q, timer %d, %d records", p.decided, p.timer, len(p.log))
	}
	// Restarted from its compacted log it delivers the decision again, and sends nothing.
	state := parley.SaveDurable(p.m, 0, nil)
	back := &single{m: ballot.New(ballot.Config{N: 3, M: 1}).New(0)}
	if !parley.LoadDurable(back.m, 0, state) {
		t.Fatal("it does not load")
	}
	back.do(func(s *parley.Step) { s.Restart = true; back.m.Start(s) })
	if !slices.Equal(back.decided, []string{"a"}) || back.asked > 0 {
		t.Errorf("after a restart it decides %q and asks %d times", back.decided, back.asked)
	}
}

// A duplicate counts once, among promises and in the log.
func TestTwice(t *testing.T) {
	c := &clerk{seeker: seeker{self: 2}, wants: 2}
	c.in = ballot.NewInstance(2, parley.Everyone(4), c)
	s := &parley.Step{Self: 2, N: 4, Host: quiet{}}
	c.in.Propose(s)
	s.Effects = nil
	promise := parley.Msg{Kind: ballot.Promise, Seq: 6, Body: []byte{0, 'r'}}
	c.in.Receive(s, 1, promise)
	if c.in.Receive(s, 1, promise); len(s.Effects) > 0 {
		t.Errorf("two of four have promised, and it goes on: %v", s.Effects)
	}
	c.in.Receive(s, 0, promise)
	if len(s.Effects) == 0 || string(s.Effects[0].Msg.Body) != "0:r 1:r 2:1 " {
		t.Errorf("the promises are %v", s.Effects)
	}

	p := newPost(t, 3)
	ask := parley.Msg{Kind: ballot.Prepare, Seq: 3}
	for range 3 {
		p.do(1, func(s *parley.Step, in *ballot.Instance) { in.Receive(s, 0, ask) })
	}
	if len(p.log[1]) != 1 || len(p.sent) != 3 {
		t.Errorf("asked three times for one promise it has %d records and sends %v", len(p.log[1]), p.sent)
	}
}

// A malformed promise does not count, nor does one with a value of no ballot, or of a ballot
// above the promised one.
func TestPromiseOfGarbage(t *testing.T) {
	for _, m := range []parley.Msg{
		{Kind: ballot.Promise, Seq: 3, Body: []byte{0}}, {Kind: ballot.Promise, Seq: 3, Value: 3, Body: []byte{9, 'x'}},
		{Kind: ballot.Promise, Seq: 3, Value: 4, Body: []byte{1, 'x'}}, {Kind: ballot.Promise, Seq: 3, Body: []byte{1, 'x'}},
		{Kind: ballot.Promise, Seq: 3, Value: 2, Body: []byte{1, 'x'}},
	} {
		p := newSingle(0)
		p.propose("a")
		p.receive(1, m)
		if p.refused != 1 {
			t.Errorf("%v: refused %d times", m, p.refused)
		}
	}
}

// Value returns the value that a message brings.
func TestValue(t *testing.T) {
	for _, c := range []struct {
		m      parley.Msg
		value  string
		brings bool
	}{
		{parley.Msg{Kind: ballot.Accept, Seq: 3, Body: []byte("a")}, "a", true},
		{parley.Msg{Kind: ballot.Decision, Body: []byte("a")}, "a", true},
		{parley.Msg{Kind: ballot.Promise, Seq: 4, Value: 3, Body: []byte{1, 'a', 'r'}}, "a", true},
		{parley.Msg{Kind: ballot.Promise, Seq: 4, Value: 3}, "", true},
		{parley.Msg{Kind: ballot.Promise, Seq: 4, Body: []byte{0, 'r'}}, "", false},
		{parley.Msg{Kind: ballot.Promise, Seq: 4, Value: 3, Body: []byte{9}}, "", false},
		{parley.Msg{Kind: ballot.Prepare, Seq: 3}, "", false},
	} {
		if v, brings := ballot.Value(c.m); !bytes.Equal(v, []byte(c.value)) || brings != c.brings {
			t.Errorf("%v brings %q, %v", c.m, v, brings)
		}
	}
}

// Termination covers processes that propose: one that only waits may wait forever, if the
// processes that know the decision crash before they send it. If all propose, all terminate.
func TestTerminationIsOfProposers(t *testing.T) {
	p := ballot.New(ballot.Config{N: 3, M: 1})
	h := parley.History{N: 3, Over: true, Faulty: parley.SetOf(2)}
	h.Requests = []parley.ExternalEvent{{At: 0, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("a")}}}
	h.Deliveries = []parley.ExternalEvent{{At: 0, Order: 1, Msg: parley.Msg{Kind: parley.Decide, Body: []byte("a")}}}
	ended := p.Properties[slices.IndexFunc(p.Properties, func(q parley.Property) bool {
		return q.Name == problem.Termination
	})].Check
	if err := ended(&h); err != nil {
		t.Error(err)
	}
	h.Requests = append(h.Requests, parley.ExternalEvent{At: 1, Msg: h.Requests[0].Msg})
	if ended(&h) == nil {
		t.Error("process 1 has proposed and not decided")
	}
	h.Over = false
	if err := ended(&h); err != nil {
		t.Error(err)
	}
}
