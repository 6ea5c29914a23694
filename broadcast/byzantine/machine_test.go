package byzantine

import (
	"bytes"
	"slices"
	"testing"

	"golang.org/x/crypto/blake2b"

	"parley"
	"parley/broadcast/problem"
	"parley/lockstep"
	"parley/sim"
)

// Late reports whether a process's batch in its last slot arrived too late for the others.
func Late(m parley.Machine) bool { return m.(*process).vain > 0 }

// host records refusals.
type host struct{ why []string }

func (h *host) Choose(int) int                        { return 0 }
func (h *host) Sign(parley.ID, []byte) []byte         { return nil }
func (h *host) Verify(parley.ID, []byte, []byte) bool { return false }
func (h *host) Refused(_, _ parley.ID, why string)    { h.why = append(h.why, why) }

// after runs four processes, each of which broadcasts something, and returns process 0 and a step for it.
func after(t *testing.T, window, each int) (*process, *parley.Step, *host) {
	t.Helper()
	opt := sim.Options{Protocol: New(Config{N: 4, M: 1, Window: window}, lockstep.Called)}
	for k := range each {
		for id := range parley.ID(4) {
			opt.Requests = append(opt.Requests, sim.Request{At: id, When: parley.Tick(10_000 * k),
				Msg: problem.Request([]byte{'a' + byte(id), byte(k)})})
		}
	}
	s := sim.Run(opt)
	h := &host{}
	p := s.Machine(0).(*process)
	if int(p.cur.delivered) < each {
		t.Fatalf("%d slots", p.cur.delivered)
	}
	return p, &parley.Step{Self: 0, N: 4, Now: s.Now(), Host: h}, h
}

// A process that requests a batch receives it, if it is here and not too old, a bounded number of times.
func TestAnswers(t *testing.T) {
	p, s, h := after(t, 2, 9)
	want := func(slot uint64, of parley.ID) []byte { return p.cur.at(slot).entries[of].body }
	recent := p.cur.delivered
	if want(recent, 2) == nil || p.cur.keep() != 4 {
		t.Fatal("nothing is kept")
	}
	fetch := parley.Msg{Kind: Fetch, Origin: 2, Value: recent, Body: digest(want(recent, 2))}
	for i := range 20 {
		s.Effects = s.Effects[:0]
		p.Receive(s, 1, fetch)
		if told := len(s.Effects) == 1; told != (i < answers*4) {
			t.Fatalf("asked %d times: %+v", i+1, s.Effects)
		} else if told && (s.Effects[0].To != 1 || !bytes.Equal(s.Effects[0].Msg.Body, want(recent, 2))) {
			t.Fatalf("%+v", s.Effects)
		}
	}
	h.why, s.Effects = nil, s.Effects[:0]
	other := blake2b.Sum256([]byte("other"))
	for _, m := range []parley.Msg{
		{Kind: Fetch, Origin: 2, Value: recent, Body: other[:]},           // other bytes than here
		{Kind: Fetch, Origin: 2, Value: recent - p.cur.keep(), Body: nil}, // too old
		{Kind: Fetch, Origin: 2, Value: recent + 1, Body: other[:]},       // not begun
		{Kind: Fetch, Origin: 2, Value: 1<<64 - 1, Body: other[:]},
		{Kind: Fetch, Origin: 4, Value: recent, Body: other[:]},
		{Kind: Fetch, Origin: 2, Value: recent, Seq: 1, Body: other[:]},
		{Kind: Fetch, Origin: 2, Body: other[:]},
		{Kind: Bytes, Origin: 2, Value: recent, Body: want(recent, 2)}, // not requested
		{Kind: Bytes, Origin: 2, Value: recent + 1, Body: want(recent, 2)},
		{Kind: State + 1, Value: 1},
	} {
		p.Receive(s, 3, m)
	}
	old := "asks for a slot that is too old or has not begun"
	if !slices.Equal(h.why, []string{old, old, old, "malformed message", "malformed message", "malformed message",
		"batch that is not asked for", "batch that is not asked for", "malformed message"}) || len(s.Effects) != 0 {
		t.Errorf("%q, %+v", h.why, s.Effects)
	}
	// Requests with a wrong digest count as well: comparing takes longer than sending.
	h.why = nil
	for range 20 {
		p.Receive(s, 3, parley.Msg{Kind: Fetch, Origin: 2, Value: recent, Body: other[:]})
	}
	if len(h.why) != 20-(answers*4-1) || h.why[0] != "asks too often" || len(s.Effects) != 0 {
		t.Errorf("%q, %+v", h.why, s.Effects)
	}
}

// A process without a batch requests it from all, a few times. It delivers nothing before it has it, whatever
// arrives, and everything once it has it.
func TestWaits(t *testing.T) {
	p, s, h := after(t, 4, 1)
	low := p.cur.delivered
	missing := encode(p.numbers[1]+1, [][]byte{[]byte("missing")})
	there := encode(p.numbers[2]+1, [][]byte{[]byte("there")})
	decided := func(of parley.ID, kind parley.Kind, body []byte) parley.Effect {
		return parley.Effect{Op: parley.OpDeliver, To: of, Msg: parley.Msg{Kind: kind, Origin: of, Body: body}}
	}
	count := func(op parley.Op) (n int) {
		for _, e := range s.Effects {
			if e.Op == op {
				n++
			}
		}
		return n
	}
	p.cur.SlotDone(s, low+1, []parley.Effect{decided(1, parley.Decide, digest(missing))})
	p.cur.SlotDone(s, low+2, []parley.Effect{decided(2, parley.Carried, there)})
	p.progress(s)
	if count(parley.OpSend) != 1 || s.Effects[0].To != parley.All || count(parley.OpDeliver) != 0 {
		t.Fatalf("%+v", s.Effects)
	}
	for range 10 {
		p.Timeout(s, again)
	}
	if count(parley.OpSend) != answers {
		t.Errorf("asked %d times", count(parley.OpSend))
	}
	p.Receive(s, 3, parley.Msg{Kind: Bytes, Origin: 1, Value: low + 1, Body: there})
	p.Receive(s, 3, parley.Msg{Kind: Bytes, Origin: 1, Value: low + 2, Body: missing})
	if len(h.why) != 2 || count(parley.OpDeliver) != 0 {
		t.Errorf("%q, %+v", h.why, s.Effects)
	}
	s.Effects = nil
	p.Receive(s, 3, parley.Msg{Kind: Bytes, Origin: 1, Value: low + 1, Body: missing})
	if count(parley.OpDeliver) != 2 || string(s.Effects[0].Msg.Body) != "missing" || string(s.Effects[1].Msg.Body) != "there" {
		t.Errorf("%+v", s.Effects)
	}
	// Beyond the bound it stops, but still delivers what it has agreed on before.
	s.Effects, h.why = nil, nil
	low = p.cur.delivered
	p.cur.SlotDone(s, low+1, []parley.Effect{decided(1, parley.Decide, digest(missing))})
	for k := uint64(2); k <= p.cur.keep()+3; k++ {
		p.cur.SlotDone(s, low+k, []parley.Effect{decided(2, parley.Carried, encode(p.numbers[2]+k-1, [][]byte{[]byte("more")}))})
	}
	p.Receive(s, 3, parley.Msg{Kind: Bytes, Origin: 1, Value: low + 1, Body: missing})
	if !p.out || p.cur.delivered != low+p.cur.keep() || len(h.why) != 1 {
		t.Errorf("out: %v, delivered %d of %d, refused %q", p.out, p.cur.delivered-low, p.cur.keep(), h.why)
	}
}

// What a liar can make a process keep is bounded: a frame longer than any of its round is refused on arrival,
// and so is what exceeds twice what a correct process may have in flight, in whatever slots.
func TestHostileFrames(t *testing.T) {
	c := Config{N: 4, M: 1, Window: 64, Batch: 1000, Flight: 4000}
	p := New(c, lockstep.Called).New(0).(*process)
	h := &host{}
	s := &parley.Step{Self: 0, N: 4, Now: 1, Host: h}
	frame := func(slot, round uint64, size int) parley.Msg {
		body := parley.AppendMsg(nil, 0, parley.Msg{Kind: Batch, Body: make([]byte, size)})
		return parley.Msg{Kind: lockstep.Frame, Value: slot, Seq: round, Body: body}
	}
	for _, m := range []parley.Msg{frame(1, 0, 1000+envelope), frame(1, 1, 4*(envelope+3*40)+envelope), frame(1, 0, 1<<20)} {
		p.Receive(s, 3, m)
	}
	if len(h.why) != 3 || h.why[0] != "frame too long for its round" || h.why[1] != h.why[0] || h.why[2] != h.why[0] {
		t.Errorf("%q", h.why)
	}
	h.why = nil
	for slot := range uint64(60) {
		p.Receive(s, 3, frame(slot+2, 0, 1000))
	}
	taken := 60 - len(h.why)
	if most := 2 * (4000 + 64*envelope) / 1000; taken < 8 || taken > most || h.why[0] != "more of one process than is kept" {
		t.Errorf("%d of 60 frames are kept, %q", taken, slices.Compact(h.why))
	}
	h.why = nil
	p.Receive(s, 2, frame(2, 0, 1000)) // frames of another process are counted separately
	if len(h.why) > 0 {
		t.Errorf("%q", h.why)
	}
}

// A process never has more bytes of batches in flight than others keep; the rest waits, and all of it is
// delivered.
func TestFlight(t *testing.T) {
	c := Config{N: 4, M: 1, Window: 64, Depth: 64, Batch: 200, Flight: 600, Queue: 100_000}
	opt := sim.Options{Protocol: New(c, lockstep.Called)}
	for k := range 200 {
		opt.Requests = append(opt.Requests, sim.Request{At: 1, When: parley.Tick(10 * k), Msg: problem.Request(make([]byte, 100))})
	}
	most := 0
	opt.Between = func(s *sim.Sim) { most = max(most, s.Machine(1).(*process).under) }
	s := sim.Run(opt)
	if n := len(s.History.Deliveries); n != 4*200 || most > 600 || most < 300 || len(s.Stats.Refused) > 0 {
		t.Errorf("%d deliveries, %d bytes under way, refused %v", n, most, s.Stats.Refused)
	}
}

// The encoding of a batch is unique, and other bytes are refused.
func TestBatches(t *testing.T) {
	for _, requests := range [][][]byte{{{}}, {[]byte("a"), nil, bytes.Repeat([]byte("x"), 300)}} {
		body := encode(300, requests)
		var back [][]byte
		if _, ok := each(body, func(number uint64, r []byte) {
			if number != uint64(300+len(back)) {
				t.Errorf("request %d has number %d", len(back), number)
			}
			back = append(back, r)
		}); !ok || !slices.EqualFunc(back, requests, bytes.Equal) {
			t.Errorf("%q becomes %q", requests, back)
		}
		if !well(body, len(body)) || well(body, len(body)-1) {
			t.Error("the limit is not the limit")
		}
		for cut := range body {
			if well(body[:cut], 1000) {
				t.Errorf("a batch cut to %d bytes is one", cut)
			}
		}
		if well(append(slices.Clone(body), 0), 1000) {
			t.Error("a batch with a byte more is one")
		}
	}
	for _, b := range [][]byte{nil, {0, 1, 0}, {1, 0}, {1, 2, 0}, {0x81, 0, 1, 0}, {1, 1, 0x80, 0}} {
		if well(b, 1000) {
			t.Errorf("%x is a batch", b)
		}
	}
}

// A process that has opened slots without success opens no more, until something is delivered.
func TestInVain(t *testing.T) {
	p, s, _ := after(t, 4, 1)
	p.vain = p.c.Tries + 1
	p.queue = append(p.queue, []byte("late"))
	opened := p.cur.line.Opened()
	if p.call(s); p.cur.line.Opened() != opened {
		t.Error("it calls for another slot")
	}
	p.accept(s, 2, p.numbers[2]+1, []byte("of another"))
	if p.call(s); p.cur.line.Opened() != opened+1 {
		t.Error("it calls for none")
	}
}
