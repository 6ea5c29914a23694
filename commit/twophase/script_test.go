package twophase_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/commit/problem"
	"parley/commit/twophase"
	"parley/internal/committest"
	"parley/sim"
)

// bench drives one process without a host.
type bench struct {
	committest.Host
	t       *testing.T
	p       parley.Protocol
	machine parley.Machine
	step    parley.Step
	log     []parley.Record
	state   []byte // what Compact left
}

func newBench(t *testing.T, n int, self parley.ID) *bench {
	b := &bench{t: t, p: twophase.New(twophase.Config{N: n, Delta: 1000})}
	b.machine = b.p.New(self)
	b.step = parley.Step{Self: self, N: n, Host: b}
	b.machine.Start(&b.step)
	return b
}

func (b *bench) receive(from parley.ID, m parley.Msg) string {
	return b.do(func() { b.machine.Receive(&b.step, from, m) })
}
func (b *bench) vote(v string) string {
	return b.do(func() { b.machine.Request(&b.step, parley.Msg{Kind: parley.Propose, Body: []byte(v)}) })
}
func (b *bench) timeout() string { return b.do(func() { b.machine.Timeout(&b.step, 0) }) }

// restart restarts the process with its durable state.
func (b *bench) restart() string {
	b.machine = b.p.New(b.step.Self)
	if len(b.state) > 0 && !parley.LoadDurable(b.machine, b.step.Now, b.state) {
		b.t.Fatal("the durable state is not loaded")
	}
	b.step.Restart, b.step.Log = true, b.log
	defer func() { b.step.Restart, b.step.Log = false, nil }()
	return b.do(func() { b.machine.Start(&b.step) })
}

// do runs a clause and lists its effects, records first as in a host.
func (b *bench) do(clause func()) string {
	b.step.Effects = b.step.Effects[:0]
	clause()
	var records, out []string
	for _, e := range b.step.Effects {
		switch e.Op {
		case parley.OpAppend:
			b.log = append(b.log, parley.Record{Body: e.Msg.Body})
			records = append(records, "log "+string(e.Msg.Body))
		case parley.OpCompact:
			b.state, b.log = parley.SaveDurable(b.machine, b.step.Now, nil), nil
			records = append(records, "compact")
		case parley.OpSend:
			out = append(out, fmt.Sprintf("%s to %s", b.explain(e.Msg), e.To))
		case parley.OpDeliver:
			out = append(out, "deliver "+string(e.Msg.Body))
		case parley.OpIndicate:
			out = append(out, "blocked")
		case parley.OpSetTimer:
			out = append(out, fmt.Sprint("timer ", int64(e.After)))
		}
	}
	return strings.Join(append(records, out...), ", ")
}

func (b *bench) explain(m parley.Msg) string {
	for row := range b.p.Explain(parley.Env{}, m, parley.ID.String) {
		return row
	}
	return ""
}

// All messages.
var (
	request  = parley.Msg{Kind: twophase.VoteRequest}
	yes      = parley.Msg{Kind: twophase.Vote, Value: 1}
	no       = parley.Msg{Kind: twophase.Vote}
	commit   = parley.Msg{Kind: twophase.Decision, Value: 1}
	abort    = parley.Msg{Kind: twophase.Decision}
	ack      = parley.Msg{Kind: twophase.Ack}
	ask      = parley.Msg{Kind: twophase.Ask}
	answered = func(s problem.State) parley.Msg { return parley.Msg{Kind: twophase.Answer, Value: uint64(s)} }
)

// script checks the effects of one step after another.
func script(t *testing.T, b *bench, steps ...any) {
	t.Helper()
	for i := 0; i+1 < len(steps); i += 2 {
		var got string
		switch do := steps[i].(type) {
		case func() string:
			got = do()
		case parley.Msg:
			got = b.receive(0, do)
		case string:
			got = b.vote(do)
		}
		if want := steps[i+1].(string); got != want {
			t.Errorf("step %d: %q, want %q", i/2, got, want)
		}
	}
}

// from delivers a message of another process than the coordinator.
func (b *bench) from(id parley.ID, m parley.Msg) func() string {
	return func() string { return b.receive(id, m) }
}

// A participant forces the record of its yes before the yes leaves. Then it does not abort by itself, however
// long it waits, and indicates that it is blocked.
func TestParticipant(t *testing.T) {
	b := newBench(t, 4, 1)
	script(t, b,
		"yes", "timer 3000",
		request, "log yes, yes to 0, timer 3000",
		request, "yes to 0", // a second request is answered from the log
		b.timeout, "what do you know? to all, timer 4000",
		b.from(2, answered(problem.Uncertain)), "",
		b.timeout, "blocked, what do you know? to all, timer 4000",
		b.timeout, "what do you know? to all, timer 4000",
		b.from(3, ask), "uncertain to 3",
		b.restart, "what do you know? to all, timer 4000",
		b.from(2, answered(problem.Committed)), "log committed, deliver commit, logged to 0",
		b.from(3, ask), "committed to 3",
		commit, "logged to 0", // the acknowledgement was lost
		abort, "", // from a coordinator that has forgotten
		request, "",
		b.restart, "deliver commit",
		b.timeout, "",
	)
	want := []string{"other than what is decided", "request for a vote after the decision"}
	if !slices.Equal(b.Why, want) {
		t.Errorf("refused %q", b.Why)
	}
}

// A process that has not voted yes may abort at any time, without a record.
func TestUnilateralAbort(t *testing.T) {
	b := newBench(t, 4, 1)
	script(t, b, request, "", "no", "no to 0, deliver abort", request, "no to 0", abort, "")
	b = newBench(t, 4, 1)
	script(t, b, "no", "deliver abort", request, "no to 0", commit, "")
	b = newBench(t, 4, 1)
	script(t, b, "yes", "timer 3000", b.timeout, "deliver abort", request, "no to 0", b.restart, "deliver abort")
	b = newBench(t, 4, 1)
	script(t, b, request, "", b.from(2, ask), "no to 0, deliver abort, aborted to 2", "yes", "")
	b = newBench(t, 4, 1)
	script(t, b, "yes", "timer 3000", abort, "deliver abort", request, "no to 0")
	b = newBench(t, 4, 1)
	script(t, b, commit, "", "yes", "timer 3000", commit, "", request, "log yes, yes to 0, timer 3000",
		abort, "log aborted, deliver abort", ask, "aborted to 0", b.restart, "deliver abort")
	if !slices.Equal(b.Why, []string{"commit without the yes of this process", "commit without the yes of this process"}) {
		t.Errorf("refused %q", b.Why)
	}
}

// The coordinator forces the commit record before COMMIT leaves, answers late and duplicate votes from its
// log, and keeps the record until all have acknowledged.
func TestCoordinator(t *testing.T) {
	b := newBench(t, 3, 0)
	const decision = "log committed, deliver commit, commit to 1, commit to 2, timer 4000"
	script(t, b,
		b.from(1, yes), "", // before it has asked
		"yes", "vote? to all, timer 2000",
		b.from(1, yes), "",
		b.from(1, yes), "", // a duplicate has no effect
		b.from(1, ask), "", // it waits for votes: the decision will follow
		b.from(2, yes), decision,
		b.from(2, yes), "commit to 2",
		b.from(1, no), "", // from no process that voted yes
		b.from(1, ask), "commit to 1",
		b.from(2, ack), "",
		b.from(2, ack), "",
		b.timeout, "commit to 1, timer 4000",
		b.restart, "deliver commit, commit to 1, commit to 2, timer 4000",
		b.from(2, yes), "commit to 2",
		b.from(1, ack), "",
		b.from(2, ack), "log end, compact",
		b.from(2, ack), "",
		b.from(1, yes), "abort to 1", // a late vote: 1 has committed
		b.restart, "",
		b.from(1, ask), "abort to 1",
		b.timeout, "",
		"yes", "",
	)
	if len(b.log) != 0 {
		t.Errorf("%d records are left", len(b.log))
	}
	want := []string{
		"vote that was not asked for", "acknowledgement that nobody waits for", "second vote, or one too late",
	}
	if !slices.Equal(b.Why, want) {
		t.Errorf("refused %q", b.Why)
	}
}

// Presumed abort: an abort is not logged, and the answer is abort if the log has nothing.
func TestPresumedAbort(t *testing.T) {
	b := newBench(t, 3, 0)
	script(t, b, "yes", "vote? to all, timer 2000", b.from(1, no), "deliver abort, abort to 2",
		b.from(2, yes), "", // crosses with the abort
		b.from(2, yes), "abort to 2", b.from(2, no), "", b.restart, "deliver abort", b.from(2, yes), "abort to 2",
		b.from(2, ask), "abort to 2")
	b = newBench(t, 3, 0)
	script(t, b, "yes", "vote? to all, timer 2000", b.from(1, yes), "", b.timeout, "deliver abort, abort to 1, abort to 2")
	b = newBench(t, 3, 0)
	script(t, b, "yes", "vote? to all, timer 2000", b.from(1, yes), "", b.restart, "deliver abort", b.from(1, ask), "abort to 1")
	b = newBench(t, 3, 0)
	script(t, b, "no", "deliver abort, abort to 1, abort to 2")
	if len(b.log) != 0 {
		t.Error("an abort was logged")
	}
}

// Invalid input is refused and changes nothing.
func TestRefused(t *testing.T) {
	for _, self := range []parley.ID{0, 1} {
		b := newBench(t, 3, self)
		before := string(parley.Save(b.machine, 0, nil))
		stray := []parley.Msg{
			{Kind: 0}, {Kind: 7}, {Kind: twophase.Ask, Value: 1}, {Kind: twophase.Vote, Value: 2},
			{Kind: twophase.Answer, Value: 5}, {Kind: twophase.Ask, Origin: 1}, {Kind: twophase.Ask, Seq: 1},
			{Kind: twophase.Ask, Body: []byte("x")}, request, commit, abort, // not from the coordinator
		}
		if self == 1 {
			stray = append(stray, yes, no, ack)
		}
		for _, m := range stray {
			if got := b.receive(2, m); got != "" {
				t.Errorf("%v: %s", m, got)
			}
		}
		if got := b.vote("perhaps"); got != "" {
			t.Errorf("a vote that is none: %s", got)
		}
		if n := 1 + len(stray); len(b.Why) != n {
			t.Errorf("%d refused, want %d: %q", len(b.Why), n, b.Why)
		}
		if after := string(parley.Save(b.machine, 0, nil)); after != before {
			t.Error("the state has changed")
		}
	}
}

// A damaged log is not ignored: a process that forgot its yes or commit would break what others rely on.
func TestDamagedLog(t *testing.T) {
	p := twophase.New(twophase.Config{N: 3})
	committest.DamagedLogs(t, p, 0, map[string]bool{
		"committed": true, "committed,end": true, "end": false, "committed,committed": false, "aborted": false,
	})
	committest.DamagedLogs(t, p, 1, map[string]bool{
		"yes": true, "yes,committed": true, "yes,aborted": true, "yez": false, "yes,": false, "committed": false,
		"aborted": false, "yes,yes": false, "yes,aborted,committed": false,
	})
}

// The coordinator forgets a commit when it is in all logs, not earlier: a participant that was down all the
// time commits after its restart.
func TestForgets(t *testing.T) {
	opt := options("yyyy")
	opt.Crashes = []sim.Crash{{At: 3, Step: 3, Effects: 2, Back: 30_000}} // yes is logged and sent
	opt.Until = 60_000
	ended := parley.Tick(0)
	opt.Between = func(s *sim.Sim) {
		if _, log := s.Durable(0); ended == 0 && s.Now() > 10_000 && len(log) == 0 {
			ended = s.Now()
		}
	}
	s := sim.Run(opt)
	if got := committest.Outcomes(&s.History); got != "cccc" {
		t.Fatal(got)
	}
	if ended < 30_000 || ended > 40_000 {
		t.Errorf("forgotten at %d", ended)
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []twophase.Config{{N: 1}, {N: parley.MaxProcesses + 1}, {N: 3, Delta: -1}, {N: 3, Delta: 1 << 51}} {
		committest.Panics(t, c, func() { twophase.New(c) })
	}
}
