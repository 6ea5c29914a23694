package rsm_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/timestamp"
	"parley/membership/group"
	"parley/replica/rsm"
	"parley/sim"
)

// durably returns a service over views that continue from a log.
func durably(n int, c rsm.Config) parley.Protocol {
	c.Order, c.Transfer, c.Durable = []string{timestamp.OneSequence}, true, true
	if c.New == nil {
		c.New = func() rsm.Application { return new(echo) }
	}
	c.Retry = 3000
	views := group.Config{N: n, State: true, Return: true, Durable: true, Compact: 6}
	return over(timestamp.New(timestamp.Config{Config: views}), c)
}

// ledger remembers each applied command, once for each time. "list" returns all of them.
type ledger struct{ list []string }

func newLedger() rsm.Application { return new(ledger) }

func (l *ledger) Apply(c []byte) []byte {
	if string(c) == "list" {
		return l.Snapshot()
	}
	l.list = append(l.list, string(c))
	return append([]byte("did "), c...)
}

func (l *ledger) Snapshot() []byte { return []byte(strings.Join(l.list, " ")) }

func (l *ledger) Restore(b []byte) bool {
	l.list = strings.Fields(string(b))
	return true
}

func packOf(at parley.ID, when parley.Tick, number uint64, body []byte) sim.Request {
	return sim.Request{At: at, When: when, Msg: parley.Msg{Kind: rsm.Commands, Seq: number, Body: body}}
}

// replied calls each for the replies of a run.
func replied(t *testing.T, h *parley.History, each func(at parley.ID, pack uint64, list []rsm.Reply)) {
	t.Helper()
	for _, d := range h.Deliveries {
		if d.Msg.Kind != rsm.Replies {
			continue
		}
		list, ok := rsm.ReadReplies(d.Msg.Body)
		if !ok || d.At != d.From {
			t.Fatalf("%+v", d)
		}
		each(d.At, d.Msg.Value, list)
	}
}

// All processes crash and restart: no answered command is lost, none is applied twice although clients keep
// retrying, and all replicas are the same.
func TestAllRestart(t *testing.T) {
	const clients, end = 40, 200_000
	sum, again := 0, 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 3))
		p := durably(3, rsm.Config{New: newLedger, Piece: 64 * int(seed%2)})
		opt := sim.Options{Protocol: p, Seed: seed, FIFO: true, Until: end + 20_000}
		var open []byte
		for range clients {
			open = rsm.AppendCommand(open, 0, 0, nil)
		}
		opt.Requests = append(opt.Requests, packOf(0, 10, 1, open))
		for k := range uint64(clients) {
			first := 8000 + r.Int64N(100_000)
			body := rsm.AppendCommand(nil, rsm.Client(1+k), 1, fmt.Appendf(nil, "c%d", k))
			for try := range 4 {
				opt.Requests = append(opt.Requests, packOf(parley.ID(r.IntN(3)), parley.Tick(first)+parley.Tick(try*15_000), k, body))
			}
		}
		for all := range parley.Tick(2) { // at slightly different times, and in the middle of sends
			when := 15_000 + 60_000*all + parley.Tick(r.Int64N(30_000))
			for id := range parley.ID(3) {
				opt.Crashes = append(opt.Crashes, sim.Crash{
					At: id, When: when + parley.Tick(r.Int64N(1500)), Effects: r.IntN(4), Back: 200 + parley.Tick(r.Int64N(6000)),
				})
			}
		}
		for id := range parley.ID(3) {
			opt.Requests = append(opt.Requests,
				packOf(id, end, 1000, rsm.AppendCommand(nil, 0, 1, []byte("list"))),
				sim.Request{At: id, When: end + 15_000, Msg: parley.Msg{Kind: rsm.Inspect}})
		}
		s := sim.Run(opt)
		did := make(map[uint64]uint64) // by client: its position
		var lists []string
		replied(t, &s.History, func(at parley.ID, number uint64, list []rsm.Reply) {
			switch x := list[0]; {
			case len(list) > 1:
			case number == 1000:
				lists = append(lists, string(x.Answer))
			case x.Status != rsm.Applied || string(x.Answer) != fmt.Sprint("did c", number):
				t.Fatalf("seed %d: client %d is answered %+v", seed, number, x)
			case did[number] != 0 && did[number] != x.Position:
				t.Fatalf("seed %d: client %d is answered at positions %d and %d", seed, number, did[number], x.Position)
			default:
				if did[number] != 0 {
					again++
				}
				did[number] = x.Position
			}
		})
		if len(lists) != 3 || lists[0] != lists[1] || lists[0] != lists[2] {
			t.Fatalf("seed %d: in the end %q", seed, lists)
		}
		list := strings.Fields(lists[0])
		for k := range did {
			if !slices.Contains(list, fmt.Sprint("c", k)) {
				t.Fatalf("seed %d: what client %d asked was answered, and is lost: %q", seed, k, list)
			}
		}
		slices.Sort(list)
		if len(slices.Compact(list)) != len(strings.Fields(lists[0])) {
			t.Fatalf("seed %d: something was applied twice: %q", seed, list)
		}
		sum += len(did)
		var hashes []uint64
		for _, d := range s.History.Deliveries {
			if d.Msg.Kind == rsm.Inspect {
				hashes = append(hashes, d.Msg.Value)
			}
		}
		if len(hashes) != 3 || hashes[0] != hashes[1] || hashes[0] != hashes[2] {
			t.Fatalf("seed %d: states %x", seed, hashes)
		}
	}
	if sum < 150*clients*3/4 || again < 100 {
		t.Errorf("%d answers, %d of them again", sum, again)
	}
}
