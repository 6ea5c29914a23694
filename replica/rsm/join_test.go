package rsm_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/timestamp"
	"parley/membership/group"
	"parley/parleytest"
	"parley/replica/rsm"
	"parley/sim"
)

// echo answers each command with the command and a digest of everything applied before.
type echo struct{ digest uint64 }

func (e *echo) Apply(c []byte) []byte {
	for _, b := range c {
		e.digest = (e.digest ^ uint64(b)) * 1099511628211
	}
	return fmt.Appendf(nil, "%s/%x", c, e.digest)
}

func (e *echo) Snapshot() []byte { return binary.BigEndian.AppendUint64(nil, e.digest) }

func (e *echo) Restore(b []byte) bool {
	if len(b) != 8 {
		return false
	}
	e.digest = binary.BigEndian.Uint64(b)
	return true
}

// returning returns a service over views that readmit restarted processes.
func returning(n int, c rsm.Config) parley.Protocol {
	c.Order, c.Transfer = []string{timestamp.OneSequence}, true
	if c.New == nil {
		c.New = func() rsm.Application { return new(echo) }
	}
	return over(timestamp.New(timestamp.Config{Config: group.Config{N: n, State: true, Return: true}}), c)
}

// tied checks every answer of every process, including crashed ones: it answers a command requested there,
// that command has one position, and a position has one answer.
func tied(t *testing.T, seed uint64, h *parley.History) {
	t.Helper()
	asked := make(map[string]parley.ExternalEvent)
	for _, r := range h.Requests {
		if first, again := asked[string(r.Msg.Body)]; !again || r.Order < first.Order {
			asked[string(r.Msg.Body)] = r
		}
	}
	at := make(map[string]uint64)
	answer := make(map[uint64]string)
	for _, d := range h.Deliveries {
		if d.Msg.Kind != rsm.Answer {
			continue
		}
		body := string(d.Msg.Body)
		command, _, _ := strings.Cut(body, "/")
		r, known := asked[command]
		switch {
		case !known || r.Order > d.Order:
			t.Fatalf("seed %d: an answer to %q, which nobody asked", seed, command)
		case r.Msg.Kind == parley.Carried && r.At != d.From || r.Msg.Kind != parley.Carried && r.Msg.Value != d.Msg.Value:
			t.Fatalf("seed %d: %q of %d is answered for %d", seed, command, r.At, d.From)
		case at[command] != 0 && at[command] != d.Msg.Seq:
			t.Fatalf("seed %d: %q is at positions %d and %d", seed, command, at[command], d.Msg.Seq)
		case answer[d.Msg.Seq] != "" && answer[d.Msg.Seq] != body:
			t.Fatalf("seed %d: at position %d %q and %q", seed, d.Msg.Seq, answer[d.Msg.Seq], body)
		}
		at[command], answer[d.Msg.Seq] = d.Msg.Seq, body
	}
}

// storm returns a run in which processes send requests all the time, and crash, restart, lose their disks and
// are suspected, until the time calm.
func storm(seed uint64, p parley.Protocol, disks bool, calm parley.Tick) sim.Options {
	r := rand.New(rand.NewPCG(seed, 7))
	when := func() parley.Tick { return 1 + parley.Tick(r.Int64N(int64(calm)-30_000)) }
	id := func() parley.ID { return parley.ID(r.IntN(p.N)) }
	opt := sim.Options{Protocol: p, Seed: seed, FIFO: true, Until: calm + 40_000}
	for k := range 12 {
		at, t := id(), when()
		for i := range 1 + r.IntN(3) {
			opt.Requests = append(opt.Requests, ask(at, t+parley.Tick(i), fmt.Sprintf("c%d.%d", k, i)))
		}
	}
	for k := range uint64(3) { // of a client that retries them elsewhere
		t := when()
		opt.Requests = append(opt.Requests, command(id(), t, 70+k, 1, fmt.Sprint("x", k)),
			command(id(), t+9000, 70+k, 1, fmt.Sprint("x", k)))
	}
	for t, k := when()/3, 0; k < 1+r.IntN(3) && t < calm-30_000; t, k = t+25_000+parley.Tick(r.IntN(20_000)), k+1 {
		c := sim.Crash{At: id(), When: t, Back: 500 + parley.Tick(r.IntN(9000)), LostDisk: disks && r.IntN(2) == 0}
		// It gets a request right after the restart, before it is a member.
		opt.Crashes = append(opt.Crashes, c)
		opt.Requests = append(opt.Requests, ask(c.At, t+c.Back+10, fmt.Sprint("back", k)))
	}
	for range r.IntN(3) {
		opt.Suspicions = append(opt.Suspicions, sim.Suspicion{At: id(), Of: id(), When: when()})
	}
	for q := range parley.ID(p.N) {
		opt.Requests = append(opt.Requests, ask(q, calm, fmt.Sprint("last", q)))
	}
	return opt
}

// servesOn checks the promises, and that in the end every process answers the last requests, and no replica
// stops or is found to differ.
func servesOn(t *testing.T, seed uint64, p parley.Protocol, s *sim.Sim) {
	t.Helper()
	safe(t, seed, p, s)
	answered := make([]int, p.N)
	for _, d := range s.History.Deliveries {
		if strings.HasPrefix(string(d.Msg.Body), "last") {
			answered[d.At]++
		}
	}
	if slices.Min(answered) < p.N {
		t.Fatalf("seed %d: in the end processes answer %v of %d commands\n%q\n%v", seed, answered, p.N,
			answers(&s.History), s.Stats.Refused)
	}
	for _, i := range s.History.Indications {
		switch i.Msg.Kind {
		case rsm.Stopped, rsm.Diverged, rsm.Differs, rsm.Parted:
			t.Fatalf("seed %d: %+v", seed, i)
		}
	}
}

// safe checks the promises, and what must hold in any case.
func safe(t *testing.T, seed uint64, p parley.Protocol, s *sim.Sim) {
	t.Helper()
	judge(t, seed, p, s, rsm.Consistency, rsm.OneMachine, rsm.Once)
	tied(t, seed, &s.History)
}

// A replica that restarts, or was excluded without a crash, takes over the state of the others, including its
// place as a client (reintegration): consistency, no command twice, every answer to its own command. In the
// end all replicas continue as one.
//
// The group beneath promises nothing if disks are lost, because they hold the incarnations. The service itself
// does not need them: views distinguish incarnations.
func TestReintegration(t *testing.T) {
	for name, c := range map[string]struct {
		seeds uint64
		disks bool // disks are lost, too
		made  func(n int, every uint64) parley.Protocol
	}{
		"in one message": {300, false, func(n int, every uint64) parley.Protocol {
			return returning(n, rsm.Config{Every: every})
		}},
		"in pieces": {300, false, func(n int, every uint64) parley.Protocol { return returning(n, pieces(every)) }},
		"from a log": {100, false, func(n int, every uint64) parley.Protocol {
			return durably(n, rsm.Config{Every: every})
		}},
		"from a log, or in pieces": {100, false, func(n int, every uint64) parley.Protocol {
			return durably(n, rsm.Config{Every: every, Piece: 16})
		}},
		"without a disk":            {150, true, func(int, uint64) parley.Protocol { return returning(3, rsm.Config{}) }},
		"in pieces, without a disk": {100, true, func(int, uint64) parley.Protocol { return returning(3, pieces(0)) }},
	} {
		t.Run(name, func(t *testing.T) {
			var restarts, again, suspicions, lost uint64
			for seed := range c.seeds {
				p := c.made(3+int(seed%2), seed%4)
				s := sim.Run(storm(seed, p, c.disks, 120_000))
				if restarts += uint64(len(s.History.Restarts)); c.disks {
					lost += s.Stats.LostDisks
					safe(t, seed, p, s)
					continue
				}
				suspicions += s.Stats.FalseSuspicions
				servesOn(t, seed, p, s)
				for _, property := range []string{rsm.Consistency, rsm.OneMachine, rsm.Once} {
					if x := promised(t, p, s.RunConditions(), property); !x.Holds {
						t.Fatalf("seed %d: %s is not promised: %s", seed, property, x.Because)
					}
				}
				for _, d := range s.History.Deliveries {
					if d.At == d.From && strings.HasPrefix(string(d.Msg.Body), "back") {
						again++
					}
				}
				for _, i := range s.History.Indications {
					if name == "in pieces" && i.Msg.Kind == group.SnapshotInstalled && len(i.Msg.Body) != 1 {
						t.Fatalf("seed %d: a state of %d bytes comes in one message", seed, len(i.Msg.Body))
					}
				}
			}
			if restarts < c.seeds || c.disks && lost < c.seeds/3 ||
				!c.disks && (suspicions < c.seeds/3 || again < restarts*8/10) {
				t.Errorf("%d restarts, with %d answers to what was asked right behind them; %d suspicions, %d disks lost",
					restarts, again, suspicions, lost)
			}
		})
	}
}

// Requests that a group refuses, because it has too many to keep until the next view, are sent again in that
// view: a process's own commands never stall for good, and none is answered twice.
func TestGroupRefuses(t *testing.T) {
	refused := 0
	for seed := range uint64(20) {
		views := group.Config{N: 3, State: true, Return: true, Queue: 1}
		p := over(timestamp.New(timestamp.Config{Config: views}), rsm.Config{
			Order: []string{timestamp.OneSequence}, Transfer: true, New: func() rsm.Application { return new(echo) },
		})
		opt := sim.Options{Protocol: p, Seed: seed, FIFO: true, Until: 40_000, Crashes: []sim.Crash{{At: 2, When: 3000}}}
		for k := range uint64(50) { // of clients that retry later
			when, x := parley.Tick(4000+100*k), fmt.Sprint("x", k)
			opt.Requests = append(opt.Requests, command(1, when, 100+k, 1, x), command(1, when+10_000, 100+k, 1, x))
		}
		for k := range 5 {
			opt.Requests = append(opt.Requests, ask(1, 7000+parley.Tick(100*seed)+parley.Tick(k), fmt.Sprint("c", k)))
		}
		s := sim.Run(opt)
		refused += int(s.Stats.Refused["too many requests for the next view"])
		judge(t, seed, p, s)
		tied(t, seed, &s.History)
		var own []string
		for _, d := range s.History.Deliveries {
			if d.At == 1 && d.From == 1 && d.Msg.Value >= 1<<63 {
				own = append(own, string(d.Msg.Body))
			}
		}
		for k := range 5 {
			if len(own) != 5 || !strings.HasPrefix(own[k], fmt.Sprint("c", k, "/")) {
				t.Fatalf("seed %d: of 5 commands %d are answered: %q", seed, len(own), own)
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// If the group gives no state, a replica that joins stops, and says so.
func TestNoStateComes(t *testing.T) {
	beneath := timestamp.New(timestamp.Config{Config: group.Config{N: 3, Return: true}})
	for _, transfer := range []bool{false, true} {
		p := over(beneath, rsm.Config{Order: []string{timestamp.OneSequence}, Transfer: transfer})
		s := sim.Run(sim.Options{
			Protocol: p, FIFO: true, Until: 60_000, Crashes: []sim.Crash{{At: 1, When: 4000, Back: 2000}},
			Requests: []sim.Request{ask(0, 10, "deposit 5"), ask(1, 40_000, "deposit 5"), ask(2, 40_000, "balance")},
		})
		judge(t, 0, p, s)
		stopped := 0
		for _, i := range s.History.Indications {
			if i.Msg.Kind == rsm.Stopped && i.At == 1 && strings.Contains(string(i.Msg.Body), "group gives none") {
				stopped++
			}
		}
		if got := answers(&s.History); stopped != 1 || got[1] != "1:1005 " || got[0] != "1:1005 2:1005 " {
			t.Errorf("transfer %t: %d indications, %q", transfer, stopped, got)
		}
	}
}

func TestSuite(t *testing.T) {
	for _, c := range []rsm.Config{{New: account, Every: 2}, {
		New: account, Setup: rsm.Setup{Active: parley.Everyone(4), M: 1, Checked: true},
	}} {
		t.Run("", func(t *testing.T) {
			parleytest.Suite(t, returning(4, c), parleytest.Options{
				Sim: sim.Options{FIFO: true, Until: 40_000, Requests: []sim.Request{
					ask(0, 10, "deposit 5"), ask(1, 10, "deposit 6"), ask(0, 20, "interest 2"), command(2, 500, 7, 1, "balance"),
				}}, Seeds: 30,
			})
		})
	}
}
