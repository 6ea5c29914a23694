package byzantine

import (
	"bytes"
	"fmt"
	"testing"

	"parley"
	"parley/agreement/tetra"
	"parley/broadcast/problem"
	"parley/faulty"
	"parley/sim"
	"parley/trace"
)

func request(at parley.ID, when parley.Tick, payload string) sim.Request {
	return sim.Request{At: at, When: when, Msg: problem.Request([]byte(payload))}
}

// steady are links on which each message takes 100 ticks.
func steady(c Config, requests ...sim.Request) sim.Options {
	return sim.Options{Protocol: New(c), Delay: sim.Delay{Least: 100, Most: 100}, Requests: requests, Measure: true}
}

// times runs and returns when each process delivers each payload for the first time.
func times(t *testing.T, opt sim.Options) (s *sim.Sim, at map[string][]parley.Tick) {
	t.Helper()
	at = make(map[string][]parley.Tick)
	log := &trace.Log{Keep: true}
	opt.Log = log
	s = sim.Run(opt)
	seen := make(map[string]bool)
	for _, e := range log.Events {
		key := fmt.Sprint(e.At, string(e.Msg.Body))
		if e.Op == trace.Deliver && !seen[key] {
			seen[key] = true
			at[string(e.Msg.Body)] = append(at[string(e.Msg.Body)], e.Time)
		}
	}
	return s, at
}

// A request in a strict lane takes two message delays more: the owner asks the others whether they hold its batch.
// The others also answer if they get the batch after the question. Requests that follow fast do not keep an owner from
// proposing earlier ones.
func TestStrictLane(t *testing.T) {
	strict := func(c Config) sim.Options {
		opt := steady(c)
		opt.Protocol.New = func(self parley.ID) parley.Machine {
			p := newProcess(c.withDefaults(), self)
			p.peers[1].strict = mostSlot
			return p
		}
		return opt
	}
	opt := strict(Config{N: 4, M: 1})
	opt.Requests = []sim.Request{request(1, 50, "x")}
	if _, at := times(t, opt); len(at["x"]) != 4 || at["x"][3] != 50+600 {
		t.Errorf("delivered at %v, and 6 delays are expected", at["x"])
	}
	opt.Links = []sim.Link{{From: parley.SetOf(1), To: parley.SetOf(2, 3), Until: 1000, Delay: sim.Delay{Least: 500, Most: 500}}}
	if _, at := times(t, opt); len(at["x"]) != 4 || at["x"][3] != 50+900 {
		t.Errorf("delivered at %v, and 9 delays are expected if the batch takes 5", at["x"])
	}
	opt = strict(Config{N: 4, M: 1, Batch: 20, Queue: 2000, Flight: 400_000})
	for k := range parley.Tick(1000) {
		opt.Requests = append(opt.Requests, request(1, 10*k, fmt.Sprint(k)))
	}
	_, at := times(t, opt)
	for k := range parley.Tick(1000) {
		if got := at[fmt.Sprint(k)]; len(got) != 4 || got[3] > 10*k+1500 {
			t.Fatalf("request %d is delivered at %v, and was made at %d", k, got, 10*k)
		}
	}
}

// A lone request takes three message delays from the owner and four from another process: batch, proposal, ECHO,
// READY. It costs n-1 messages for the batch, and (n-1)(2n+1) for the slot.
func TestLoneRequest(t *testing.T) {
	for from, delays := range []parley.Tick{3, 4, 4, 4} {
		c := Config{N: 4, M: 1}
		s, at := times(t, steady(c, request(parley.ID(from), 50, "x")))
		if got := at["x"]; len(got) != 4 || got[3] != 50+100*delays {
			t.Errorf("from %d: delivered at %v, and %d delays are expected", from, got, delays)
		}
		if want := uint64(3 + 3*(2*4+1)); s.Stats.Sends != want {
			t.Errorf("from %d: %d messages, %d are expected", from, s.Stats.Sends, want)
		}
	}
}

// A silent owner costs one time-out. Then it is benched: the requests that follow take as long as if all were correct.
func TestSilentOwner(t *testing.T) {
	opt := steady(Config{N: 4, M: 1, Least: 4000}, request(1, 0, "first"))
	for k := range parley.Tick(20) {
		opt.Requests = append(opt.Requests, request(2, 20_000+1000*k, fmt.Sprint(k)))
	}
	opt.Faulty = map[parley.ID]faulty.Behavior{0: faulty.Silent}
	opt.Until = 100_000
	_, at := times(t, opt)
	if got := at["first"]; len(got) < 3 || got[2] > 4000+100*20 {
		t.Errorf("the first request is delivered at %v", got)
	}
	for k := range parley.Tick(20) {
		if got := at[fmt.Sprint(k)]; len(got) < 3 || got[2] > 20_000+1000*k+400 {
			t.Errorf("request %d is delivered at %v", k, got)
		}
	}
}

// If all processes lose power at once, even right after a delivery, they deliver again what they delivered before, in
// the same order, and continue. So batches and cuts are durable before anybody speaks for them.
func TestAllRestart(t *testing.T) {
	for when := parley.Tick(100); when < 1500; when += 20 {
		opt := steady(Config{N: 4, M: 1, Durable: true}, request(1, 0, "a"), request(2, 90, "b"), request(3, 400, "c"))
		for id := range parley.ID(4) {
			opt.Crashes = append(opt.Crashes, sim.Crash{At: id, When: when, Back: 10 + 7*parley.Tick(id)})
		}
		opt.Requests = append(opt.Requests, request(0, 30_000, "after"))
		opt.Until = 600_000
		s := sim.Run(opt)
		s.History.Over = true
		seen := make(map[string]parley.Set)
		for _, d := range s.History.Deliveries {
			by := seen[string(d.Msg.Body)]
			by.Add(d.At)
			seen[string(d.Msg.Body)] = by
		}
		for payload, by := range seen { // order: each is judged alone
			if by.Len() != 4 {
				t.Errorf("power fails at %d: %s is delivered by %d of 4", when, payload, by.Len())
			}
		}
		if seen["after"].Len() != 4 {
			t.Errorf("power fails at %d: what follows is not delivered", when)
		}
		for _, p := range opt.Protocol.Properties {
			if err := p.Check(&s.History); p.Name != problem.Validity && err != nil {
				t.Errorf("power fails at %d: %s: %v", when, p.Name, err)
			}
		}
	}
}

// A faulty owner makes up a batch in the name of a correct process, proposes it, and answers the requests for it.
// Nobody believes it, and nobody requests it.
func TestForgedBatch(t *testing.T) {
	forged := newBatch(2, 0, tip{}, [][]byte{[]byte("forged")}, nil)
	c := cut{tip{}, tip{}, forged.tip, tip{}}
	p := newProcess(Config{N: 4, M: 1}.withDefaults(), 1)
	do := func(from parley.ID, m parley.Msg) []parley.Effect {
		s := &parley.Step{Self: 1, N: 4, Host: deaf{}}
		p.Receive(s, from, m)
		return s.Effects
	}
	p.Start(&parley.Step{Self: 1, N: 4, Host: deaf{}})
	var all []parley.Effect
	all = append(all, do(0, parley.Msg{Kind: tetra.Proposal, Seq: 1, Body: c.encode()})...)
	all = append(all, do(0, parley.Msg{Kind: Batch, Body: forged.body})...)
	all = append(all, do(0, parley.Msg{Kind: tetra.Proposal, Seq: 1, Body: c.encode()})...)
	for _, e := range all {
		if e.Op == parley.OpSend && (e.Msg.Kind == tetra.Echo || e.Msg.Kind == Fetch) {
			t.Errorf("it sends %+v", e.Msg)
		}
	}
	// From its source, the same batch is good.
	all = do(2, parley.Msg{Kind: Batch, Body: forged.body})
	if len(all) == 0 || all[0].Msg.Kind != tetra.Echo {
		t.Errorf("it does not echo the cut: %+v", all)
	}
}

// deaf is a host for steps that neither choose nor sign.
type deaf struct{}

func (deaf) Choose(int) int                        { return 0 }
func (deaf) Sign(parley.ID, []byte) []byte         { return nil }
func (deaf) Verify(parley.ID, []byte, []byte) bool { return false }
func (deaf) Refused(_, _ parley.ID, _ string)      {}

// A process that was disconnected for long fetches what it missed. If the others have forgotten it, it skips to a
// checkpoint.
func TestFarBehind(t *testing.T) {
	for keep, skips := range map[int]bool{1000: false, 4: true} {
		opt := steady(Config{N: 4, M: 1, Checkpoint: keep, Batch: 20, Queue: 20_000, Flight: 100_000})
		for k := range parley.Tick(100) {
			opt.Requests = append(opt.Requests, request(0, 1000*k, fmt.Sprint(k)))
		}
		opt.Links = []sim.Link{{To: parley.SetOf(3), Until: 90_000, Delay: sim.Delay{Least: 89_000, Most: 89_000}}}
		for k := range parley.Tick(1000) {
			opt.Requests = append(opt.Requests, request(3, 150*k, fmt.Sprint("own ", k)))
		}
		opt.Until = 1_000_000
		s := sim.Run(opt)
		by := make(map[string]int)
		for _, d := range s.History.Deliveries {
			by[string(d.Msg.Body)]++
		}
		for k := range 1000 {
			own := fmt.Sprint("own ", k)
			if by[own] < 3 || by[own] < 4 && (!skips || k > 950) {
				t.Errorf("with %d slots kept, %d processes deliver %s, which the process requested", keep, by[own], own)
			}
		}
		skipped := uint64(0)
		for _, d := range s.History.Indications {
			if d.At == 3 && d.Msg.Kind == Skipped {
				skipped = max(skipped, d.Msg.Seq)
			}
		}
		last, gap := uint64(0), uint64(0)
		for _, d := range s.History.Deliveries {
			if d.At != 3 {
				continue
			}
			if d.Msg.Value != last+1 {
				gap = d.Msg.Value - 1
			}
			last = d.Msg.Value
		}
		if last != 1100 || gap != skipped || skips != (skipped > 0) {
			t.Errorf("with %d slots kept, process 3 delivers up to %d, the last after a gap up to %d, and it skips to %d", keep,
				last, gap, skipped)
		}
	}
}

// A process that lost its state is admitted: it delivers the same as all others, and its own requests are ordered. If
// the order is durable, this is also so after another restart, with the state that it has since then.
func TestAdmitted(t *testing.T) {
	for _, durable := range []bool{false, true} {
		opt := steady(Config{N: 4, M: 1, Durable: durable}, request(1, 0, "a"), request(2, 50_000, "b"),
			request(2, 150_000, "c"))
		opt.Until = 500_000
		opt.Crashes = []sim.Crash{{At: 2, When: 10_000, Back: 100, LostDisk: true}}
		if durable {
			opt.Crashes = append(opt.Crashes, sim.Crash{At: 2, When: 100_000, Back: 100})
			if got := atOnce(opt, 2); got != "[a b]" {
				t.Errorf("restarted with its state, it repeats %s", got)
			}
		}
		_, at := times(t, opt)
		for _, payload := range []string{"a", "b", "c"} {
			if len(at[payload]) != 4 {
				t.Errorf("durable %v: %s is delivered by %d of 4", durable, payload, len(at[payload]))
			}
		}
	}
}

// atOnce runs and returns what a process delivers in the step of its last restart.
func atOnce(opt sim.Options, at parley.ID) string {
	opt.Log = &trace.Log{Keep: true}
	sim.Run(opt)
	var got []string
	open := false
	for _, e := range opt.Log.Events {
		switch {
		case e.At != at:
		case e.Op == trace.Restart:
			got, open = nil, true
		case e.Op == trace.Deliver && open:
			got = append(got, string(e.Msg.Body))
		case e.Op == trace.Receive:
			open = false
		}
	}
	return fmt.Sprint(got)
}

// What a faulty process sends is kept only up to fixed limits.
func TestLimits(t *testing.T) {
	c := Config{N: 4, M: 1, Batch: 1000}.withDefaults()
	p := newProcess(c, 1)
	p.Start(&parley.Step{Self: 1, N: 4, Host: deaf{}})
	send := func(m parley.Msg) {
		s := &parley.Step{Self: 1, N: 4, Host: deaf{}}
		p.Receive(s, 3, m)
	}
	end := tip{}
	for k := range 1000 {
		b := newBatch(3, 0, end, [][]byte{bytes.Repeat([]byte("x"), 900)}, nil)
		end = b.tip
		send(parley.Msg{Kind: Batch, Body: b.body})
		send(parley.Msg{Kind: tetra.Vouch, Seq: 2, Body: fmt.Appendf(nil, "%032d", k)})
		send(parley.Msg{Kind: tetra.Vouch, Seq: 1, Body: fmt.Appendf(nil, "%032d", k)})
		send(parley.Msg{Kind: Answer, Seq: 1, Body: bytes.Repeat([]byte{0}, 65)})
	}
	if l, limit := &p.lanes[3], c.most(); l.size > limit || l.size < limit-3000 {
		t.Errorf("%d bytes of a lane are kept, and the limit is %d", l.size, limit)
	}
	if len(p.early) > earlyPerPeer {
		t.Errorf("%d early messages of a process are kept", len(p.early))
	}
	if size := len(parley.Save(p, 0, nil)); size > 2*c.Flight+22_000 {
		t.Errorf("the state has %d bytes", size)
	}
}

// A faulty process that asks again and again is sent a bounded amount.
func TestAnswersAreBounded(t *testing.T) {
	p := newProcess(Config{N: 4, M: 1}.withDefaults(), 1)
	p.Start(&parley.Step{Self: 1, N: 4, Host: deaf{}})
	b := newBatch(2, 0, tip{}, [][]byte{bytes.Repeat([]byte("x"), 100_000)}, nil)
	p.Receive(&parley.Step{Self: 1, N: 4, Host: deaf{}}, 2, parley.Msg{Kind: Batch, Body: b.body})
	sent := func(now parley.Tick) (bytes int) {
		for range 1000 {
			s := &parley.Step{Self: 1, N: 4, Host: deaf{}, Now: now}
			p.Receive(s, 3, parley.Msg{Kind: Fetch, Origin: 2, Seq: 1, Value: 1, Body: b.digest[:]})
			for _, e := range s.Effects {
				if e.Op == parley.OpSend {
					bytes += len(e.Msg.Body)
				}
			}
		}
		return bytes
	}
	for _, now := range []parley.Tick{0, 2000} {
		if got := sent(now); got < burst || got > burst+110_000 {
			t.Errorf("at %d it sends %d bytes, and the limit is %d", now, got, burst)
		}
	}
}

// The owner changes when a slot is decided on nothing, or after its tenure. A process whose tenures end with nothing
// is benched for 2, 4, 8, ... tenures, and at most m processes are.
func TestTenure(t *testing.T) {
	x := tenure{fails: make([]uint8, 4)}
	var owners []parley.ID
	for range 24 {
		owners = append(owners, x.owner)
		for range 2 {
			if x.decided(x.owner == 1, 2, 1); x.used == 0 {
				break
			}
		}
	}
	want := "[0 1 2 3 0 1 2 3 0 2 3 0 1 2 3 0 2 3 0 2 3 0 1 2]"
	if got := fmt.Sprint(owners); got != want {
		t.Errorf("owners %s, %s are expected", got, want)
	}
	x = tenure{fails: make([]uint8, 4)}
	for range 20 {
		if x.decided(true, 2, 1); len(x.bench) != 1 {
			t.Errorf("%d processes are benched", len(x.bench))
		}
	}
	if got := fmt.Sprint(x.fails); got != "[5 5 5 5]" {
		t.Errorf("tenures in a row that ended with nothing: %s", got)
	}
	at := x.owner
	x.decided(false, 2, 1)
	if x.decided(false, 2, 1); x.owner == at || x.fails[at] != 0 {
		t.Errorf("process %d is the owner after process %d, which failed %d times in a row", x.owner, at, x.fails[at])
	}
}

// A durable process that restarts delivers again everything that it has kept, at the same positions, wherever it was
// when it crashed. It has kept at least the last Checkpoint slots.
func TestRepeats(t *testing.T) {
	const keep, many = 4, 40
	shortened := false
	for crash := parley.Tick(2000); crash < 2000+60*37; crash += 37 {
		opt := steady(Config{N: 4, M: 1, Durable: true, Checkpoint: keep})
		for k := range parley.Tick(many) {
			opt.Requests = append(opt.Requests, request(parley.ID(k%4), 100*k, fmt.Sprint(k)))
		}
		opt.Crashes = []sim.Crash{{At: 2, When: crash, Back: 50}}
		opt.Until = 1_000_000
		log := &trace.Log{Keep: true}
		opt.Log = log
		sim.Run(opt)
		last, from := uint64(0), uint64(0)
		at := make(map[uint64]string)
		restarted := false
		for _, e := range log.Events {
			switch {
			case e.At != 2:
			case e.Op == trace.Restart:
				restarted = true
			case e.Op == trace.Indicate && e.Msg.Kind == Repeats:
				if e.Msg.Seq+keep > last && e.Msg.Seq > 0 {
					t.Fatalf("crash at %d: of %d deliveries it repeats those after %d", crash, last, e.Msg.Seq)
				}
				shortened = shortened || e.Msg.Seq > 0
				last, from = e.Msg.Seq, e.Msg.Seq
			case e.Op == trace.Deliver:
				if e.Msg.Value != last+1 {
					t.Fatalf("crash at %d: position %d after %d", crash, e.Msg.Value, last)
				}
				last = e.Msg.Value
				if was := at[last]; was != "" && was != string(e.Msg.Body) {
					t.Fatalf("crash at %d: %s at %d, where %s was before", crash, e.Msg.Body, last, was)
				}
				at[last] = string(e.Msg.Body)
			}
		}
		if !restarted || last < many-4 { // a request may have been in no batch when the process crashed
			t.Fatalf("crash at %d: it restarts %v, repeats from %d and delivers %d requests", crash, restarted, from, last)
		}
	}
	if !shortened {
		t.Error("the log was never shortened")
	}
}
