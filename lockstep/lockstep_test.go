package lockstep_test

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/lockstep"
	"parley/parleytest"
)

// teller is a protocol in rounds for tests: in each round every process sends
// what emit sends, and records what it absorbs.
type teller struct {
	self   parley.ID
	emit   func(s *parley.Step, r int)
	values []uint64 // absorbed, as 1000*round + 100*sender + value
	closed int      // rounds
	asked  int      // requests
}

func (p *teller) Request(*parley.Step, parley.Msg) { p.asked++ }

func (p *teller) Emit(s *parley.Step, r int) {
	if p.emit != nil {
		p.emit(s, r)
	}
}

func (p *teller) Absorb(s *parley.Step, r int, from parley.ID, m parley.Msg) {
	p.values = append(p.values, uint64(1000*r)+100*uint64(from)+m.Value)
}

func (p *teller) Close(s *parley.Step, r int) {
	p.closed++
	s.Deliver(s.Self, parley.Msg{Kind: parley.Decide, Seq: uint64(r)})
}

func (p *teller) State(v *parley.Vars) {
	parley.Slice(v, "values", &p.values, func(_ int, x *uint64) { parley.Num(v, "value", x) })
	parley.Num(v, "closed", &p.closed)
	parley.Num(v, "asked", &p.asked)
}

func tellers(n, last int, emit func(s *parley.Step, r int)) lockstep.Protocol {
	return lockstep.Protocol{
		Protocol: parley.Protocol{Name: "tell", N: n, M: 1, Kinds: []string{"", "NUMBER"}},
		Last:     last,
		New:      func(self parley.ID) lockstep.Rounds { return &teller{self: self, emit: emit} },
	}
}

// bench is one machine and the host of its steps.
type bench struct {
	machine parley.Machine
	rounds  *teller
	s       parley.Step
	refused []string
}

func (b *bench) Choose(int) int                        { return 0 }
func (b *bench) Sign(parley.ID, []byte) []byte         { return nil }
func (b *bench) Verify(parley.ID, []byte, []byte) bool { return false }
func (b *bench) Refused(_, from parley.ID, why string) {
	b.refused = append(b.refused, fmt.Sprintf("%d: %s", from, why))
}

// seat makes process 1 of the protocol.
func seat(p lockstep.Protocol, when lockstep.Schedule) *bench {
	b := &bench{}
	made := p.New
	p.New = func(self parley.ID) lockstep.Rounds {
		r := made(self)
		b.rounds, _ = r.(*teller)
		return r
	}
	b.machine = lockstep.Of(p, when).New(1)
	b.s = parley.Step{Self: 1, N: p.N, Host: b}
	return b
}

func (b *bench) at(t parley.Tick, clause func()) []parley.Effect {
	b.s.Now, b.s.Effects = t, nil
	clause()
	return b.s.Effects
}

func (b *bench) start(t parley.Tick) []parley.Effect {
	return b.at(t, func() { b.machine.Start(&b.s) })
}
func (b *bench) timeout(t parley.Tick) []parley.Effect {
	return b.at(t, func() { b.machine.Timeout(&b.s, 0) })
}
func (b *bench) receive(t parley.Tick, from parley.ID, m parley.Msg) []parley.Effect {
	return b.at(t, func() { b.machine.Receive(&b.s, from, m) })
}

func frame(r uint64, values ...uint64) parley.Msg {
	m := parley.Msg{Kind: lockstep.Frame, Seq: r}
	for _, v := range values {
		m.Body = parley.AppendMsg(m.Body, 0, parley.Msg{Kind: 1, Value: v})
	}
	return m
}

func (b *bench) want(t *testing.T, refused []string, values ...uint64) {
	t.Helper()
	if !slices.Equal(b.refused, refused) {
		t.Errorf("refused %q, not %q", b.refused, refused)
	}
	if !slices.Equal(b.rounds.values, values) {
		t.Errorf("absorbed %v, not %v", b.rounds.values, values)
	}
	b.refused = nil
}

var hours = lockstep.Schedule{Begin: 100, Delta: 1000}

// A frame of the open round counts in that round, a frame of the next round in the next. Any
// other frame is refused, and so is a second frame of a round.
func TestWindow(t *testing.T) {
	b := seat(tellers(4, 2, nil), hours)
	b.start(0)
	// Before round 0: peers may be in it already.
	b.receive(90, 0, frame(0, 1))
	b.receive(91, 2, frame(1, 2))
	b.receive(92, 2, frame(2, 3))
	b.receive(92, 2, frame(3, 3))
	b.want(t, []string{"2: frame more than a round ahead", "2: frame more than a round ahead",
		"2: frame of a round there is not"})
	b.timeout(100)
	b.want(t, nil)
	b.receive(200, 0, frame(0, 4)) // the second frame of round 0
	b.receive(201, 2, frame(0, 5))
	b.receive(202, 3, frame(1, 6)) // one round ahead
	b.receive(203, 3, frame(1, 7))
	b.receive(203, 3, frame(2, 7))
	b.want(t, []string{"0: second frame of a round", "3: second frame of a round",
		"3: frame more than a round ahead"})
	b.timeout(1100)
	b.want(t, nil, 1, 205)
	b.receive(1101, 2, frame(0, 8)) // too late
	b.receive(1102, 0, frame(1, 9))
	b.receive(1103, 3, frame(1, 9)) // the first was early
	b.want(t, []string{"2: late frame", "3: second frame of a round"}, 1, 205)
	b.timeout(2100)
	b.want(t, nil, 1, 205, 1009, 1306)
	b.receive(2200, 2, frame(3, 1))
	b.want(t, []string{"2: frame of a round there is not"}, 1, 205, 1009, 1306)
	b.timeout(3100)
	if b.rounds.closed != 3 {
		t.Error(b.rounds.closed, "rounds were closed")
	}
	b.receive(3101, 2, frame(2, 1))
	b.want(t, []string{"2: frame after the last round"}, 1, 205, 1009, 1306)
	// An unexpected timer does no harm.
	if e := b.timeout(4100); len(e) != 0 || b.rounds.closed != 3 {
		t.Error(e, b.rounds.closed)
	}
}

// Receive refuses a message that is not a frame. If a part of a frame cannot be read, no part
// of it counts.
func TestMalformed(t *testing.T) {
	b := seat(tellers(4, 0, nil), hours)
	b.start(0)
	b.timeout(100)
	other := frame(0, 1)
	other.Kind = 2
	origin, value := frame(0, 1), frame(0, 1)
	origin.Origin, value.Value = 1, 1
	for _, m := range []parley.Msg{other, origin, value} {
		b.receive(101, 2, m)
	}
	b.want(t, []string{"2: not a frame", "2: not a frame", "2: not a frame"})
	cut := frame(0, 1, 2)
	cut.Body = cut.Body[:len(cut.Body)-1]
	local := frame(0, 3)
	local.Body = append(local.Body, 0, byte(parley.Decide), 0, 0, 0, 0)
	b.receive(102, 0, cut)
	b.receive(103, 2, local)
	b.receive(104, 3, frame(0, 5))
	// Rounds ignore an indication from beneath.
	b.receive(105, 1, parley.Msg{Kind: parley.Suspect})
	b.timeout(1100)
	b.want(t, []string{"0: malformed frame", "2: malformed frame"}, 305)
}

// Frames are absorbed in the order of their senders, whatever the order of
// arrival: the state after the round is the same.
func TestOrderOfSenders(t *testing.T) {
	var states []string
	for _, order := range [][]parley.ID{{0, 2, 3}, {3, 2, 0}, {2, 0, 3}, {3, 0, 2}} {
		b := seat(tellers(4, 0, nil), hours)
		b.start(0)
		b.timeout(100)
		for _, from := range order {
			b.receive(200, from, frame(0, 1, 2))
		}
		states = append(states, string(parley.Save(b.machine, 300, nil)))
		b.timeout(1100)
		b.want(t, nil, 1, 2, 201, 202, 301, 302)
		for _, v := range parley.Show(b.machine, 1100) {
			if strings.HasSuffix(v.Name, ".frame") && v.Value != `""` {
				t.Errorf("%s is left of a round that is over: %s", v.Name, v.Value)
			}
		}
		states = append(states, string(parley.Save(b.machine, 1100, nil)))
	}
	for i := range states {
		if states[i] != states[i%2] {
			t.Error("the order of arrival is in the state")
		}
	}
}

func bodies(effects []parley.Effect) (to []parley.ID, bodies [][]byte) {
	for _, e := range effects {
		if e.Op == parley.OpSend {
			to, bodies = append(to, e.To), append(bodies, e.Msg.Body)
		}
	}
	return to, bodies
}

// Every process sends one frame to every other in every round: an empty one if it
// has nothing to send, one frame for all if all get the same, and otherwise one
// body for neighbors that get the same.
func TestFrames(t *testing.T) {
	say := func(v uint64) parley.Msg { return parley.Msg{Kind: 1, Value: v, Body: []byte{byte(v)}} }
	shared := say(9)
	for name, c := range map[string]struct {
		emit   func(s *parley.Step, r int)
		to     []parley.ID
		frames []parley.Msg
		bodies int // different ones in memory
	}{
		"nothing": {nil, []parley.ID{parley.All}, []parley.Msg{frame(0)}, 1},
		"the same to all": {
			func(s *parley.Step, _ int) { s.SendAll(say(1)); s.SendAll(say(2)) },
			[]parley.ID{parley.All}, nil, 1,
		},
		"one to all, one to one": {
			func(s *parley.Step, _ int) { s.SendAll(shared); s.Send(2, say(2)) },
			[]parley.ID{0, 2, 3, 4}, nil, 3, // 0 alone, 2 alone, 3 and 4
		},
		"the same to some": {
			func(s *parley.Step, _ int) { s.SendTo(parley.SetOf(2, 3, 4), shared) },
			[]parley.ID{0, 2, 3, 4}, nil, 2,
		},
		"own copy": {
			func(s *parley.Step, _ int) { s.Keep(shared) },
			[]parley.ID{parley.All}, []parley.Msg{frame(0)}, 1,
		},
	} {
		b := seat(tellers(5, 1, c.emit), hours)
		b.start(0)
		effects := b.timeout(100)
		to, sent := bodies(effects)
		if !slices.Equal(to, c.to) {
			t.Errorf("%s: frames to %v, not %v", name, to, c.to)
		}
		different := make(map[*byte]bool)
		for i, body := range sent {
			var first *byte
			if len(body) > 0 {
				first = &body[0]
			}
			different[first] = true
			if i < len(c.frames) && !bytes.Equal(body, c.frames[i].Body) {
				t.Errorf("%s: frame %x", name, body)
			}
		}
		if len(different) != c.bodies {
			t.Errorf("%s: %d bodies, not %d", name, len(different), c.bodies)
		}
		for _, e := range effects {
			if e.Op == parley.OpSend && (e.Msg.Kind != lockstep.Frame || e.Msg.Seq != 0 || e.Path != 0 ||
				e.Msg.Value != 0) {
				t.Errorf("%s: %+v", name, e)
			}
		}
	}
	// The frames hold what was sent, with its paths.
	b := seat(tellers(3, 0, func(s *parley.Step, _ int) {
		s.SendAll(say(1))
		mark := s.Mark()
		s.Send(2, say(2))
		s.Lower(mark, 2, 3)
	}), hours)
	b.start(0)
	_, sent := bodies(b.timeout(100))
	if have := lockstep.Open(parley.Msg{Kind: lockstep.Frame, Body: sent[0]}); !reflect.DeepEqual(have,
		[]parley.Outgoing{{Msg: say(1)}}) {
		t.Errorf("%+v", have)
	}
	if have := lockstep.Open(parley.Msg{Kind: lockstep.Frame, Body: sent[1]}); !reflect.DeepEqual(have,
		[]parley.Outgoing{{Msg: say(1)}, {Path: 3, Msg: say(2)}}) {
		t.Errorf("%+v", have)
	}
	if lockstep.Open(parley.Msg{Kind: 2, Body: sent[1]}) != nil ||
		lockstep.Open(parley.Msg{Kind: lockstep.Frame, Body: []byte{1}}) != nil {
		t.Error("what is no frame was opened")
	}
}

// Start comes first, then requests, then round 0; a later value is refused.
func TestRequests(t *testing.T) {
	b := seat(tellers(3, 1, nil), hours)
	b.start(0)
	ask := func() { b.machine.Request(&b.s, parley.Msg{Kind: parley.Propose}) }
	b.at(50, ask)
	b.timeout(100)
	b.at(150, ask)
	if b.rounds.asked != 1 {
		t.Error(b.rounds.asked, "requests came through")
	}
}

// timer returns the time at which the round timer was set to expire.
func timer(t *testing.T, now parley.Tick, effects []parley.Effect) parley.Tick {
	t.Helper()
	at := parley.Tick(-1)
	for _, e := range effects {
		if e.Op == parley.OpSetTimer {
			at = now + e.After
		}
	}
	if at < 0 {
		t.Fatal("no timer was set")
	}
	return at
}

// Deadlines follow the schedule, whatever the local progress: late timers and early
// closes do not move them.
func TestDeadlines(t *testing.T) {
	b := seat(tellers(3, 3, nil), hours)
	if at := timer(t, 7, b.start(7)); at != 100 {
		t.Error("round 0 is to begin at", at)
	}
	if at := timer(t, 130, b.timeout(130)); at != 1100 { // 30 late
		t.Error("round 0 is to end at", at)
	}
	if at := timer(t, 1105, b.timeout(1105)); at != 2100 {
		t.Error("round 1 is to end at", at)
	}
	// A timer of a round that was closed early ends no round.
	if e := b.timeout(2099); len(e) != 0 || b.rounds.closed != 1 {
		t.Error(e, b.rounds.closed)
	}
	early := hours
	early.Early = true
	b = seat(tellers(3, 3, nil), early)
	b.start(0)
	b.timeout(100)
	b.receive(200, 0, frame(0))
	if at := timer(t, 210, b.receive(210, 2, frame(0))); at != 2100 {
		t.Error("round 1, begun early, is to end at", at)
	}
	// Rounds that are complete already close at once: round 1 when round 0 does, and round 2.
	b.receive(220, 0, frame(1))
	b.receive(221, 0, frame(2))
	b.receive(222, 2, frame(1))
	if b.rounds.closed != 2 {
		t.Error(b.rounds.closed, "rounds were closed")
	}
	b.receive(223, 2, frame(2))
	if b.rounds.closed != 3 {
		t.Error(b.rounds.closed, "rounds were closed")
	}
	b.want(t, nil)
}

// Frames that came before round 0 began close it at once, if all are in.
func TestEarlyBeforeBegin(t *testing.T) {
	early := hours
	early.Early = true
	b := seat(tellers(3, 1, nil), early)
	b.start(0)
	b.receive(98, 0, frame(0, 1))
	b.receive(99, 2, frame(0, 2))
	effects := b.timeout(100)
	b.want(t, nil, 1, 202)
	if to, _ := bodies(effects); b.rounds.closed != 1 || len(to) != 2 {
		t.Errorf("%d rounds were closed, %d frames sent", b.rounds.closed, len(to))
	}
	if at := timer(t, 100, effects); at != 2100 {
		t.Error("round 1 is to end at", at)
	}
}

// A process that starts after the beginning of round 0 takes no part in the rounds:
// their times do not depend on it.
func TestLateStart(t *testing.T) {
	b := seat(tellers(3, 3, nil), hours)
	if e := b.start(101); len(e) != 0 {
		t.Errorf("%+v", e)
	}
	b.receive(600, 0, frame(0, 1))
	b.want(t, []string{"0: frame after the last round"})
	b = seat(tellers(3, 3, nil), hours)
	if at := timer(t, 100, b.start(100)); at != 100 {
		t.Error("round 0 is to begin at", at)
	}
}

// A process that wakes later than the slack sends nothing late and decides nothing,
// in whatever round that is: before the first, in the middle or at the end.
func TestAbstains(t *testing.T) {
	loose, tight, short := hours, hours, lockstep.Schedule{Begin: 100, Delta: 5}
	loose.Slack, tight.Slack = 1000, 1
	for name, c := range map[string]struct {
		when  lockstep.Schedule
		slack parley.Tick
	}{"a twentieth": {hours, 50}, "all": {loose, 1000}, "as good as none": {tight, 1}, "short rounds": {short, 1}} {
		for r := -1; r <= 3; r++ { // the round at whose end it wakes
			for _, late := range []parley.Tick{0, 1, c.slack - 1, c.slack, c.slack + 1, 9000} {
				b := seat(tellers(3, 3, nil), c.when)
				b.start(0)
				end := func(r int) parley.Tick { return c.when.Begin + parley.Tick(r+1)*c.when.Delta }
				for before := -1; before < r; before++ {
					b.timeout(end(before))
				}
				effects := b.timeout(end(r) + late)
				to, _ := bodies(effects)
				if late < c.slack || late == 0 {
					if len(b.refused) != 0 || b.rounds.closed != r+1 || (len(to) == 1) != (r < 3) {
						t.Errorf("%s, round %d, %d late: refused %q, closed %d, sent to %v", name, r, late, b.refused, b.rounds.closed, to)
					}
					continue
				}
				if len(effects) != 0 || b.rounds.closed != max(r, 0) {
					t.Errorf("%s, round %d, %d late: %+v, closed %d", name, r, late, effects, b.rounds.closed)
				}
				b.receive(end(r)+late, 0, frame(2, 1))
				b.want(t, []string{"1: woke too late: abstains", "0: frame after the last round"})
			}
		}
	}
}

// The clock decides what is late, not the timer: a frame that arrives when the round's time
// is over, even in the very tick of its end, does not count although the round is still
// open, whether the timer or the frame comes first; and a frame of the next round that
// arrives then counts in the next round.
func TestLateFrames(t *testing.T) {
	for _, early := range []bool{false, true} {
		when := hours
		when.Early = early
		b := seat(tellers(4, 2, nil), when)
		b.start(0)
		b.timeout(100)
		b.receive(1099, 0, frame(0, 1))
		b.receive(1100, 2, frame(0, 2))
		b.receive(1101, 3, frame(0, 3))
		b.receive(1102, 3, frame(1, 4))
		b.receive(1103, 2, frame(0, 5))
		b.want(t, []string{"2: late frame", "3: late frame", "2: late frame"})
		b.timeout(1149)
		b.want(t, nil, 1)
		b.receive(1200, 2, frame(0, 6))
		b.receive(2099, 2, frame(1, 7))
		b.want(t, []string{"2: late frame"}, 1)
		b.timeout(2100)
		b.want(t, nil, 1, 1207, 1304)
		// After its time is over, the last frame of a round does not close it.
		b.receive(2200, 0, frame(2, 1))
		b.receive(2300, 2, frame(2, 1))
		b.receive(3100, 3, frame(2, 1))
		if b.rounds.closed != 2 {
			t.Error(b.rounds.closed, "rounds were closed")
		}
		b.want(t, []string{"3: late frame"}, 1, 1207, 1304)
	}
	// The same holds before round 0, and for the round after the open one.
	b := seat(tellers(4, 2, nil), hours)
	b.start(0)
	b.receive(1100, 0, frame(0, 1))
	b.receive(1100, 2, frame(0, 2))
	b.want(t, []string{"0: late frame", "2: late frame"})
	b = seat(tellers(4, 2, nil), hours)
	b.start(0)
	b.timeout(100)
	b.receive(2100, 0, frame(1, 1))
	b.want(t, []string{"0: late frame"})
}

// A process that has closed its last round has no timer, and one that is in a round
// has only the timer of its end.
func TestNoTimerLeft(t *testing.T) {
	early := hours
	early.Early = true
	b := seat(tellers(3, 1, nil), early)
	running := 0
	count := func(effects []parley.Effect) {
		for _, e := range effects {
			switch e.Op {
			case parley.OpSetTimer:
				running = 1 // replaces the timer before
			case parley.OpStopTimer:
				running = 0
			}
		}
	}
	count(b.start(0))
	count(b.timeout(100))
	for r := range uint64(2) {
		for _, from := range []parley.ID{0, 2} {
			if running != 1 {
				t.Errorf("round %d: no timer", r)
			}
			count(b.receive(200, from, frame(r)))
		}
	}
	if running != 0 || b.rounds.closed != 2 {
		t.Error("a timer is left after the last round, or it is open: ", b.rounds.closed)
	}
}

// NewInstance panics for an inconsistent schedule.
func TestSchedulesThatAreNone(t *testing.T) {
	for _, when := range []lockstep.Schedule{{}, {Delta: -1}, {Delta: 10, Slack: -1}, {Delta: 10, Slack: 11}} {
		if !parleytest.Panics(func() { lockstep.Of(tellers(3, 0, nil), when).New(0) }) {
			t.Errorf("%+v is taken", when)
		}
	}
}

// A process that restarts after a crash has missed rounds and takes no part.
func TestRestart(t *testing.T) {
	b := seat(tellers(3, 3, nil), hours)
	b.s.Restart = true
	if e := b.start(500); len(e) != 0 {
		t.Errorf("%+v", e)
	}
	b.s.Restart = false
	b.receive(600, 0, frame(0, 1))
	b.at(600, func() { b.machine.Request(&b.s, parley.Msg{Kind: parley.Propose}) })
	b.want(t, []string{"0: frame after the last round", "1: request after round 0"})
	if b.rounds.asked != 0 || b.rounds.closed != 0 {
		t.Error("it takes part")
	}
}

// A message sent outside Emit would be lost: it is a fault of the protocol.
func TestSendOutsideEmit(t *testing.T) {
	b := seat(lockstep.Protocol{
		Protocol: parley.Protocol{N: 3}, New: func(parley.ID) lockstep.Rounds { return &late{} },
	}, hours)
	b.start(0)
	b.timeout(100)
	if !parleytest.Panics(func() { b.timeout(1100) }) {
		t.Error("it goes unnoticed")
	}
}

type late struct{ teller }

func (*late) Close(s *parley.Step, r int) { s.SendAll(parley.Msg{Kind: 1}) }
