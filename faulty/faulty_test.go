package faulty_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/faulty"
	"parley/lockstep"
	"parley/parleytest"
	"parley/sim"
	"parley/trace"
)

// voter is a process of a protocol for tests: in each of three rounds it sends
// all its value, and records what it receives.
type voter struct {
	value uint64
	heard []uint64
}

func (p *voter) Request(_ *parley.Step, m parley.Msg) { p.value = uint64(m.Body[0] - '0') }

func (p *voter) Emit(s *parley.Step, r int) { s.SendAll(parley.Msg{Kind: 1, Value: p.value}) }

func (p *voter) Absorb(_ *parley.Step, r int, from parley.ID, m parley.Msg) {
	p.heard = append(p.heard, uint64(r)*100+uint64(from)*10+m.Value)
}

func (p *voter) Close(s *parley.Step, r int) {
	if r == 2 {
		s.Deliver(s.Self, parley.Msg{Kind: parley.Decide, Value: p.value})
	}
}

func (p *voter) State(v *parley.Vars) {
	parley.Num(v, "value", &p.value)
	parley.Slice(v, "heard", &p.heard, func(_ int, x *uint64) { parley.Num(v, "heard", x) })
}

const n = 6

// voting is the protocol. A faulty process may send its value (0), 7, 8, or
// nothing.
func voting() parley.Protocol {
	return lockstep.Of(lockstep.Protocol{
		Protocol: parley.Protocol{
			Name: "voting", N: n, M: 2, Faults: parley.OralByzantineFaults, Proposers: parley.Everyone(n), Lies: lies,
			Properties: []parley.Property{{Name: "three rounds", Check: func(h *parley.History) error {
				if len(h.Deliveries) < h.N-h.Faulty.Len() {
					return fmt.Errorf("%d deliveries", len(h.Deliveries))
				}
				return nil
			}}},
		},
		Last: 2,
		New:  func(parley.ID) lockstep.Rounds { return &voter{} },
	}, lockstep.Simulated)
}

func lies(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	out := slices.Clone(t.Honest)
	switch s.Choose(4) {
	case 1:
		out[0].Msg.Value = 7
	case 2:
		out[0].Msg.Value = 8
	case 3:
		return nil
	}
	return out
}

// said is what a process sent to another in a round, -1 for no frame at all.
type said map[[2]int]int // round, receiver

// told runs with the given processes faulty and returns what process 2 sent.
func told(t *testing.T, seed uint64, how map[parley.ID]faulty.Behavior) said {
	t.Helper()
	s := sim.Options{Protocol: voting(), Faulty: how, Seed: seed, Log: &trace.Log{Keep: true}}
	for id := range parley.ID(n) {
		s.Requests = append(s.Requests, sim.Request{At: id, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("1")}})
	}
	got := sim.Run(s)
	if len(got.Stats.Refused) > 0 {
		t.Fatalf("refused: %v", got.Stats.Refused)
	}
	out := make(said)
	for r := range 3 {
		for to := range n {
			if to != 2 {
				out[[2]int{r, to}] = -1
			}
		}
	}
	for _, e := range s.Log.Events {
		if e.Op == trace.Receive && e.Peer == 2 {
			for _, m := range lockstep.Open(e.Msg) {
				out[[2]int{int(e.Msg.Seq), int(e.At)}] = int(m.Msg.Value)
			}
		}
	}
	return out
}

func one(b faulty.Behavior) map[parley.ID]faulty.Behavior {
	return map[parley.ID]faulty.Behavior{2: b}
}

// Each behavior sends what it should: to every process in every round.
func TestBehaviors(t *testing.T) {
	for _, c := range []struct {
		how  faulty.Behavior
		want func(r, to int) int
	}{
		{faulty.Honest, func(r, to int) int { return 1 }},
		{faulty.Script, func(r, to int) int { return 1 }},
		{faulty.Silent, func(r, to int) int { return -1 }},
		{faulty.Flip, func(r, to int) int { return 7 }},
		{faulty.TwoFaced, func(r, to int) int {
			if to > n/2 {
				return 7
			}
			return 1
		}},
		{faulty.Twin, func(r, to int) int { // the second copy got another value
			if to > n/2 {
				return 0
			}
			return 1
		}},
		{faulty.Crash(1, 3), func(r, to int) int { // receivers 0, 1, 3, and then no more
			if r == 0 || r == 1 && to <= 3 {
				return 1
			}
			return -1
		}},
		{faulty.Crash(2, 0), func(r, to int) int {
			if r < 2 {
				return 1
			}
			return -1
		}},
		{faulty.CrashAt(1500), func(r, to int) int { // it sends at 950, 1950, ...
			if r == 0 {
				return 1
			}
			return -1
		}},
	} {
		have := told(t, 1, one(c.how))
		for at, v := range have {
			if want := c.want(at[0], at[1]); v != want {
				t.Errorf("%s: in round %d process %d is told %d, not %d", c.how.Name, at[0], at[1], v, want)
			}
		}
	}
}

// Random behaviors send everything that they may, and nothing else.
func TestChance(t *testing.T) {
	for _, c := range []struct {
		how  faulty.Behavior
		want []int
	}{
		{faulty.Random, []int{-1, 1, 7, 8}}, {faulty.Any, []int{-1, 1, 7, 8}},
		{faulty.SendOmission, []int{-1, 1}}, {faulty.ReceiveOmission, []int{1}},
	} {
		seen := make(map[int]int)
		for seed := range uint64(40) {
			for _, v := range told(t, seed, one(c.how)) {
				seen[v]++
			}
		}
		if have := slices.Sorted(maps.Keys(seen)); !slices.Equal(have, c.want) {
			t.Errorf("%s says %v, not %v", c.how.Name, have, c.want)
		}
		for v, times := range seen {
			if share := float64(times) / (40 * 15); share < 0.7/float64(len(c.want)) {
				t.Errorf("%s says %d in only %.2f of all cases", c.how.Name, v, share)
			}
		}
	}
}

// The copy of a process that omits to receive misses about one half of the messages; a
// copy of a twin receives from its own half of the others.
func TestHearing(t *testing.T) {
	heard := func(how faulty.Behavior, name string) (values []string) {
		c := faulty.New(voting(), 0, one(how))
		s := step(2)
		c.Start(s)
		s.Now = 0
		c.Request(s, parley.Msg{Kind: parley.Propose, Body: []byte("1")})
		timeout(c, s)
		for from := range parley.ID(n) {
			if from != 2 {
				m := parley.Msg{Kind: lockstep.Frame, Body: parley.AppendMsg(nil, 0, parley.Msg{Kind: 1, Value: 1})}
				c.Receive(s, from, m)
			}
		}
		s.Now = 1000
		timeout(c, s)
		for _, v := range parley.Show(c, 1000) {
			if strings.HasPrefix(v.Name, "member[2]."+name+".rounds.heard") {
				values = append(values, v.Value)
			}
		}
		return values
	}
	if have := heard(faulty.Twin, "copy"); !slices.Equal(have, []string{"1", "11", "31"}) {
		t.Error("one copy hears", have)
	}
	if have := heard(faulty.Twin, "twin"); !slices.Equal(have, []string{"41", "51"}) {
		t.Error("the other copy hears", have)
	}
	if have := heard(faulty.Flip, "copy"); len(have) != n-1 {
		t.Error("a liar's copy hears", have)
	}
	if have := heard(faulty.ReceiveOmission, "copy"); len(have) != 3 { // the host chooses 0, 1, 0, 1, 0
		t.Error("of five", have, "are heard")
	}
	if have := heard(faulty.CrashAt(0), "copy"); !slices.Equal(have, []string{"none"}) {
		t.Error("a crashed process hears", have)
	}
}

// timeout ends the round of all copies: those of a twin have a timer each.
func timeout(c *faulty.Coalition, s *parley.Step) {
	for path := range parley.Path(2) {
		s.Path = path
		c.Timeout(s, 0)
	}
	s.Path = 0
}

// A twin's copies have their own timers, which need not be the same, and no machine may use
// the coalition's own timer.
func TestTwinTimers(t *testing.T) {
	p := parley.Protocol{Name: "alarm", N: n, New: func(parley.ID) parley.Machine { return &alarm{} }}
	c := faulty.New(p, 0, one(faulty.Twin))
	s := step(2)
	set := func(from parley.ID, number parley.Timer) (paths []parley.Path) {
		s.Effects = s.Effects[:0]
		c.Receive(s, from, parley.Msg{Kind: 1, Value: uint64(number)})
		for _, e := range s.Effects {
			if e.Op == parley.OpSetTimer && e.Timer == number {
				paths = append(paths, e.Path)
			}
		}
		return paths
	}
	if low, high := set(0, 7), set(n-1, 8); !slices.Equal(low, []parley.Path{0}) || !slices.Equal(high, []parley.Path{1}) {
		t.Errorf("timers are set at %v and %v", low, high)
	}
	s.Path = 1
	c.Timeout(s, 8)
	var rung []string
	for _, v := range parley.Show(c, 0) {
		if strings.HasSuffix(v.Name, ".rung") {
			rung = append(rung, v.Value)
		}
	}
	if !slices.Equal(rung, []string{"0", "8"}) {
		t.Errorf("timers rang %v", rung)
	}
	if !parleytest.Panics(func() { set(0, 0xFFFF) }) {
		t.Error("a machine used the coalition's timer")
	}
}

// alarm sets the given timer, and records which one expired.
type alarm struct {
	parley.Base
	rung parley.Timer
}

func (a *alarm) Receive(s *parley.Step, _ parley.ID, m parley.Msg) {
	s.SetTimer(parley.Timer(m.Value), 5)
}
func (a *alarm) Timeout(_ *parley.Step, t parley.Timer) { a.rung = t }
func (a *alarm) State(v *parley.Vars)                   { parley.Num(v, "rung", &a.rung) }

// The order in which a round's frames came, and the IDs of its members, make no
// other coalition.
func TestCanonicalCoalition(t *testing.T) {
	p := voting()
	p.Overhears = true
	make := func(order ...parley.ID) *faulty.Coalition {
		c := faulty.New(p, 0, map[parley.ID]faulty.Behavior{2: faulty.Flip, 4: faulty.Flip})
		for _, id := range []parley.ID{2, 4} {
			s := step(id)
			c.Start(s)
			c.Request(s, parley.Msg{Kind: parley.Propose, Body: []byte{'0' + byte(id/4)}})
			c.Timeout(s, 0)
		}
		for _, from := range order {
			m := parley.Msg{Kind: lockstep.Frame, Body: parley.AppendMsg(nil, 0, parley.Msg{Kind: 1, Value: uint64(from)})}
			c.Receive(step(2), from, m)
		}
		return c
	}
	a, b := parley.Save(make(0, 1, 5), 0, nil), parley.Save(make(5, 0, 1), 0, nil)
	if !slices.Equal(a, b) {
		t.Errorf("two orders, two states:\n%x\n%x", a, b)
	}
	swap := parley.Renaming{Perm: []parley.ID{0, 1, 4, 3, 2, 5}}
	once := parley.SaveRenamed(make(), 0, swap, nil)
	if slices.Equal(once, parley.Save(make(), 0, nil)) {
		t.Error("members with different values were renamed, and nothing changed")
	}
	c := make()
	if !parley.Load(c, 0, once) || !slices.Equal(parley.SaveRenamed(c, 0, swap, nil), parley.Save(make(), 0, nil)) {
		t.Error("renaming there and back is not nothing")
	}
}

// step is a step of a process with a host that chooses 0, 1, 0, 1, ...
func step(self parley.ID) *parley.Step {
	return &parley.Step{Self: self, N: n, Members: parley.SetOf(2, 4), Host: &alternating{}}
}

type alternating struct{ k int }

func (a *alternating) Choose(n int) int                      { a.k++; return (a.k - 1) % 2 % n }
func (a *alternating) Sign(as parley.ID, _ []byte) []byte    { return []byte{byte(as)} }
func (a *alternating) Verify(parley.ID, []byte, []byte) bool { return true }
func (a *alternating) Refused(parley.ID, parley.ID, string)  {}

// The coalition rushes: when it sends in a round it has received what every correct
// process sent each member in that round, but not what members sent one another;
// and it is still in time.
func TestRushing(t *testing.T) {
	spoken := 0
	for seed := range uint64(50) {
		watching := faulty.Behavior{Name: "watching", Overhears: true, Tell: func(s *parley.Step, turn *parley.Turn) []parley.Outgoing {
			r := turn.Honest[0].Msg.Seq
			seen := make(map[[2]parley.ID]bool)
			for got := range turn.Seen {
				if got.From == 2 || got.From == 4 || got.To != 2 && got.To != 4 {
					t.Fatalf("seen: %+v", got)
				}
				if got.Msg.Seq == r {
					seen[[2]parley.ID{got.From, got.To}] = true
				}
			}
			if len(seen) != 2*(n-2) {
				t.Fatalf("seed %d, round %d: %d frames are seen of %d", seed, r, len(seen), 2*(n-2))
			}
			if turn.Members != parley.SetOf(2, 4) || turn.Self != s.Self || turn.To == 2 || turn.To == 4 {
				t.Fatalf("%+v", turn)
			}
			spoken++
			return turn.Honest
		}}
		for at, v := range told(t, seed, map[parley.ID]faulty.Behavior{2: watching, 4: watching}) {
			if v != 1 {
				t.Fatalf("seed %d: %v is told %d", seed, at, v)
			}
		}
	}
	if spoken != 50*3*2*(n-2) {
		t.Error(spoken, "turns")
	}
}

// A member signs for every member and for no other process.
func TestSignAs(t *testing.T) {
	signed, refused := 0, 0
	signing := faulty.Behavior{Name: "signing", Tell: func(s *parley.Step, turn *parley.Turn) []parley.Outgoing {
		for id := range parley.ID(n) {
			func() {
				defer func() {
					if recover() != nil {
						refused++
					}
				}()
				if b := []byte("b"); s.Verify(id, b, s.SignAs(id, b)) {
					if signed++; id != 2 && id != 4 {
						t.Errorf("%d gets the signature of %d", s.Self, id)
					}
				}
			}()
		}
		return turn.Honest
	}}
	told(t, 1, map[parley.ID]faulty.Behavior{2: signing, 4: signing})
	if turns := 3 * 2 * (n - 2); signed != 2*turns || refused != (n-2)*turns {
		t.Error(signed, "signatures,", refused, "refused")
	}
}

// Tell gets what the honest copy would send; a behavior's choices go to the host,
// and those of Lies do not.
func TestChooseAsksHost(t *testing.T) {
	asked := 0
	how := faulty.Behavior{Name: "asking", Choose: func(s *parley.Step, turn *parley.Turn, k, m int) int {
		if k != 0 || m != 4 {
			t.Errorf("choice %d of %d", k, m)
		}
		asked++
		return 1 + s.Choose(2)
	}}
	seen := make(map[int]bool)
	for _, v := range told(t, 3, one(how)) {
		seen[v] = true
	}
	if asked != 3*(n-1) || !reflect.DeepEqual(seen, map[int]bool{7: true, 8: true}) {
		t.Error(asked, seen)
	}
}

// With rush 0 the coalition sends at once; an asynchronous protocol has no round
// to wait for.
func TestAtOnce(t *testing.T) {
	p := parley.Protocol{N: n, New: func(parley.ID) parley.Machine { return &parrot{} }}
	c := faulty.New(p, 0, map[parley.ID]faulty.Behavior{2: faulty.Honest, 4: faulty.Silent})
	if seat := c.Seat(); !slices.Equal(seat.IDs, []parley.ID{2, 4}) || !seat.Rushing ||
		seat.Machine != parley.Machine(c) {
		t.Errorf("%+v", seat)
	}
	s := step(2)
	s.Path = 9
	c.Receive(s, 0, parley.Msg{Kind: 1, Value: 5})
	if len(s.Effects) != 1 || s.Effects[0].To != parley.All || s.Effects[0].From != 2 ||
		s.Effects[0].Msg.Value != 5 {
		t.Errorf("%+v", s.Effects)
	}
	s = step(4)
	c.Receive(s, 0, parley.Msg{Kind: 1, Value: 5})
	for _, e := range s.Effects {
		if e.From != 4 || e.To != 2 { // to its own members it is honest
			t.Errorf("%+v", e)
		}
	}
	if !parleytest.Panics(func() { c.Receive(step(3), 0, parley.Msg{}) }) {
		t.Error("an event for a correct process is taken in")
	}
}

type parrot struct{ parley.Base }

func (*parrot) Receive(s *parley.Step, _ parley.ID, m parley.Msg) { s.SendAll(m) }
func (*parrot) State(*parley.Vars)                                {}

// Parse reads the names of the command line, and refuses others with a list of the
// allowed ones.
func TestParse(t *testing.T) {
	for _, b := range faulty.Named() {
		if have, err := faulty.Parse(b.Name); err != nil || have.Name != b.Name {
			t.Errorf("%s: %v", b.Name, err)
		}
	}
	for text, want := range map[string]string{
		"crash@r2": "crash@r2:0", "crash@r2:3": "crash@r2:3", "crash@40ms": "crash@40ms", "crash@0s": "crash@0s",
	} {
		if have, err := faulty.Parse(text); err != nil || have.Name != want {
			t.Errorf("%s is read as %s, %v", text, have.Name, err)
		}
	}
	const crash, all = "is not a crash: allowed are crash@rR, ", "allowed are honest, silent, flip, twofaced, "
	for text, want := range map[string]string{
		"": all, "lies": all, "crash": "did you mean crash@r1?", "Silent": "did you mean silent?", "crash@": crash, "crash@r": crash,
		"crash@r1:": crash, "crash@r1:2:3": crash, "crash@r-1": crash, "crash@rx": crash, "crash@-1s": crash,
		"crash@1": crash, "crash@r70000": crash,
	} {
		if _, err := faulty.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	names := faulty.Named()
	names[0].Name = "changed"
	if faulty.Named()[0].Name != "honest" {
		t.Error("Named gives its own list away")
	}
}

// The protocol suite passes for a coalition: saved and loaded in the middle of runs,
// with what it holds back and has received.
func TestSuite(t *testing.T) {
	parleytest.Suite(t, voting(), parleytest.Options{Seeds: 100})
}

// The model of a behavior is the mildest that has it.
func TestModels(t *testing.T) {
	for name, want := range map[string]parley.FaultModel{
		"silent": parley.CrashFaults, "crash@r1": parley.CrashFaults, "crash@1s": parley.CrashFaults,
		"omit-send": parley.OmissionFaults, "omit-receive": parley.OmissionFaults,
		"flip": parley.SignedByzantineFaults, "twofaced": parley.SignedByzantineFaults,
		"twin":   parley.SignedByzantineFaults,
		"random": parley.SignedByzantineFaults,
	} {
		if b, err := faulty.Parse(name); err != nil || b.Model != want {
			t.Errorf("%s is of the model %v: %v", name, b.Model, err)
		}
	}
}
