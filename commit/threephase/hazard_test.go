package threephase_test

import (
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/commit/problem"
	"parley/commit/threephase"
	"parley/internal/committest"
	"parley/parleytest"
	"parley/sim"
)

// partition returns the run that shows why three phases need a network without partitions: the coordinator has
// sent PRECOMMIT to 1 and 2 when it crashes, but not to 3 and 4, which are then cut off from 1 and 2.
func partition(seed uint64) (opt sim.Options, one, two parley.Set) {
	opt = options("yyyyy")
	opt.Seed = seed
	// Start, the request, four votes: the last one begins phase two. The timer is set, and then PRECOMMIT is
	// sent to 1 and to 2.
	opt.Crashes = []sim.Crash{{At: 0, Step: 6, Effects: 3}}
	one, two = parley.SetOf(1, 2), parley.SetOf(3, 4)
	opt.Links = committest.Apart(one, two, 1900, 0) // when votes have arrived and no timeout has expired
	return opt, one, two
}

// Skeen: two separated groups, each with the states of the reference case 3pc-partition-unsafe, decide
// differently. Every process follows the rule.
func TestPartition(t *testing.T) {
	for seed := range uint64(20) {
		opt, one, two := partition(seed)
		s := sim.Run(opt)
		broken := parleytest.Judge(t, opt.Protocol, s, seed)
		if got := committest.Outcomes(&s.History); got != "-ccaa" || !slices.Equal(broken, []string{problem.Atomicity}) {
			t.Errorf("seed %d: %s, broken %s; want -ccaa and atomicity", seed, got, broken)
		}
		if committest.Decisions(&s.History, one) != "c" || committest.Decisions(&s.History, two) != "a" {
			t.Errorf("seed %d: within a group they differ", seed)
		}
		// Without the partition one of them knows that all voted yes.
		opt.Links = nil
		s = sim.Run(opt)
		parleytest.Judge(t, opt.Protocol, s, seed)
		if got := committest.Outcomes(&s.History); got != "-cccc" {
			t.Errorf("seed %d without a partition: %s", seed, got)
		}
	}
}

// Wrong detectors have the same effect without any crash: 3 believes that all others have crashed, and they
// believe that 3 has. It aborts while they commit.
func TestFalseSuspicion(t *testing.T) {
	broke := 0
	for seed := range uint64(300) {
		opt := options("yyyy")
		opt.Seed = seed
		for q := range parley.ID(3) {
			opt.Suspicions = append(opt.Suspicions, sim.Suspicion{At: 3, Of: q, When: 1600}, sim.Suspicion{At: q, Of: 3, When: 1600})
		}
		s := sim.Run(opt)
		if slices.Contains(parleytest.Judge(t, opt.Protocol, s, seed), problem.Atomicity) {
			broke++
		}
	}
	if broke < 30 {
		t.Errorf("atomicity broke in %d of 300 runs", broke)
	}
}

// A network that is slower than Delta, or loses messages, has the same effect.
func TestSlowNetwork(t *testing.T) {
	late, lost := 0, 0
	for seed := range uint64(400) {
		opt := options("yyyy")
		opt.Seed = seed
		opt.Delay = sim.Delay{Least: 1, Most: 4000}
		if slices.Contains(parleytest.Judge(t, opt.Protocol, sim.Run(opt), seed), problem.Atomicity) {
			late++
		}
		opt.Delay, opt.Loss = sim.Delay{}, 0.2
		if slices.Contains(parleytest.Judge(t, opt.Protocol, sim.Run(opt), seed), problem.Atomicity) {
			lost++
		}
	}
	if late == 0 || lost == 0 {
		t.Errorf("of 400 runs atomicity broke in %d with late messages and in %d with lost ones", late, lost)
	}
}

// detected adds suspicions of the last crashed process at all others, after a delay.
func detected(opt sim.Options, after parley.Tick) sim.Options {
	crash := opt.Crashes[len(opt.Crashes)-1]
	when := parley.Tick(-1)
	opt.Between = func(s *sim.Sim) {
		if when < 0 && int(s.Stats.Crashes) == len(opt.Crashes) {
			when = s.Now()
		}
	}
	sim.Run(opt)
	opt.Between = nil
	opt.Suspicions = slices.Clip(opt.Suspicions)
	for q := range parley.ID(opt.Protocol.N) {
		if q != crash.At && when >= 0 {
			opt.Suspicions = append(opt.Suspicions, sim.Suspicion{At: q, Of: crash.At, When: when + after})
		}
	}
	return opt
}

// An accurate detector makes the processes faster, and no less safe. Try every crash of a run of four
// processes, suspected by all others after a delay, or at once, while messages of the crashed process are
// still in flight; and after the coordinator's crash every crash of the process that takes over.
func TestDetector(t *testing.T) {
	runs := 0
	for _, after := range []parley.Tick{1, 950, 2500} {
		told := func(opt sim.Options) sim.Options { return detected(opt, after) }
		for one := range committest.Crashes(options("yyyy"), 0) {
			runs++
			parleytest.Judge(t, one.Protocol, sim.Run(told(one)), one.Crashes)
		}
		for two := range takeovers(options("yyyy"), told) {
			runs++
			parleytest.Judge(t, two.Protocol, sim.Run(told(two)), two.Crashes)
		}
	}
	if runs != 1611 {
		t.Errorf("%d runs, want 1611", runs)
	}
}

// Messages of a crashed coordinator may arrive long after another one has taken over and decided: a process
// that has answered the new one ignores the old one. If the old one's messages arrive first, the
// acknowledgement of one process says nothing about others.
func TestOldCoordinator(t *testing.T) {
	for _, c := range []struct {
		slow    parley.Set // processes that the first coordinator's later messages reach late
		runs    int
		refused uint64
	}{{parley.SetOf(1, 2, 3), 924, 138}, {parley.SetOf(2, 3), 900, 274}} {
		runs, refused := 0, uint64(0)
		opt := options("yyyy")
		opt.Delay = sim.Delay{Least: 1, Most: 100}
		opt.Links = []sim.Link{{From: parley.SetOf(0), To: c.slow, Since: 1, Delay: sim.Delay{Least: 800, Most: 900}}}
		for two := range takeovers(opt, func(one sim.Options) sim.Options { return detected(one, 1) }) {
			for _, after := range []parley.Tick{1, 1500} {
				s := sim.Run(detected(two, after))
				runs++
				parleytest.Judge(t, opt.Protocol, s, two.Crashes)
				refused += s.Stats.Refused["precommit of one that does not coordinate, or too late"]
			}
		}
		if runs != c.runs || refused != c.refused {
			t.Errorf("%d runs, %d messages refused, want %d and %d", runs, refused, c.runs, c.refused)
		}
	}
}

// A process that has answered a later coordinator gives an earlier one neither its state nor an
// acknowledgement. With both, the two could decide differently.
func TestQuestionOfOldCoordinator(t *testing.T) {
	var h committest.Host
	m := threephase.New(threephase.Config{N: 4}).New(3)
	step := parley.Step{Self: 3, N: 4, Host: &h}
	m.Start(&step)
	m.Request(&step, parley.Msg{Kind: parley.Propose, Body: []byte("yes")})
	m.Receive(&step, 0, parley.Msg{Kind: threephase.VoteRequest})
	step.Effects = nil
	m.Receive(&step, 2, parley.Msg{Kind: threephase.StateRequest})
	report := parley.Msg{Kind: threephase.Report, Value: uint64(problem.Uncertain)}
	if len(h.Why) != 0 || !slices.ContainsFunc(step.Effects, func(e parley.Effect) bool {
		return e.Op == parley.OpSend && e.To == 2 && e.Msg.Kind == report.Kind && e.Msg.Value == report.Value
	}) {
		t.Fatalf("to the question of process 2: got %v and refused %q, want its state", step.Effects, h.Why)
	}
	before := string(parley.Save(m, 0, nil))
	step.Effects = nil
	m.Receive(&step, 1, parley.Msg{Kind: threephase.StateRequest})
	m.Receive(&step, 1, parley.Msg{Kind: threephase.Precommit})
	want := []string{"question of a coordinator that was given up", "precommit of one that does not coordinate, or too late"}
	if !slices.Equal(h.Why, want) {
		t.Errorf("of process 1: got refused %q, want %q", h.Why, want)
	}
	if len(step.Effects) != 0 || string(parley.Save(m, 0, nil)) != before {
		t.Errorf("process 1 still gets %v, or has changed the state", step.Effects)
	}
}

// A coordinator does not wait for a suspected process. It aborts if that process's vote is missing.
func TestSuspectedBefore(t *testing.T) {
	opt := options("yyyy")
	opt.Requests[0].When = 10
	opt.Suspicions = []sim.Suspicion{{At: 0, Of: 2, When: 5}}
	if s := sim.Run(opt); committest.Outcomes(&s.History) != "aaaa" {
		t.Error("suspected before the begin:", committest.Outcomes(&s.History))
	}
	opt = options("yyy-")
	opt.Suspicions = []sim.Suspicion{{At: 0, Of: 3, When: 1000}}
	s := sim.Run(opt)
	if committest.Outcomes(&s.History) != "aaaa" || s.History.Deliveries[0].When != 1000 {
		t.Error("suspected while its vote is waited for:", committest.Outcomes(&s.History), s.History.Deliveries[0].When)
	}
	opt = options("yyyy")
	opt.Requests = opt.Requests[1:]
	opt.Suspicions = []sim.Suspicion{{At: 1, Of: 0, When: 100}, {At: 1, Of: 1, When: 200}, {At: 1, Of: 0, When: 300}}
	s = sim.Run(opt)
	if committest.Outcomes(&s.History) != "-aaa" || s.History.Deliveries[0].When != 100 {
		t.Error("the coordinator is suspected before it asks:", committest.Outcomes(&s.History))
	}
}

// Invalid input is refused and changes nothing.
func TestRefused(t *testing.T) {
	for _, self := range []parley.ID{0, 1} {
		m := threephase.New(threephase.Config{N: 3}).New(self)
		var h committest.Host
		step := parley.Step{Self: self, N: 3, Host: &h}
		m.Start(&step)
		before := string(parley.Save(m, 0, nil))
		stray := []parley.Msg{
			{Kind: 0}, {Kind: 11}, {Kind: threephase.Ask, Value: 1}, {Kind: threephase.Vote, Value: 2},
			{Kind: threephase.Report, Value: 5}, {Kind: threephase.Ask, Origin: 1}, {Kind: threephase.Ask, Seq: 1},
			{Kind: threephase.Ask, Body: []byte("x")},
			{Kind: threephase.VoteRequest}, {Kind: threephase.Vote, Value: 1}, {Kind: threephase.Precommit},
			{Kind: threephase.Ack}, {Kind: threephase.Decision, Value: 1}, {Kind: threephase.Report},
			{Kind: threephase.CameBack},
		}
		for _, q := range stray {
			m.Receive(&step, 2, q)
		}
		m.Receive(&step, self, parley.Msg{Kind: parley.View})
		m.Request(&step, parley.Msg{Kind: parley.Propose, Body: []byte("perhaps")})
		m.Request(&step, parley.Msg{Kind: parley.Carried, Body: []byte("yes")})
		if len(h.Why) != len(stray)+2 || len(step.Effects) != 0 {
			t.Errorf("%d of %d refused, %d effects: %q", len(h.Why), len(stray)+2, len(step.Effects), h.Why)
		}
		if string(parley.Save(m, 0, nil)) != before {
			t.Error("the state has changed")
		}
	}
}

// A damaged log is not ignored.
func TestDamagedLog(t *testing.T) {
	committest.DamagedLogs(t, threephase.New(threephase.Config{N: 3}), 1, map[string]bool{
		"yes": true, "yes,committed": true, "yes,aborted": true,
		"yez": false, "yes,": false, "committed": false, "aborted": false, "yes,yes": false, "yes,committed,aborted": false,
	})
}

// Every kind is shown in words, and an unknown one with a question mark.
func TestExplain(t *testing.T) {
	p := threephase.New(threephase.Config{N: 3})
	var all []string
	for k := parley.Kind(0); k < 12; k++ {
		for _, m := range []parley.Msg{{Kind: k}, {Kind: k, Value: 1}} {
			for row := range p.Explain(parley.Env{}, m, parley.ID.String) {
				all = append(all, row)
			}
		}
	}
	want := "? ? vote? ? no yes precommit ? precommitted ? abort commit you coordinate ? how far are you? ? " +
		"initial uncertain what was decided? ? I restarted too ? ? ?"
	if got := strings.Join(all, " "); got != want {
		t.Error(got)
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []threephase.Config{{N: 1}, {N: parley.MaxProcesses + 1}, {N: 3, Delta: -1}, {N: 3, Delta: 1 << 51}} {
		committest.Panics(t, c, func() { threephase.New(c) })
	}
}
