package stream

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"testing"

	"parley"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
)

// roomier is a schedule with room for three delays of simulated runs.
var roomier = Simulated

// returning is a run of a stream with a small window in which processes rejoin.
func returning(t Key, n int, seed uint64) sim.Options {
	return sim.Options{Protocol: simulatedIn(t, n, 8, roomier), Seed: seed, Steps: 1 << 20}
}

// age returns the longest duration of a slot of the stream.
func (t Key) age(n int) parley.Tick { return parley.Tick(t.Rounds(n).Last+2) * roomier.Delta }

// agreed demands that all decisions of correct processes are equal, slot by slot, and returns
// them.
func agreed(t *testing.T, what string, s *sim.Sim) map[uint64]string {
	t.Helper()
	if s.Stats.OutOfSteps {
		t.Fatalf("%s: it does not end", what)
	}
	all := make(map[uint64]string)
	for _, d := range s.History.Deliveries {
		if !s.History.Correct(d.At) || d.Msg.Kind != parley.Decide {
			continue
		}
		if v, known := all[d.Msg.Seq]; known && v != string(d.Msg.Body) {
			t.Fatalf("%s: slot %d is decided on %q and on %q", what, d.Msg.Seq, v, d.Msg.Body)
		}
		all[d.Msg.Seq] = string(d.Msg.Body)
	}
	return all
}

func allDecide(t *testing.T, what string, s *sim.Sim, value string) {
	t.Helper()
	all, missing := outcomes(s)
	for id, of := range all {
		found := false
		for _, v := range of {
			found = found || v == value
		}
		if !found {
			t.Errorf("%s: process %d did not decide on %q, of %d; not answered: %v; refused: %v", what, id, value, len(of),
				missing, s.Stats.Refused)
		}
	}
}

// rolling restarts all processes, one after the other.
func rolling(one Key, n int, lost bool) (crashes []sim.Crash, end parley.Tick) {
	each := 6*one.age(n) + 10*roomier.Delta
	for id := range parley.ID(n) {
		crashes = append(crashes, sim.Crash{At: id, When: 20000 + parley.Tick(id)*each, Back: 500, LostDisk: lost})
	}
	return crashes, 20000 + parley.Tick(n)*each
}

// When all processes have restarted, one after the other, every one of them takes part:
// with its durable state, and without it.
func TestRollingRestart(t *testing.T) {
	for _, a := range []Algorithm{EIG, OM, SM, PhaseKing} {
		for _, lost := range []bool{false, true} {
			for source := range parley.ID(2) {
				one := Key{a, 1, source}
				what := fmt.Sprintf("%s lost=%v", one, lost)
				opt := returning(one, 4, uint64(source))
				var end parley.Tick
				opt.Crashes, end = rolling(one, 4, lost)
				for k := range uint64(20) {
					opt.Requests = append(opt.Requests, question(source, parley.Tick(k)*400, k+1, fmt.Sprint(k)))
				}
				opt.Requests = append(opt.Requests, question(source, end, 100, "after"))
				opt.Until = end + 4*one.age(4)
				s := sim.Run(opt)
				agreed(t, what, s)
				allDecide(t, what, s, "after")
			}
		}
	}
}

// A request to a source that is rejoining is answered when it has rejoined.
func TestIsAskedWhileReturning(t *testing.T) {
	one := Key{EIG, 1, 1}
	opt := returning(one, 4, 1)
	opt.Crashes = []sim.Crash{{At: 1, When: 10, Back: 100}}
	opt.Requests = []sim.Request{question(1, 2000, 1, "one")}
	s := sim.Run(opt)
	agreed(t, one.String(), s)
	allDecide(t, one.String(), s, "one")
}

// All processes rejoin at once, each with another floor and whatever one sends: slots continue.
func TestAllReturn(t *testing.T) {
	for _, a := range []Algorithm{EIG, OM, SM, PhaseKing} {
		for _, how := range []faulty.Behavior{faulty.Honest, faulty.Silent, faulty.Random, faulty.TwoFaced} {
			for seed := range uint64(3) {
				one := Key{a, 1, 0}
				what := fmt.Sprintf("%s %s seed %d", one, how.Name, seed)
				opt := returning(one, 4, seed)
				opt.Faulty = map[parley.ID]faulty.Behavior{3: how}
				for k := range uint64(38) {
					opt.Requests = append(opt.Requests, question(0, parley.Tick(k)*300, k+1, fmt.Sprint(k)))
				}
				for id := range parley.ID(3) {
					opt.Crashes = append(opt.Crashes, sim.Crash{
						At: id, When: 12000 + 700*parley.Tick(id), Back: 3000 + 4000*parley.Tick(id),
					})
				}
				opt.Requests = append(opt.Requests,
					question(0, 60000, 100, "after"), question(0, 60000+12*one.age(4), 101, "later"))
				opt.Until = 60000 + 20*one.age(4) + 20*roomier.Delta
				s := sim.Run(opt)
				if of := agreed(t, what, s); !slices.Contains(slices.Collect(maps.Values(of)), "after") {
					t.Errorf("%s: nobody decided on what was asked first", what)
				}
				allDecide(t, what, s, "later")
			}
		}
	}
}

// pusher is a faulty process that opens all slots that windows allow, by a frame for each
// besides its own frames, and reports any slot to a process that rejoins.
func pusher(claims uint64) faulty.Behavior {
	how := faulty.Behavior{Name: "pusher", Model: parley.SignedByzantineFaults}
	how.Tell = func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		var out []parley.Outgoing
		for _, one := range t.Honest {
			if one.Msg.Kind == positionReply {
				one.Msg.Value, one.Msg.Seq = claims, uint64(s.Choose(4))
			}
			out = append(out, one)
			if one.Msg.Kind != lockstep.Frame || one.Msg.Seq > 0 || s.Choose(2) == 0 {
				continue
			}
			for range 3 {
				one.Msg.Value++
				one.Msg.Body = nil
				out = append(out, one)
			}
		}
		return out
	}
	return how
}

// A process that rejoins, or is disconnected for some time, never decides other than the others,
// whatever faulty processes send and although windows are always full; and it takes part again.
func TestReturnsNeverDisagree(t *testing.T) {
	for _, size := range [][2]int{{4, 1}, {7, 2}} {
		n, m := size[0], size[1]
		for i, how := range []faulty.Behavior{
			faulty.Silent, faulty.Flip, faulty.TwoFaced, faulty.Random, pusher(0), pusher(1000000), pusher(1 << 62),
		} {
			for seed := range uint64(6) {
				one := Key{[]Algorithm{EIG, SM, PhaseKing, OM}[seed%4], m, parley.ID(seed % 2)}
				what := fmt.Sprintf("%s among %d %s %d seed %d", one, n, how.Name, i, seed)
				opt := returning(one, n, seed)
				// A process that is down counts as faulty: with m more faulty ones nothing is promised meanwhile.
				opt.Faulty = map[parley.ID]faulty.Behavior{6: how}
				if m == 1 {
					opt.Faulty = map[parley.ID]faulty.Behavior{3: how}
				}
				if seed%3 == 0 {
					opt.Links = []sim.Link{
						{From: parley.SetOf(1), Since: 15000, Until: 15000 + 3*one.age(n), Loss: 1},
						{To: parley.SetOf(1), Since: 15000, Until: 15000 + 3*one.age(n), Loss: 1},
					}
				} else {
					opt.Crashes = []sim.Crash{{At: 1, When: 15000, Back: 3000, LostDisk: seed%3 == 1}}
				}
				back, last := 20000+10*one.age(n), 20000+16*one.age(n)
				for k := range uint64(60) {
					if when := parley.Tick(k) * last / 60; m > 1 || when < 10000 || when > back {
						opt.Requests = append(opt.Requests, question(one.Source, when, k+1, fmt.Sprint(k)))
					}
				}
				opt.Requests = append(opt.Requests, question(one.Source, last, 1000, "after"))
				opt.Until = last + 8*one.age(n)
				s := sim.Run(opt)
				agreed(t, what, s)
				allDecide(t, what, s, "after")
			}
		}
	}
}

type recorder struct {
	sim.Signer
	texts map[parley.ID]map[uint64][]string
}

func (r recorder) Sign(as parley.ID, b []byte) []byte {
	if r.texts[as] == nil {
		r.texts[as] = make(map[uint64][]string)
	}
	slot := binary.BigEndian.Uint64(b)
	if !slices.Contains(r.texts[as][slot], string(b)) {
		r.texts[as][slot] = append(r.texts[as][slot], string(b))
	}
	return r.Signer.Sign(as, b)
}

// A source that restarts signs nothing in a slot in which it has signed another value.
func TestSignsOnceInASlot(t *testing.T) {
	for seed := range uint64(30) {
		opt := returning(Key{SM, 1, 0}, 4, seed)
		r := recorder{sim.Ideal(seed), make(map[parley.ID]map[uint64][]string)}
		opt.Signer = r
		at := 8000 + parley.Tick(seed)*970
		opt.Crashes = []sim.Crash{{At: 0, When: at, Effects: int(seed % 3), Back: 200}}
		if seed%2 == 1 { // all at once
			for id := range parley.ID(4) {
				opt.Crashes = append(opt.Crashes[:id], sim.Crash{
					At: id, When: at + 100*parley.Tick(id), Effects: int(seed % 5), Back: 900,
				})
			}
		}
		for k := range uint64(100) {
			opt.Requests = append(opt.Requests, question(0, parley.Tick(k)*(400+10*parley.Tick(seed)), k+1, fmt.Sprint(k)))
		}
		opt.Requests = append(opt.Requests, question(0, 150000, 1000, "after"))
		opt.Until = 250000
		s := sim.Run(opt)
		agreed(t, fmt.Sprint("seed ", seed), s)
		allDecide(t, fmt.Sprint("seed ", seed), s, "after")
		for slot, texts := range r.texts[0] {
			if len(texts) > 1 {
				t.Errorf("seed %d: signed in slot %d: %q", seed, slot, texts)
			}
		}
	}
}

// Processes that all find no record on the disk take no part: they could
// send a second time in a slot.
func TestNoProcessKnows(t *testing.T) {
	opt := returning(Key{EIG, 1, 0}, 4, 1)
	for id := range parley.ID(4) {
		opt.Crashes = append(opt.Crashes, sim.Crash{At: id, When: 5000, Back: 500, LostDisk: true})
	}
	opt.Requests, opt.Until = []sim.Request{question(0, 0, 1, "one"), question(0, 50000, 2, "two")}, 300000
	s := sim.Run(opt)
	for slot, v := range agreed(t, "", s) {
		if v == "two" {
			t.Errorf("it is decided on %q in slot %d", v, slot)
		}
	}
}

// A name that was decided while a process was down is not decided again, and all decide
// a name that is requested later.
func TestNamesAfterRestart(t *testing.T) {
	for seed := range uint64(12) {
		for _, cut := range []bool{false, true} {
			one, n, those := Key{EIG, 1, Everyone}, 4, []parley.ID{0, 2}
			liar := seed%3 == 0 && !cut
			if liar { // with process 1, which is down, two are faulty
				one.M, n, those = 2, 7, []parley.ID{0, 2, 4}
			}
			opt := returning(one, n, seed)
			if liar {
				opt.Faulty = map[parley.ID]faulty.Behavior{3: pusher(seed)}
			}
			if opt.Crashes = []sim.Crash{{At: 1, When: 5000, Back: 40000, LostDisk: seed%2 == 0}}; cut {
				opt.Crashes = nil
				opt.Links = []sim.Link{
					{From: parley.SetOf(1), Since: 5000, Until: 45000, Loss: 1},
					{To: parley.SetOf(1), Since: 5000, Until: 45000, Loss: 1},
				}
			}
			ask := func(at parley.ID, when parley.Tick, number uint64, name string) {
				opt.Requests = append(opt.Requests, proposal(at, when, number, name, fmt.Sprint(at, "/", number)))
			}
			for _, id := range those { // before, while all are up
				ask(id, 0, 49, "first")
			}
			for k := range uint64(20) { // more slots than a window has
				for _, id := range those {
					ask(id, 6000+parley.Tick(k)*1500, k+1, fmt.Sprint("early", k))
				}
			}
			// A disconnected process notices it when the others continue.
			for _, id := range those {
				ask(id, 46000, 50, "wake")
			}
			end := parley.Tick(47000) + 6*one.age(n)
			for _, id := range []parley.ID{0, 1, 2} {
				ask(id, end, 100, "early3")
				ask(id, end, 101, "late")
			}
			opt.Until = end + 8*one.age(n)
			s := sim.Run(opt)
			all, what := vectors(s), fmt.Sprintf("seed %d cut=%v", seed, cut)
			if v := all[1][100]; v != nil {
				t.Errorf("%s: process 1 is told %q of a name that was decided on without it", what, v)
			}
			_, missing := outcomes(s)
			if !slices.Contains(missing, 100) {
				t.Errorf("%s: nor is it told that there is no answer: %v", what, missing)
			}
			for _, id := range []parley.ID{0, 1, 2} {
				if v := all[id][101]; v == nil || fmt.Sprint(v[:3]) != fmt.Sprint(all[0][101][:3]) || v[1] == "" {
					t.Errorf("%s: process %d is told %q, and the first %q; %v", what, id, v, all[0][101], s.Stats.Refused)
				}
			}
			if a, b := all[0][100], all[2][100]; fmt.Sprint(a) != fmt.Sprint(b) || a == nil || a[0] != "0/4" {
				t.Errorf("%s: %q and %q", what, a, b)
			}
		}
	}
}

// After all rejoined at once names are agreed on again.
func TestNamesAllReturn(t *testing.T) {
	one := Key{EIG, 1, Everyone}
	for seed := range uint64(6) {
		opt := returning(one, 4, seed)
		if seed%2 == 0 {
			opt.Faulty = map[parley.ID]faulty.Behavior{3: faulty.Silent}
		}
		for id := range parley.ID(4) {
			opt.Requests = append(opt.Requests, proposal(id, 0, 1, "x", fmt.Sprint(id)), proposal(id, 50000, 2, "y", fmt.Sprint(id)))
			if opt.Faulty == nil || id < 3 {
				opt.Crashes = append(opt.Crashes, sim.Crash{At: id, When: 20000 + 500*parley.Tick(id), Back: 2000 + 3000*parley.Tick(id)})
			}
		}
		opt.Until = 50000 + 24*one.age(4)
		all := vectors(sim.Run(opt))
		for id, of := range all {
			if fmt.Sprint(of[2]) != fmt.Sprint(all[0][2]) || len(of[2]) == 0 || of[2][0]+of[2][1]+of[2][2] == "" {
				t.Errorf("seed %d: process %d is told %q", seed, id, of[2])
			}
		}
	}
}

// A process that hears fewer than are correct in a round of a slot abstains in it: its decision
// would mean nothing. Others decide, and it does in later slots.
func TestHearsTooFew(t *testing.T) {
	opt := returning(Key{EIG, 1, 0}, 4, 1)
	opt.Links = []sim.Link{{From: parley.SetOf(1, 2), To: parley.SetOf(3), Until: 20000, Loss: 1}}
	opt.Requests = []sim.Request{question(0, 0, 1, "one"), question(0, 40000, 2, "two")}
	s := sim.Run(opt)
	all, _ := outcomes(s)
	if fmt.Sprint(all[3]) != "map[2:two]" || fmt.Sprint(all[1]) != "map[1:one 2:two]" {
		t.Errorf("decided: %v", all)
	}
	if s.Stats.Refused["heard too few: abstains"] != 1 {
		t.Error(s.Stats.Refused)
	}
}

// One faulty process can neither make a name known, nor free one by silence.
func TestLiesAboutNames(t *testing.T) {
	for _, told := range []nameOutcome{{name: "late", slot: 1}, {name: "early", slot: 1}} {
		liar := faulty.Behavior{Name: "lister", Model: parley.SignedByzantineFaults}
		liar.Tell = func(_ *parley.Step, turn *parley.Turn) []parley.Outgoing {
			for i := range turn.Honest {
				if m := &turn.Honest[i].Msg; m.Kind == namesReply {
					m.Body = append([]byte{byte(told.slot), byte(len(told.name))}, told.name...)
				}
			}
			return turn.Honest
		}
		opt := returning(Key{EIG, 1, Everyone}, 4, 1)
		opt.Faulty = map[parley.ID]faulty.Behavior{3: liar}
		opt.Crashes = []sim.Crash{{At: 1, When: 2000, Back: 20000}}
		for _, id := range []parley.ID{0, 2} {
			opt.Requests = append(opt.Requests, proposal(id, 4000, 1, "early", "x"))
		}
		for id := range parley.ID(3) {
			opt.Requests = append(opt.Requests, proposal(id, 90000, 2, "early", "y"), proposal(id, 90000, 3, "late", "z"))
		}
		opt.Until = 200000
		all := vectors(sim.Run(opt))
		if all[1][3] == nil || fmt.Sprint(all[1][3]) != fmt.Sprint(all[0][3]) || all[1][2] != nil || all[0][2] == nil {
			t.Errorf("the liar tells of %q: %v and %v", told.name, all[1], all[0])
		}
	}
}

// quiet is the host of a step that counts refusals.
type quiet struct{ refused map[string]int }

func (*quiet) Choose(int) int                        { return 0 }
func (*quiet) Sign(parley.ID, []byte) []byte         { return make([]byte, 64) }
func (*quiet) Verify(parley.ID, []byte, []byte) bool { return true }
func (h *quiet) Refused(_, _ parley.ID, why string)  { h.refused[why]++ }

// Malformed and unexpected messages of rejoining are refused, and no list
// is sent twice within the duration of a slot.
func TestHostileReturns(t *testing.T) {
	one := Key{EIG, 1, Everyone}
	m := simulatedIn(one, 4, 8, roomier).New(0)
	h := &quiet{refused: make(map[string]int)}
	s := &parley.Step{N: 4, Host: h}
	m.Start(s)
	for _, q := range []parley.Msg{
		{Kind: positionQuery, Origin: 1}, {Kind: positionQuery, Body: []byte("x")}, {Kind: positionQuery, Value: 2}, {Kind: positionQuery, Seq: 1<<62 + 1},
		{Kind: positionReply, Value: 1}, {Kind: positionReply, Seq: 4}, {Kind: positionReply, Value: 1<<62 + 1}, {Kind: namesReply}, {Kind: namesReply, Seq: 2},
		{Kind: namesQuery, Seq: 1}, {Kind: namesQuery, Value: 1 << 40}, {Kind: namesReply + 1},
	} {
		before := 0
		for _, times := range h.refused {
			before += times
		}
		s.Effects = nil
		m.Receive(s, 3, q)
		after := 0
		for _, times := range h.refused {
			after += times
		}
		if after != before+1 || len(s.Effects) > 0 {
			t.Errorf("%+v: refused %v, effects %v", q, h.refused, s.Effects)
		}
	}
	s.Effects = nil
	for range 100 {
		m.Receive(s, 3, parley.Msg{Kind: namesQuery})
	}
	if len(s.Effects) != 1 || s.Effects[0].Msg.Kind != namesReply {
		t.Errorf("%d effects", len(s.Effects))
	}
	for _, bad := range [][]byte{{0}, {1, 0}, {1, 2, 'x'}, {2, 1, 'x', 1, 1, 'y'}, {1, 1, 'x', 1, 1, 'x'}} {
		if names, ok := readNames(bad); ok {
			t.Errorf("%v is read as %v", bad, names)
		}
	}
}

// A process that rejoins is saved and loaded in every phase, and continues as it would have.
func TestStateAfterRestart(t *testing.T) {
	for _, one := range []Key{{EIG, 1, 0}, {EIG, 1, Everyone}} {
		run := func(reload bool) string {
			opt := returning(one, 4, 3)
			for id := range parley.ID(4) {
				opt.Crashes = append(opt.Crashes, sim.Crash{At: id, When: 20000 + 500*parley.Tick(id), Back: 2000})
				for k, when := range []parley.Tick{0, 40000, 90000} {
					if one.All() {
						opt.Requests = append(opt.Requests, proposal(id, when, uint64(k+1), fmt.Sprint(k), "x"))
					} else if id == 0 {
						opt.Requests = append(opt.Requests, question(0, when, uint64(k+1), fmt.Sprint(k)))
					}
				}
			}
			opt.Until = 200000
			if reload {
				opt.Between = func(s *sim.Sim) {
					for id := range parley.ID(4) {
						m := s.Machine(id)
						if b := parley.Save(m, s.Now(), nil); !parley.Load(m, s.Now(), b) {
							t.Fatal("it does not load")
						}
					}
				}
			}
			return fmt.Sprint(sim.Run(opt).History.Deliveries)
		}
		if a, b := run(false), run(true); a != b {
			t.Errorf("%s: %s\nand loaded: %s", one, a, b)
		}
	}
}

// One process rejoins, and while it locates the others one slot begins: at no time
// does it miss that slot without noticing. Long after, it takes part in the next, with no other
// faulty process.
func TestReturnsWhileOneSlotBegins(t *testing.T) {
	t.Parallel()
	one := Key{EIG, 1, Everyone}
	age := one.age(4)
	for when := parley.Tick(0); when < 3*age; when += 250 {
		opt := returning(one, 4, uint64(when))
		opt.Crashes = []sim.Crash{{At: 3, When: 20_000, Back: 500}}
		for id := range parley.ID(3) {
			opt.Requests = append(opt.Requests, proposal(id, 20_500+when, 1, "a", fmt.Sprint(id)))
		}
		late := 20_500 + 20*age
		for id := range parley.ID(4) {
			opt.Requests = append(opt.Requests, proposal(id, late, 2, "b", fmt.Sprint(id)))
		}
		opt.Until = late + 10*age
		s := sim.Run(opt)
		if lost := s.Stats.Refused["lost touch: returns"]; lost > 0 || len(vectors(s)[3][2]) == 0 {
			t.Errorf("a slot %d behind the restart: touch is lost %d times, and the answer is %q", when, lost, vectors(s)[3][2])
		}
	}
}
