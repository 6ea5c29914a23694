package rsm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
)

// tally is an application with a text, to which commands add. The command "break" panics.
type tally struct{ text []byte }

func (a *tally) Apply(command []byte) []byte {
	if string(command) == "break" {
		panic("broken")
	}
	a.text = append(a.text, command...)
	return fmt.Append(nil, len(a.text))
}

func (a *tally) Snapshot() []byte { return bytes.Clone(a.text) }

func (a *tally) Restore(b []byte) bool {
	a.text = bytes.Clone(b)
	return true
}

// ordering is an order of four processes, of which one may lie, and what their hosts keep. Every payload has the
// position of its index, plus 1.
type ordering struct {
	c     OrderedConfig
	now   parley.Tick
	ms    []*ordered
	log   [][]parley.Record
	state [][]byte
	list  []delivered
	links []sent
	// The indications, and the bodies of replies, of each process.
	told    [][]parley.Msg
	replies [][][]byte
	refused int
}

type delivered struct {
	from    parley.ID
	payload []byte
}

type sent struct {
	from, to parley.ID
	m        parley.Msg
}

func (w *ordering) Choose(int) int                        { return 0 }
func (w *ordering) Sign(parley.ID, []byte) []byte         { return nil }
func (w *ordering) Verify(parley.ID, []byte, []byte) bool { return false }
func (w *ordering) Refused(parley.ID, parley.ID, string)  { w.refused++ }
func (w *ordering) machine(i parley.ID) *ordered          { return w.ms[i] }
func (w *ordering) fresh() *ordered                       { return NewOrdered(w.c).(*ordered) }
func (w *ordering) lastTold(i parley.ID, k parley.Kind) int { // -1: never
	for j := len(w.told[i]) - 1; j >= 0; j-- {
		if w.told[i][j].Kind == k {
			return int(w.told[i][j].Value)
		}
	}
	return -1
}

func newOrdering(c OrderedConfig) *ordering {
	c.N, c.M, c.New, c.Durable = 4, 1, func() Application { return new(tally) }, true
	w := &ordering{
		c: c, log: make([][]parley.Record, 4), state: make([][]byte, 4), told: make([][]parley.Msg, 4),
		replies: make([][][]byte, 4),
	}
	for i := range parley.ID(4) {
		w.ms = append(w.ms, w.fresh())
		w.do(i, func(s *parley.Step) { w.ms[i].Start(s) })
		w.live(i)
	}
	return w
}

// do runs a step, and carries out its effects.
func (w *ordering) do(i parley.ID, clause func(s *parley.Step)) {
	s := &parley.Step{Self: i, N: 4, Host: w, Now: w.now, Life: 1}
	clause(s)
	compacts := false
	for _, e := range s.Effects {
		switch e.Op {
		case parley.OpSend:
			w.links = append(w.links, sent{i, e.To, e.Msg})
		case parley.OpBroadcast:
			w.list = append(w.list, delivered{i, ToOrder(e.Msg)})
		case parley.OpAppend:
			w.log[i] = append(w.log[i], parley.Record{Body: bytes.Clone(e.Msg.Body)})
		case parley.OpCompact:
			compacts = true
		case parley.OpIndicate:
			w.told[i] = append(w.told[i], e.Msg)
		case parley.OpDeliver:
			w.replies[i] = append(w.replies[i], e.Msg.Body)
		}
	}
	if compacts {
		w.state[i], w.log[i] = parley.SaveDurable(w.ms[i], w.now, nil), nil
	}
}

func (w *ordering) carried(i, from parley.ID, m parley.Msg) {
	w.do(i, func(s *parley.Step) {
		s.Carried = true
		w.ms[i].Receive(s, from, m)
	})
}

func (w *ordering) live(i parley.ID) { w.carried(i, i, parley.Msg{Kind: Live}) }

// from has the order of a process continue after a position.
func (w *ordering) from(i parley.ID, position int) {
	w.carried(i, i, parley.Msg{Kind: From, Seq: uint64(position)})
	w.live(i)
}

// order appends a payload.
func (w *ordering) order(from parley.ID, payload []byte) {
	w.list = append(w.list, delivered{from, payload})
}

// packed orders a pack of one command.
func (w *ordering) packed(from parley.ID, client, number uint64, command string) {
	w.order(from, ToOrder(parley.Msg{Kind: pack, Seq: 1, Body: AppendCommand(nil, client, number, []byte(command))}))
}

// feed delivers list[after:] to a process.
func (w *ordering) feed(i parley.ID, after int) {
	for k := after; k < len(w.list); k++ {
		w.carried(i, w.list[k].from, FromOrder(uint64(k+1), w.list[k].payload))
	}
}

// pass delivers the messages on links, after lie has changed them. A message without a kind is lost.
func (w *ordering) pass(lie func(x sent) parley.Msg) {
	for len(w.links) > 0 {
		x := w.links[0]
		w.links = w.links[1:]
		if x.m = lie(x); x.m.Kind > 0 {
			w.do(x.to, func(s *parley.Step) { w.ms[x.to].Receive(s, x.from, x.m) })
		}
	}
}

// restart restarts a process with what its host keeps.
func (w *ordering) restart(t *testing.T, i parley.ID) {
	t.Helper()
	w.ms[i] = w.fresh()
	if w.state[i] != nil && !parley.LoadDurable(w.ms[i], w.now, w.state[i]) {
		t.Fatal("the state cannot be loaded")
	}
	w.do(i, func(s *parley.Step) {
		s.Restart, s.Log = true, w.log[i]
		w.ms[i].Start(s)
	})
}

// all delivers everything to the first processes.
func (w *ordering) all(count parley.ID, after int) {
	for i := range count {
		w.feed(i, after)
	}
}

// anyPayload makes up a payload, as a liar may.
func anyPayload(r *rand.Rand, opened uint64) []byte {
	var body []byte
	for range r.IntN(4) {
		client, number := []uint64{0, 0, opened, Client(3), r.Uint64()}[r.IntN(5)], uint64(r.IntN(4))
		body = AppendCommand(body, client, number, fmt.Append(nil, "x", r.IntN(3)))
	}
	b := ToOrder(parley.Msg{Kind: []parley.Kind{pack, pack, pack, mark, sum, void}[r.IntN(6)], Seq: r.Uint64(), Body: body})
	if r.IntN(4) == 0 && len(b) > 0 {
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
	}
	return b[:len(b)-r.IntN(2)*r.IntN(len(b)+1)]
}

// Whatever is in the order, replicas that get it have the same state. A replica that restarts at any time, with its
// state, its log, or both, and gets again what it has had, has the same state, too, and applies nothing twice.
func TestOrderedIsDeterministic(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newOrdering(OrderedConfig{Compact: 1 + r.IntN(8), Sessions: 4, Answers: 20})
		w.order(0, ToOrder(parley.Msg{Kind: pack, Body: AppendCommand(nil, 0, 0, []byte("me"))}))
		for range 40 {
			w.order(parley.ID(r.IntN(4)), anyPayload(r, Client(1)))
		}
		if seed%4 == 0 {
			w.packed(3, 0, 1, "break") // all stop here
			w.packed(3, 0, 1, "more")
		}
		w.feed(0, 0)
		stop := r.IntN(len(w.list))
		whole := w.list
		w.list = whole[:stop]
		w.feed(1, 0)
		w.list = whole
		w.restart(t, 1)
		after := r.IntN(stop + 1)
		w.from(1, after)
		w.feed(1, after)
		if a, b := w.machine(0), w.machine(1); !bytes.Equal(a.given(), b.given()) || a.serving() != b.serving() {
			t.Fatalf("seed %d: the states differ: %q, %q", seed, a.given(), b.given())
		}
		if w.machine(0).serving() != (seed%4 != 0) {
			t.Fatalf("seed %d: serves %t", seed, w.machine(0).serving())
		}
	}
}

// A process that has missed deliveries serves nothing until it has fetched a state that two others report. No single
// liar can give it another state, or keep it from fetching one.
func TestOrderedFetches(t *testing.T) {
	honest := func(x sent) parley.Msg { return x.m }
	of2 := func(lie func(m parley.Msg) parley.Msg) func(x sent) parley.Msg {
		return func(x sent) parley.Msg {
			if x.from == 2 {
				return lie(x.m)
			}
			return x.m
		}
	}
	flipped := func(kind parley.Kind) func(m parley.Msg) parley.Msg {
		return func(m parley.Msg) parley.Msg {
			if m.Kind == kind {
				m.Body = bytes.Clone(m.Body)
				m.Body[len(m.Body)-1] ^= 1
			}
			return m
		}
	}
	without := func(kind parley.Kind) func(m parley.Msg) parley.Msg {
		return func(m parley.Msg) parley.Msg {
			if m.Kind == kind {
				return parley.Msg{}
			}
			return m
		}
	}
	pieces := 0
	for name, lie := range map[string]func(x sent) parley.Msg{
		"nobody lies": honest, "another state": honest, "another hash": of2(flipped(sum)), "other pieces": of2(flipped(part)),
		"no hash": of2(without(sum)), "no pieces": of2(without(part)),
		"one piece": of2(func(m parley.Msg) parley.Msg {
			if m.Kind == part {
				if pieces++; pieces > 1 {
					return parley.Msg{}
				}
				m = flipped(part)(m)
			}
			return m
		}),
	} {
		t.Run(name, func(t *testing.T) {
			w := newOrdering(OrderedConfig{Piece: 4, Retry: 100})
			for i := range 5 {
				w.packed(0, 0, 1, fmt.Sprint("before", i))
			}
			w.all(3, 0)
			w.from(3, 5)
			if w.lastTold(3, Serving) != 0 || len(w.list) != 6 {
				t.Fatal("it serves, or does not ask", w.told[3], len(w.list))
			}
			if name == "another state" {
				w.machine(2).app.Apply([]byte("another"))
			}
			w.feed(2, 5) // so that it is the first that reports
			w.all(2, 5)
			w.packed(1, 0, 1, "after")
			w.all(3, 6)
			w.feed(3, 5)
			for range 40 {
				w.pass(lie)
				next := len(w.list)
				w.now += 100
				for i := range parley.ID(4) {
					w.do(i, func(s *parley.Step) { w.ms[i].Timeout(s, retry) })
				}
				w.all(3, next)
				w.feed(3, next)
			}
			if got := w.lastTold(3, Serving); got != 1 {
				t.Fatalf("it does not serve: %+v, %v", w.ms[3].fetch, w.told[3])
			}
			for i := range parley.ID(2) {
				if a, b := w.ms[i].save(), w.ms[3].save(); !bytes.Equal(a, b) {
					t.Errorf("process %d has the state %q, and process 3 has %q", i, a, b)
				}
			}
			w.restart(t, 3)
			w.from(3, 5)
			if a, b := w.ms[0].save(), w.ms[3].save(); !bytes.Equal(a, b) || !w.ms[3].serving() {
				t.Errorf("after a restart the states are %q and %q", a, b)
			}
		})
	}
}

// Whatever one process sends on its links, the others continue, and a process that fetches a state gets the right one.
func TestOrderedHostileLinks(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 2))
		w := newOrdering(OrderedConfig{Piece: 4, Retry: 100})
		for range 4 {
			w.packed(0, 0, 1, "some text")
		}
		w.all(3, 0)
		w.from(3, 4)
		w.all(4, 4)
		garbage := func() {
			for range 20 {
				m := parley.Msg{
					Kind: parley.Kind(r.IntN(int(void) + 2)), Seq: uint64(r.IntN(3)), Value: uint64(r.IntN(60)),
					Body: make([]byte, []int{0, 1, 4, 33, 34, 40}[r.IntN(6)]),
				}
				if r.IntN(2) == 0 {
					m.Seq = w.ms[3].life<<16 | uint64(1+r.IntN(2))
				}
				if r.IntN(8) == 0 {
					m.Value = r.Uint64()
				}
				to := parley.ID([]int{0, 1, 3}[r.IntN(3)])
				w.do(to, func(s *parley.Step) { w.ms[to].Receive(s, 2, m) })
			}
		}
		for range 30 {
			garbage()
			w.pass(func(x sent) parley.Msg {
				if x.from == 2 {
					return parley.Msg{}
				}
				return x.m
			})
			next := len(w.list)
			w.now += 100
			for i := range parley.ID(4) {
				w.do(i, func(s *parley.Step) { w.ms[i].Timeout(s, retry) })
			}
			w.all(4, next)
		}
		if a, b := w.ms[0].save(), w.ms[3].save(); !bytes.Equal(a, b) || !w.ms[3].serving() {
			t.Fatalf("seed %d: the states are %q and %q; it serves: %t", seed, a, b, w.ms[3].serving())
		}
	}
}

// If the order skips deliveries while a process fetches a state, the state lacks them. The process fetches another one.
func TestOrderedMissesMore(t *testing.T) {
	w := newOrdering(OrderedConfig{Retry: 100})
	w.packed(0, 0, 1, "a")
	w.all(3, 0)
	w.from(3, 1)
	w.all(4, 1) // its mark
	w.packed(0, 0, 1, "b")
	w.all(3, 2)
	w.from(3, 3) // it never gets b
	w.now += 200
	w.all(4, 3) // its next mark
	w.pass(func(x sent) parley.Msg { return x.m })
	if text := string(w.machine(3).app.(*tally).text); text != "ab" || !w.machine(3).serving() {
		t.Errorf("it has %q", text)
	}
}

// A liar that asks for a state without end gets one from time to time, and does not keep others from getting one.
func TestOrderedMarksWithoutEnd(t *testing.T) {
	w := newOrdering(OrderedConfig{Retry: 100})
	w.packed(0, 0, 1, "a")
	for i := range 100 {
		w.order(3, ToOrder(parley.Msg{Kind: mark, Seq: uint64(i)}))
	}
	w.order(2, ToOrder(parley.Msg{Kind: mark, Seq: 7}))
	w.feed(0, 0)
	count := make([]int, 4)
	for _, x := range w.links {
		count[x.to]++
	}
	if !slices.Equal(count, []int{0, 0, 1, 1}) {
		t.Errorf("it saves its state %v times", count)
	}
	w.now += 200
	w.order(3, ToOrder(parley.Msg{Kind: mark, Seq: 8}))
	w.feed(0, len(w.list)-1)
	if len(w.links) != 3 {
		t.Errorf("%d states, later", len(w.links))
	}
}

// A liar that opens sessions without end, in the names of others, has its own sessions forgotten, and no others. If it
// sends a command in a session of another client, that client learns that its number is taken.
func TestOrderedSessionsOfALiar(t *testing.T) {
	w := newOrdering(OrderedConfig{Sessions: 64})
	w.packed(0, 0, 0, "me")
	w.packed(0, Client(1), 5, "mine")
	var body []byte
	for i := range OrderedPack {
		body = AppendCommand(body, 0, 0, binary.AppendUvarint([]byte("me"), uint64(i)))
	}
	for range 3 {
		w.order(3, ToOrder(parley.Msg{Kind: pack, Body: body}))
	}
	w.order(3, ToOrder(parley.Msg{Kind: pack, Body: AppendCommand(body, 0, 1, []byte("too long"))}))
	w.packed(3, Client(1), 6, "theirs")
	w.packed(0, Client(1), 6, "mine")
	w.packed(3, Client(1), 6, "theirs")
	w.packed(0, Client(1), 5, "mine")
	w.packed(1, Client(1), 7, "again")
	w.packed(0, Client(1), 7, "again")
	w.feed(0, 0)
	m := w.machine(0)
	if i, found := m.sessions.find(Client(1)); !found || m.sessions.list[i].last != 7 || len(m.sessions.list) > 64 {
		t.Errorf("%d sessions, and the first one is there: %t", len(m.sessions.list), found)
	}
	if text := string(m.app.(*tally).text); text != "minetheirsagain" {
		t.Error(text)
	}
	var got []Status
	for _, b := range w.replies[0] {
		list, _ := ReadReplies(b)
		got = append(got, list[0].Status)
	}
	if want := []Status{Applied, Applied, Taken, Old, Applied}; !slices.Equal(got, want) {
		t.Errorf("%v, and %v is expected", got, want)
	}
}
