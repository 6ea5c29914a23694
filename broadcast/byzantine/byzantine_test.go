package byzantine_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/byzantine"
	"parley/broadcast/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/parleytest"
	"parley/sim"
)

func protocol(n, m, window int) parley.Protocol {
	return byzantine.New(byzantine.Config{N: n, M: m, Window: window, Batch: 256}, lockstep.Called)
}

func TestSuite(t *testing.T) {
	parleytest.Suite(t, protocol(4, 1, 6), parleytest.Options{Seeds: 120, NothingBeyond: ""})
}

// withholds sends nothing in round 0 except to some.
func withholds(but parley.Set) faulty.Behavior {
	return faulty.Behavior{Name: "withholds its batch", Model: parley.OralByzantineFaults,
		Tell: func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
			return slices.DeleteFunc(t.Honest, func(one parley.Outgoing) bool {
				return one.Msg.Kind == lockstep.Frame && one.Msg.Seq == 0 && !but.Has(t.To)
			})
		}}
}

// wrongAnswers answers requests for batches wrongly, twice, and otherwise behaves honestly.
var wrongAnswers = faulty.Behavior{Name: "answers wrongly", Model: parley.OralByzantineFaults,
	Tell: func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		var out []parley.Outgoing
		for _, one := range t.Honest {
			if one.Msg.Kind == byzantine.Bytes {
				one.Msg.Body = []byte("wrong")
			}
			out = append(out, one)
		}
		return out
	}}

// work is a run in which processes broadcast at random times.
func work(p parley.Protocol, seed uint64, each int, how func(r *rand.Rand) faulty.Behavior) sim.Options {
	r := rand.New(rand.NewPCG(seed, 21))
	opt := sim.Options{Protocol: p, Seed: seed, Faulty: make(map[parley.ID]faulty.Behavior), Steps: 1 << 21}
	for _, id := range r.Perm(p.N)[:p.M] {
		opt.Faulty[parley.ID(id)] = how(r)
	}
	for id := range parley.ID(p.N) {
		for k := range each {
			opt.Requests = append(opt.Requests, sim.Request{At: id, When: parley.Tick(r.IntN(4000 * each)),
				Msg: problem.Request(fmt.Appendf(nil, "%d.%d", id, k))})
		}
	}
	return opt
}

// sequences returns what correct processes delivered, in order.
func sequences(s *sim.Sim) map[parley.ID][]string {
	out := make(map[parley.ID][]string)
	for id := range s.Correct().All() {
		out[id] = nil
	}
	for _, d := range s.History.Deliveries {
		if s.History.Correct(d.At) {
			out[d.At] = append(out[d.At], fmt.Sprintf("%d:%s", d.From, d.Msg.Body))
		}
	}
	return out
}

// judge demands all promises, and one sequence everywhere.
func judge(t *testing.T, p parley.Protocol, s *sim.Sim, of string) {
	t.Helper()
	if s.Stats.OutOfSteps {
		t.Fatalf("%s: it does not end: %v", of, s.Stats.Refused)
	}
	for _, v := range parley.Judge(p, s.RunConditions(), &s.History) {
		if v.Violated() && v.Property.Mode != parley.Sometimes {
			t.Fatalf("%s: %s: %v: %v", of, v.Property.Name, v.Broken, s.Stats.Refused)
		}
		if !v.Promise.Holds {
			t.Fatalf("%s: %s is not promised: %s", of, v.Property.Name, v.Promise.Because)
		}
	}
	var first []string
	for id, all := range sequences(s) {
		if first == nil {
			first = all
		}
		if !slices.Equal(first, all) {
			t.Fatalf("%s: process %d delivers\n%v, another one\n%v", of, id, all, first)
		}
	}
}

// The theorem: with m liars of any kind all correct processes deliver one sequence, which contains all that
// correct processes broadcast.
func TestOneSequence(t *testing.T) {
	for _, size := range [][4]int{{4, 1, 4, 120}, {4, 1, 64, 60}, {7, 2, 8, 24}} {
		p := protocol(size[0], size[1], size[2])
		fetched, lied := 0, uint64(0)
		for seed := range uint64(size[3]) {
			opt := work(p, seed, 6, func(r *rand.Rand) faulty.Behavior {
				how := append(faulty.Named(), withholds(parley.SetOf(parley.ID(r.IntN(p.N)))),
					withholds(parley.SetOf(0, 1, 2)), withholds(parley.SetOf(1, 2, 3, 4)), wrongAnswers)
				return how[r.IntN(len(how))]
			})
			s := sim.Run(opt)
			judge(t, p, s, fmt.Sprintf("%v, seed %d", size, seed))
			fetched += int(s.Stats.Deliveries) - int(s.Stats.FromFaulty)
			lied += s.Stats.FromFaulty
		}
		if fetched == 0 || lied == 0 {
			t.Errorf("%v: nothing happened", size)
		}
	}
}

// A batch that only one correct process did not receive is in the order all the same: the process requests
// it, refuses a liar's answer, and waits.
func TestFetch(t *testing.T) {
	asked := 0
	for seed := range uint64(40) {
		p := protocol(4, 1, 8)
		opt := work(p, seed, 4, func(*rand.Rand) faulty.Behavior { return faulty.Honest })
		clear(opt.Faulty)
		left := parley.ID(seed % 3)
		opt.Faulty[3] = faulty.Behavior{Name: "leaves one out", Model: parley.OralByzantineFaults,
			Tell: func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
				var out []parley.Outgoing
				for _, one := range t.Honest {
					switch {
					case one.Msg.Kind == lockstep.Frame && one.Msg.Seq == 0 && t.To == left:
						one.Msg.Body = nil
					case one.Msg.Kind == byzantine.Bytes:
						one.Msg.Body = []byte("wrong")
					}
					out = append(out, one)
				}
				return out
			}}
		s := sim.Run(opt)
		judge(t, p, s, fmt.Sprint("seed ", seed))
		for id, all := range sequences(s) {
			for k := range 4 {
				if !slices.Contains(all, fmt.Sprintf("3:3.%d", k)) {
					t.Fatalf("seed %d: process %d does not deliver what 3 told two of three: %v", seed, id, all)
				}
			}
		}
		asked += int(s.Stats.Refused["batch that is not asked for"])
	}
	if asked == 0 {
		t.Error("nobody asked, or no answer was refused")
	}
}

// A digest that liars vouch for and no process holds is not decided on.
func TestVouchForNothing(t *testing.T) {
	p := protocol(7, 2, 8)
	for seed := range uint64(20) {
		opt := work(p, seed, 3, func(*rand.Rand) faulty.Behavior { return faulty.Flip })
		for id, how := range opt.Faulty {
			flip := how.Choose
			how.Choose = func(s *parley.Step, t *parley.Turn, k, n int) int {
				if n == 4 {
					return 3 // it sends its batch to no process
				}
				return flip(s, t, k, n)
			}
			opt.Faulty[id] = how
		}
		s := sim.Run(opt)
		judge(t, p, s, fmt.Sprint("seed ", seed))
		for id, all := range sequences(s) {
			for _, one := range all {
				if bytes.Contains([]byte(one), []byte("lie")) {
					t.Fatalf("seed %d: process %d delivers %s", seed, id, one)
				}
			}
		}
	}
}

// vouchesForNothing is a liar that claims for every path that it received nothing.
var vouchesForNothing = faulty.Behavior{Name: "vouches for nothing", Model: parley.OralByzantineFaults,
	Choose: func(_ *parley.Step, _ *parley.Turn, _, n int) int {
		if n == 3 {
			return 2
		}
		return 0
	}}

// A process whose batch arrives too late for some is one of the m and does not know it: with the help of a
// liar, that batch is not agreed on. The process still delivers what all others do, and proposes again what
// was not agreed on.
func TestLateBatch(t *testing.T) {
	p := protocol(7, 2, 8)
	again := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 23))
		opt := sim.Options{Protocol: p, Seed: seed, Steps: 1 << 21, Faulty: map[parley.ID]faulty.Behavior{1: vouchesForNothing}}
		for k := range 6 {
			at := parley.Tick(20_000 * k)
			for id := range parley.ID(p.N) {
				if when := at + parley.Tick(r.IntN(10_000)); id > 0 && r.IntN(2) == 0 {
					opt.Requests = append(opt.Requests, sim.Request{At: id, When: when, Msg: problem.Request([]byte{'b', byte(k), byte(id)})})
				}
			}
			opt.Requests = append(opt.Requests, sim.Request{When: at, Msg: problem.Request([]byte{'a', byte(k)})})
			opt.Links = append(opt.Links, sim.Link{From: parley.SetOf(0), To: parley.SetOf(2+parley.ID(r.IntN(3)), 5), Since: at, Until: at + 1, Loss: 1})
		}
		opt.Between = func(s *sim.Sim) {
			if byzantine.Late(s.Machine(0)) {
				again++
			}
		}
		s := sim.Run(opt)
		all := sequences(s)
		for id, one := range all {
			if s.Stats.OutOfSteps || !slices.Equal(one, all[0]) {
				t.Fatalf("seed %d: process %d delivers\n%q, and the late one\n%q", seed, id, one, all[0])
			}
			for k := range 6 {
				if !slices.Contains(one, fmt.Sprintf("0:a%c", k)) {
					t.Fatalf("seed %d: process %d delivers %q", seed, id, one)
				}
			}
		}
	}
	if again == 0 {
		t.Error("no batch came too late")
	}
}

// What three of six others send in one slot arrives too late at one process, or is a lie: more than may be
// faulty, and the process agrees on something else. It detects that some slots later, and rejoins the order
// of all others, without a part of it.
func TestStrays(t *testing.T) {
	for _, anew := range []bool{false, true} { // meanwhile another process rejoins, and an era ends
		testStrays(t, anew)
	}
}

func testStrays(t *testing.T, anew bool) {
	const slots = 80
	p := protocol(7, 2, 8)
	opt := sim.Options{Protocol: p, Steps: 1 << 22, Faulty: map[parley.ID]faulty.Behavior{1: vouchesForNothing}}
	if anew {
		opt.Crashes = []sim.Crash{{At: 6, When: 125_000, Back: 130_000}}
	}
	for k := range slots {
		at := parley.Tick(30_000 * k)
		opt.Requests = append(opt.Requests, sim.Request{At: parley.ID(4 + k%2), When: at, Msg: problem.Request([]byte{byte(k)})})
		if k == 1 {
			opt.Links = append(opt.Links, sim.Link{From: parley.SetOf(2, 3), To: parley.SetOf(0), Since: at, Until: at + 15_000, Loss: 1})
		}
	}
	s := sim.Run(opt)
	places := make(map[parley.ID]map[uint64]byte)
	for _, d := range s.History.Deliveries {
		if places[d.At] == nil {
			places[d.At] = make(map[uint64]byte)
		}
		places[d.At][d.Msg.Value] = d.Msg.Body[0]
	}
	missed, other := len(places[4])-len(places[0]), 0
	for place, payload := range places[0] {
		if places[4][place] != payload {
			other++
		}
	}
	if missed < 1 || missed > 40 || other < 1 || other > 40 || places[0][slots] != slots-1 {
		t.Errorf("anew: %v: it delivers %v, and others %v", anew, places[0], places[4])
	}
}

// As many liars as allowed send wrong marks: no process goes out because of that.
func TestOtherMarks(t *testing.T) {
	lies := false
	tells := faulty.Behavior{Name: "tells another mark", Model: parley.OralByzantineFaults,
		Choose: func(_ *parley.Step, _ *parley.Turn, _, n int) int {
			if n == 2 { // one run in which it lies, and one in which it is silent instead
				lies = !lies
			}
			if n == 2 && lies {
				return 1
			}
			return 0
		}}
	p := protocol(7, 2, 8)
	opt := sim.Options{Protocol: p, Steps: 1 << 22, Faulty: map[parley.ID]faulty.Behavior{1: tells, 5: tells}}
	for k := range 60 {
		opt.Requests = append(opt.Requests, sim.Request{
			At: parley.ID(k % 5), When: parley.Tick(30_000 * k), Msg: problem.Request([]byte{byte(k)}),
		})
	}
	s := sim.Run(opt)
	if all := sequences(s); len(all[0]) < 48 || len(s.History.Indications) > 0 {
		t.Errorf("%d delivered, and %v", len(all[0]), s.History.Indications)
	}
}

// Beyond the bound, with n = 3m or m+1 liars, something breaks.
func TestBeyond(t *testing.T) {
	for _, size := range [][3]int{{3, 1, 1}, {4, 1, 2}, {6, 2, 2}} {
		p := protocol(size[0], size[1], 8)
		bad := false
		for seed := uint64(0); seed < 150 && !bad; seed++ {
			opt := work(p, seed, 3, func(*rand.Rand) faulty.Behavior { return faulty.Random })
			r := rand.New(rand.NewPCG(seed, 22))
			for len(opt.Faulty) < size[2] {
				opt.Faulty[parley.ID(r.IntN(p.N))] = faulty.Random
			}
			opt.Steps = 1 << 14
			s := sim.Run(opt)
			for _, property := range p.Properties {
				if property.Mode != parley.Sometimes && property.Check(&s.History) != nil {
					bad = true
				}
			}
		}
		if !bad {
			t.Errorf("%v: nothing broke", size)
		}
	}
}

// A request is numbered by its sender; a number sent twice is delivered once.
func TestDuplicates(t *testing.T) {
	p := protocol(4, 1, 8)
	opt := work(p, 5, 4, func(*rand.Rand) faulty.Behavior { return faulty.Flip })
	s := sim.Run(opt)
	judge(t, p, s, "flip")
	for id, all := range sequences(s) {
		lies := 0
		for _, one := range all {
			if bytes.Contains([]byte(one), []byte("lie")) {
				lies++
			}
		}
		if lies != 1 {
			t.Errorf("process %d delivers %d lies of one number: %v", id, lies, all)
		}
	}
}

// Too large a request, or too many, are refused and not delivered.
func TestLimits(t *testing.T) {
	p := byzantine.New(byzantine.Config{N: 4, M: 1, Window: 2, Batch: 64, Queue: 130}, lockstep.Called)
	var requests []sim.Request
	for _, size := range []int{64 - 24, 65 - 25, 39, 1, 0} {
		requests = append(requests, sim.Request{At: 2, Msg: problem.Request(bytes.Repeat([]byte("x"), size))})
	}
	for range 8 {
		requests = append(requests, sim.Request{At: 1, When: 1, Msg: problem.Request(bytes.Repeat([]byte("y"), 30))})
	}
	requests = append(requests, sim.Request{At: 1, When: 1, Msg: parley.Msg{Kind: parley.Propose}})
	s := sim.Run(sim.Options{Protocol: p, Requests: requests})
	if s.Stats.Refused["no request to broadcast, or too large"] != 3 || s.Stats.Refused["queue full"] == 0 {
		t.Error(s.Stats.Refused)
	}
	if all := sequences(s)[0]; len(all) != 3+8-int(s.Stats.Refused["queue full"]) {
		t.Error(all)
	}
}
