package stream

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/tetra"
	"parley/faulty"
	"parley/sim"
)

var seeds = flag.Int("seeds", 200, "runs of TestViewsInStorms")

// views is a stream without rounds, and viewWait the length of its view 0.
func views(source parley.ID, n, window int) Config {
	return Config{Key: Key{Tetra, Tetra.Most(n), source}, N: n, Window: window}
}

const viewWait = viewRounds * 3000

// slotForger says anything to anybody: what it would say, or other values, other views, and other slots.
var slotForger = faulty.Behavior{Name: "forger", Model: parley.OralByzantineFaults, Tell: forge}

func forge(s *parley.Step, t *parley.Turn) (out []parley.Outgoing) {
	value := func() []byte { return [][]byte{marked([]byte("0")), marked([]byte("1")), nil}[s.Choose(3)] }
	slot := uint64(1)
	for _, honest := range t.Honest {
		m := &honest.Msg
		slot = max(slot, min(m.Seq, 1000))
		switch s.Choose(4) {
		case 0, 1:
			out = append(out, honest)
		case 2:
			if m.Kind != tetra.Enter && m.Kind != tetra.Wish && m.Kind <= tetra.Decided {
				m.Body = value()
			}
			out = append(out, honest)
		}
	}
	for range s.Choose(4) {
		m := parley.Msg{Body: value()}
		switch s.Choose(7) {
		case 0:
			m.Kind = tetra.Ready
		case 1:
			m.Kind = tetra.Echo
		case 2:
			m.Kind, m.Seq, m.Value = tetra.Vote, 1+uint64(s.Choose(2)), uint64(1+s.Choose(4))
		case 3:
			m.Kind, m.Seq = tetra.Proposal, uint64(s.Choose(3))
		case 4:
			m = parley.Msg{Kind: tetra.Wish, Seq: 1 + uint64(s.Choose(2))}
		case 5:
			m.Kind = []parley.Kind{tetra.Vouch, tetra.Decided}[s.Choose(2)]
		case 6:
			m = parley.Msg{Kind: silence, Seq: slot + uint64(s.Choose(8))}
			out = append(out, parley.Outgoing{Msg: m})
			continue
		}
		out = append(out, parley.Outgoing{Msg: wrapped(m, slot+uint64(s.Choose(4)))})
	}
	return out
}

// storm draws a run: some liars, crashes in the middle of steps, slow links, and at the end good links.
func storm(seed uint64) (Config, sim.Options) {
	r := rand.New(rand.NewPCG(seed, 99))
	n := 4
	if r.IntN(5) == 0 {
		n = 7
	}
	c := views(parley.ID(r.IntN(n)), n, []int{1, 2, 4, 16}[r.IntN(4)])
	opt := sim.Options{Seed: seed, Faulty: map[parley.ID]faulty.Behavior{}, Until: 80_000_000, Steps: 1 << 20}
	how := []faulty.Behavior{slotForger, slotForger, faulty.Any, faulty.Silent, faulty.Twin, faulty.TwoFaced}
	// A process without its disk counts as faulty.
	lost := r.IntN(4) == 0
	liars := c.M - r.IntN(3)/2
	if lost {
		liars = c.M - 1
	}
	for _, id := range r.Perm(n)[:liars] {
		opt.Faulty[parley.ID(id)] = how[r.IntN(len(how))]
	}
	for k := range uint64(1 + r.IntN(6)) {
		opt.Requests = append(opt.Requests, question(c.Source, parley.Tick(r.IntN(20_000)), k+1, fmt.Sprint(k%2)))
	}
	opt.Heal = parley.Tick(r.IntN(100_000)) + 1
	for range r.IntN(8) {
		from, to := parley.ID(r.IntN(n)), parley.ID(r.IntN(n))
		if from != to {
			opt.Links = append(opt.Links, sim.Link{From: parley.SetOf(from), To: parley.SetOf(to),
				Delay: sim.Delay{Least: 1, Most: parley.Tick(1 + r.IntN(30_000))}})
		}
	}
	for range r.IntN(4) {
		opt.Crashes = append(opt.Crashes, sim.Crash{At: parley.ID(r.IntN(n)), When: parley.Tick(1 + r.IntN(40_000)),
			Effects: r.IntN(8), Back: parley.Tick(1 + r.IntN(5000))})
	}
	opt.Crashes = slices.DeleteFunc(opt.Crashes, func(c sim.Crash) bool { _, lies := opt.Faulty[c.At]; return lies })
	if c.DiskIntact = !lost; lost && len(opt.Crashes) > 0 {
		opt.Crashes = opt.Crashes[:1]
		opt.Crashes[0].LostDisk = true
	}
	if len(opt.Crashes) == 0 {
		opt.Requests = append(opt.Requests, question(c.Source, 1_000_000, 20, "late"))
	}
	return c, opt
}

// Whatever m processes say, however late messages are, and wherever processes crash and restart: correct processes
// decide alike, and on the value of a correct source or on nothing. If no process restarts, each decides, and once
// messages are timely on the value.
func TestViewsInStorms(t *testing.T) {
	values, nothing, restarts := 0, 0, 0
	for seed := range uint64(*seeds) {
		c, opt := storm(seed)
		opt.Protocol = New(c, Simulated)
		s := sim.Run(opt)
		s.History.Over = len(opt.Crashes) == 0
		restarts += len(s.History.Restarts)
		for _, p := range opt.Protocol.Properties {
			if err := p.Check(&s.History); err != nil {
				t.Fatalf("seed %d: %s: %v", seed, p.Name, err)
			}
		}
		if s.Stats.OutOfSteps {
			t.Fatalf("seed %d: it does not end", seed)
		}
		for _, i := range s.History.Indications {
			if i.Msg.Kind == Nothing {
				nothing++
			}
		}
		all, _ := outcomes(s)
		late := 0
		for _, of := range all {
			for _, v := range of {
				if values++; v == "late" {
					late++
				}
			}
		}
		if s.History.Over && s.History.Correct(c.Source) && late != len(all) {
			t.Fatalf("seed %d: %d of %d decide on a value that is timely", seed, late, len(all))
		}
	}
	t.Logf("%d decisions on values, %d on nothing, %d restarts", values, nothing, restarts)
	if values < *seeds || nothing < *seeds/10 || restarts < *seeds/4 {
		t.Errorf("these are too few to tell anything")
	}
}

// A decision on nothing is indicated at every process, and at the source with the number of the request.
func TestDecidedOnNothing(t *testing.T) {
	for self := range parley.ID(2) {
		p := act(views(0, 4, 8), self)
		want := parley.Msg{Kind: Nothing, Seq: 1}
		if self == 0 {
			want.Value = 7
			p.do(func(s *parley.Step) { p.Request(s, parley.Msg{Kind: parley.Propose, Value: 7, Body: []byte("x")}) })
		}
		nothing := wrapped(parley.Msg{Kind: tetra.Decided}, 1)
		if p.hears(2, nothing); len(p.s.Effects) > 0 && p.s.Effects[0].Op == parley.OpIndicate {
			t.Error("it believes one process")
		}
		p.hears(3, nothing)
		told := func(e parley.Effect) bool { return e.Op == parley.OpIndicate && e.Msg.Equal(want) }
		if !slices.ContainsFunc(p.s.Effects, told) || slices.ContainsFunc(p.s.Effects, func(e parley.Effect) bool {
			return e.Op == parley.OpDeliver
		}) {
			t.Errorf("process %d: %v", self, p.s.Effects)
		}
	}
}

// A value without its mark is no value: only a faulty source proposes it.
func TestUnmarkedValue(t *testing.T) {
	p := act(views(0, 4, 8), 1)
	if got := p.hears(0, wrapped(parley.Msg{Kind: tetra.Proposal, Body: []byte("x")}, 1)); got != "" {
		t.Errorf("it says %q", got)
	}
}

// A process that is cut off for some slots learns what was decided in the last Window slots, and nothing of older
// ones.
func TestLateProcessLearns(t *testing.T) {
	for _, count := range []uint64{3, 20} {
		c := views(0, 4, 8)
		opt := sim.Options{Protocol: New(c, Simulated), Links: []sim.Link{{To: parley.SetOf(3), Until: 190_000, Loss: 1}}}
		for k := range count {
			opt.Requests = append(opt.Requests, question(0, parley.Tick(k)*8000, k+1, fmt.Sprint(k)))
		}
		opt.Requests = append(opt.Requests, question(0, 200_000, count+1, "last"))
		all, _ := outcomes(sim.Run(opt))
		if got := len(all[3]); got != min(int(count)+1, 8) || all[3][count+1] != "last" {
			t.Errorf("after %d slots it decided %v", count, all[3])
		}
	}
}

// hostOf counts refusals.
type hostOf map[string]int

func (hostOf) Choose(int) int                        { return 0 }
func (hostOf) Sign(parley.ID, []byte) []byte         { return nil }
func (hostOf) Verify(parley.ID, []byte, []byte) bool { return true }
func (h hostOf) Refused(_, _ parley.ID, why string)  { h[why]++ }

// actor is one machine of a stream, and what it does in its last step.
type actor struct {
	*viewMachine
	s   *parley.Step
	log []parley.Record
}

func act(c Config, self parley.ID) *actor {
	return &actor{viewMachine: newViewMachine(c, self, viewWait), s: &parley.Step{Self: self, N: c.N, Host: hostOf{}}}
}

// do runs a clause, and returns what it sends, as text without receivers.
func (a *actor) do(clause func(s *parley.Step)) string {
	a.s.Effects = nil
	clause(a.s)
	var sent []string
	for _, e := range a.s.Effects {
		switch e.Op {
		case parley.OpSend:
			for row := range explainView(tetra.New(tetra.Config{N: a.N, M: a.M}).Explain)(parley.Env{}, e.Msg, parley.ID.String) {
				sent = append(sent, row)
			}
		case parley.OpAppend:
			a.log = append(a.log, parley.Record{Body: e.Msg.Body})
		}
	}
	return strings.Join(sent, "; ")
}

func (a *actor) hears(from parley.ID, m parley.Msg) string {
	return a.do(func(s *parley.Step) { a.Receive(s, from, m) })
}

// again is the process after a restart.
func (a *actor) again(disk bool) (b *actor, sent string) {
	b = act(a.Config, a.self)
	if b.s.Restart = true; disk {
		b.log, b.s.Log = a.log, a.log
	}
	sent = b.do(b.Start)
	b.s.Restart, b.s.Log = false, nil
	return b, sent
}

func proposes(slot uint64, value string) parley.Msg {
	return wrapped(parley.Msg{Kind: tetra.Proposal, Body: marked([]byte(value))}, slot)
}

// A restarted process says nothing in a slot in which it may have spoken, whatever the source sends then. It announces
// this to the source, which leaves out these slots.
func TestRestartIsSilent(t *testing.T) {
	p := act(views(0, 4, 8), 1)
	if got := p.hears(0, proposes(1, "a")); got != "#1: echo a" {
		t.Fatalf("it says %s", got)
	}
	p, sent := p.again(true)
	if sent != "silent up to #4" {
		t.Errorf("it announces %q", sent)
	}
	for slot := range uint64(4) {
		if got := p.hears(0, proposes(slot+1, "b")); got != "silent up to #4" {
			t.Errorf("in slot %d it says %q", slot+1, got)
		}
	}
	if got := p.hears(0, proposes(5, "b")); got != "#5: echo b" {
		t.Errorf("in slot 5 it says %q", got)
	}
	source := act(views(0, 4, 8), 0)
	source.hears(1, parley.Msg{Kind: silence, Seq: 4})
	ask := func(s *parley.Step) { source.Request(s, parley.Msg{Kind: parley.Propose, Value: 1, Body: []byte("x")}) }
	if got := source.do(ask); got != "#5: propose x; #5: echo x" {
		t.Errorf("the source says %s", got)
	}
	source = act(views(0, 4, 8), 0)
	source.hears(3, parley.Msg{Kind: silence, Seq: 1000})
	if got := source.do(ask); got != "#1: propose x; #1: echo x" {
		t.Errorf("the source believes a process that is silent in distant slots: %s", got)
	}
}

// A source that restarts proposes nothing in slots in which it may have proposed.
func TestRestartedSource(t *testing.T) {
	p := act(views(0, 4, 8), 0)
	ask := func(s *parley.Step) { p.Request(s, parley.Msg{Kind: parley.Propose, Value: 1, Body: []byte("x")}) }
	p.do(ask)
	if p, _ = p.again(true); p.do(ask) != "#5: propose x; #5: echo x" {
		t.Errorf("it begins slot %d", p.newest)
	}
}

// A process without its disk takes part when enough others have answered which slots there are: not before, and not in
// these slots. One liar cannot keep it out of all slots.
func TestLostDisk(t *testing.T) {
	reply := func(slot, in uint64) parley.Msg { return parley.Msg{Kind: slotReply, Seq: slot, Value: in} }
	c := views(1, 4, 8)
	p, sent := act(c, 2).again(false)
	if sent != "which slot?" {
		t.Errorf("it asks %s", sent)
	}
	p.hears(0, reply(6, 1))
	p.hears(3, reply(7, 1))
	if got := p.hears(1, proposes(8, "x")); got != "" || !p.lost {
		t.Errorf("it says %q before all have answered", got)
	}
	if got := p.hears(1, reply(7, 1)); got != "silent up to #7" || p.quiet != 7 {
		t.Errorf("it says %q, and is silent up to %d", got, p.quiet)
	}
	if got := p.hears(1, proposes(8, "x")); got != "#8: echo x" {
		t.Errorf("it says %q", got)
	}
	p, _ = act(c, 1).again(false) // the source
	for _, id := range []parley.ID{0, 2, 3} {
		p.hears(id, reply(3, 1))
	}
	if p.quiet != 3+2*8 {
		t.Errorf("the source is silent up to %d", p.quiet)
	}
	if p, _ = p.again(true); p.lost || p.quiet != 19 {
		t.Errorf("it does not know this after the next restart: %v, %d", p.lost, p.quiet)
	}
	p, _ = act(views(1, 7, 8), 2).again(false)
	for id, slot := range map[parley.ID]uint64{0: 1 << 40, 1: 5, 3: 5, 4: 5, 5: 4} {
		p.hears(id, reply(slot, 1))
	}
	if p.lost || p.quiet != 5 {
		t.Errorf("a liar makes it silent up to %d", p.quiet)
	}
	p, _ = act(c, 2).again(false) // all have lost their disks
	for _, id := range []parley.ID{0, 1, 3} {
		p.hears(id, reply(0, 0))
	}
	if p.lost {
		t.Error("it waits for processes that know nothing")
	}
}

// A source gives up a slot in which too few processes are left that speak, and does not know its outcome.
func TestGivesUp(t *testing.T) {
	p := act(views(0, 4, 8), 0)
	p.do(func(s *parley.Step) { p.Request(s, parley.Msg{Kind: parley.Propose, Value: 7, Body: []byte("x")}) })
	p.hears(1, parley.Msg{Kind: silence, Seq: 1})
	if !p.slots[0].pending {
		t.Error("it gives up although three processes speak")
	}
	p.hears(2, parley.Msg{Kind: silence, Seq: 3})
	for _, e := range p.s.Effects {
		if e.Op == parley.OpIndicate && e.Msg.Equal(parley.Msg{Kind: Unanswered, Seq: 1, Value: 7}) {
			return
		}
	}
	t.Errorf("it does not give up: %v", p.s.Effects)
}

// A faulty process cannot make others keep more slots than one and a half windows, nor make them ask without end.
func TestViewsAreBounded(t *testing.T) {
	p := act(views(0, 4, 8), 1)
	for slot := range uint64(1000) {
		p.hears(3, wrapped(parley.Msg{Kind: tetra.Wish, Seq: 1}, slot+1))
	}
	if len(p.slots) != 4 {
		t.Errorf("a process that is not the source makes it keep %d slots", len(p.slots))
	}
	for slot := range uint64(1000) {
		p.hears(0, proposes(slot+1, "x"))
		p.hears(3, wrapped(parley.Msg{Kind: tetra.Wish, Seq: 1}, slot+5))
	}
	if len(p.slots) != 12 {
		t.Errorf("it keeps %d slots", len(p.slots))
	}
	q := act(views(0, 4, 8), 1)
	q.hears(3, wrapped(parley.Msg{Kind: tetra.Wish, Seq: 1}, 1))
	asked := 0
	for q.slots[0].timing {
		q.do(func(s *parley.Step) { q.Timeout(s, q.slots[0].timer()) })
		asked++
	}
	if asked != mostAsks {
		t.Errorf("it asks %d times", asked)
	}
}

// What no correct process sends is refused.
func TestViewsRefuse(t *testing.T) {
	for why, m := range map[string]parley.Msg{
		"no message of a stream":                           {Kind: slotReply + 1},
		"fields that are not used":                         {Kind: slotQuery, Value: 1},
		"announcement to a process that is not the source": {Kind: silence, Seq: 1},
		"no such slot":                                     wrapped(parley.Msg{Kind: tetra.Echo, Body: []byte("x")}, 0),
		"slot far ahead of those that are known":           wrapped(parley.Msg{Kind: tetra.Echo, Body: []byte("x")}, 5),
		"value of a wrong size":                            wrapped(parley.Msg{Kind: tetra.Echo, Body: make([]byte, MaxValue+2)}, 1),
	} {
		p := act(views(0, 4, 8), 1)
		if p.hears(2, m); p.s.Host.(hostOf)[why] != 1 {
			t.Errorf("%s: refused are %v", why, p.s.Host)
		}
	}
	source := act(views(0, 4, 8), 0)
	source.hears(2, wrapped(parley.Msg{Kind: tetra.Echo, Body: []byte("x")}, 1))
	if why := "slot that the source has not begun"; source.s.Host.(hostOf)[why] != 1 {
		t.Errorf("refused are %v", source.s.Host)
	}
	if err := (Key{Tetra, 1, Everyone}).Check(4); err == nil || !strings.Contains(err.Error(), "not on a vector") {
		t.Error(err)
	}
	if err := (Key{Tetra, 2, 0}).Check(6); err == nil || !strings.Contains(err.Error(), "at most 1") {
		t.Error(err)
	}
}
