package atomic_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/atomic"
	"parley/broadcast/problem"
	"parley/membership/group"
)

// hall is views without the protocol that agrees on them: members report whenever
// somebody says so, the next view is any majority of those that have reported, and
// each member hears of it at a time of its own. Who is left out goes on in its view
// until it hears of that. Links are FIFO and may lose what is last on them.
type hall struct {
	t        *testing.T
	members  []member
	links    [][][]stamped // from, to
	decided  []decision    // by number of the view that it ends, from 1
	step     parley.Step
	order    uint64
	history  parley.History
	accounts []account
	reload   bool // save and load a layer after each clause
	durable  bool // who crashed may come back with its log
}

type member struct {
	layer  group.Layer
	view   group.View
	report []byte // not nil: frozen
	queued []parley.Msg
	gone   bool // crashed, or excluded and told
	down   bool // crashed

	// In durable mode: the records of the view, and what was delivered in this life
	// and the one before it. base of that was so when the view began, count is now.
	log         [][]byte
	done        []string
	base, count int
}

type stamped struct {
	view uint64
	msg  parley.Msg
}

type decision struct {
	next group.View
	cut  []byte
}

// account is what a member had delivered when it installed a view.
type account struct {
	at        parley.ID
	view      uint64
	delivered int
}

func newHall(t *testing.T, n int) *hall { return newHallOf(t, n, false) }

func newHallOf(t *testing.T, n int, durable bool) *hall {
	h := &hall{t: t, members: make([]member, n), links: make([][][]stamped, n), decided: make([]decision, 1)}
	h.durable = durable
	h.history.N = n
	first := group.View{Number: 1, Members: parley.Everyone(n)}
	for id := range parley.ID(n) {
		h.links[id] = make([][]stamped, n)
		h.members[id] = member{layer: h.layer(id), view: first}
		h.do(id, func(l group.Layer) { l.Install(&h.step, nil, first) })
	}
	return h
}

func (h *hall) Choose(int) int                        { panic("a choice") }
func (h *hall) Sign(parley.ID, []byte) []byte         { panic("a signature") }
func (h *hall) Verify(parley.ID, []byte, []byte) bool { panic("a signature") }
func (h *hall) Refused(at, from parley.ID, why string) {
	h.t.Errorf("%d refuses %d: %s", at, from, why)
}
func (h *hall) send(from, to parley.ID, m stamped) { h.links[from][to] = append(h.links[from][to], m) }
func (h *hall) living(id parley.ID) bool           { return !h.members[id].gone }
func (h *hall) cast(at parley.ID, m parley.Msg)    { h.request(at, m, true) }
func (h *hall) castTo(at parley.ID, b string, to ...parley.ID) {
	h.cast(at, problem.RequestTo(parley.SetOf(to...), []byte(b)))
}

// do runs a clause of a layer. What it sends belongs to the view that its member is
// in when the clause is over.
func (h *hall) do(at parley.ID, clause func(group.Layer)) {
	h.step = parley.Step{Self: at, N: len(h.members), Host: h, Effects: h.step.Effects[:0]}
	m := &h.members[at]
	clause(m.layer)
	for _, e := range h.step.Effects {
		switch e.Op {
		case parley.OpSend:
			h.send(at, e.To, stamped{m.view.Number, e.Msg})
		case parley.OpDeliver:
			if to, body, err := problem.Decode(e.Msg, h.history.N); err != nil || !to.Has(at) {
				h.t.Fatalf("%d delivers %v for %v", at, e.Msg, to)
			} else {
				e.Msg = parley.Msg{Kind: parley.Carried, Origin: e.Msg.Origin, Body: body}
			}
			h.deliver(at, e)
		case parley.OpAppend:
			m.log = append(m.log, e.Msg.Body)
		default:
			h.t.Fatalf("effect %d", e.Op)
		}
	}
	if h.reload {
		saved := parley.Save(stated{l: m.layer}, 0, nil)
		fresh := stated{l: h.layer(at)}
		if !parley.Load(fresh, 0, saved) || !bytes.Equal(saved, parley.Save(fresh, 0, nil)) {
			h.t.Fatalf("%x is not loaded", saved)
		}
		m.layer = fresh.l
	}
}

// deliver takes note of a delivery. What a member that came back delivers again, by
// its position, is the same.
func (h *hall) deliver(at parley.ID, e parley.Effect) {
	m := &h.members[at]
	m.count++
	if m.count <= len(m.done) {
		if m.done[m.count-1] != string(e.Msg.Body) {
			h.t.Errorf("%d delivers %s, and had delivered %s", at, e.Msg.Body, m.done[m.count-1])
		}
		return
	}
	m.done = append(m.done, string(e.Msg.Body))
	h.order++
	h.history.Deliveries = append(h.history.Deliveries,
		parley.Happening{At: at, From: e.To, Order: h.order, Msg: e.Msg})
}

// layer makes a layer.
func (h *hall) layer(id parley.ID) group.Layer {
	if h.durable {
		return atomic.DurableLayer(id, h.history.N)
	}
	return atomic.Layer(id, h.history.N)
}

// back lets a member that crashed go on from its log: frozen, with the report that it
// had given, if it had.
func (h *hall) back(id parley.ID) {
	m := &h.members[id]
	m.gone, m.down, m.count, m.queued = false, false, m.base, nil
	h.history.Faulty.Remove(id)
	m.layer = h.layer(id)
	log := m.log
	h.do(id, func(l group.Layer) { l.Install(&h.step, nil, m.view) })
	for _, rec := range log {
		if !m.layer.(group.Durable).Replay(rec) {
			h.t.Fatalf("%x is not a record", rec)
		}
	}
	h.freeze(id)
}

// stated is a layer as far as its state goes.
type stated struct {
	parley.Base
	l group.Layer
}

func (s stated) State(v *parley.Vars) { s.l.State(v) }

// request asks the layer, or keeps the request while the member is frozen.
func (h *hall) request(at parley.ID, m parley.Msg, first bool) {
	if first {
		h.order++
		h.history.Requests = append(h.history.Requests, parley.Happening{At: at, From: at, Order: h.order, Msg: m})
	}
	if h.members[at].report != nil {
		h.members[at].queued = append(h.members[at].queued, m)
		return
	}
	h.do(at, func(l group.Layer) { l.Request(&h.step, m) })
}

// receive lets the oldest message of a link arrive. A member that was told of the
// next view told its peers before it sent anything in it.
func (h *hall) receive(from, to parley.ID) {
	h.t.Helper()
	if len(h.links[from][to]) == 0 {
		h.t.Fatalf("no message from %d to %d", from, to)
	}
	m := h.links[from][to][0]
	h.links[from][to] = h.links[from][to][1:]
	for h.living(to) && h.members[to].view.Number < m.view {
		h.install(to)
	}
	if r := &h.members[to]; r.gone || r.report != nil || m.view < r.view.Number {
		return
	}
	gap := false
	h.do(to, func(l group.Layer) { gap = l.Receive(&h.step, from, m.msg) })
	if gap {
		h.freeze(to)
	}
}

// freeze lets a member report.
func (h *hall) freeze(id parley.ID) {
	if m := &h.members[id]; m.report == nil && !m.gone {
		m.report = append([]byte{}, m.layer.Report()...)
	}
}

// agree makes the given members the next view, who have reported. Some of them may
// have crashed since.
func (h *hall) agree(next parley.Set) {
	var reports [][]byte
	var layer group.Layer
	view := group.View{Number: uint64(len(h.decided)) + 1, Members: next}
	for id := range next.All() {
		m := &h.members[id]
		if m.report == nil || m.view.Number != view.Number-1 {
			h.t.Fatalf("%d has not reported", id)
		}
		reports, layer = append(reports, m.report), m.layer
	}
	h.decided = append(h.decided, decision{view, layer.Cut(reports)})
}

// install tells a member what follows its view, if that is decided.
func (h *hall) install(id parley.ID) bool {
	m := &h.members[id]
	if m.gone || int(m.view.Number) >= len(h.decided) {
		return false
	}
	d := h.decided[m.view.Number]
	if !d.next.Members.Has(id) {
		m.gone = true
		h.history.Faulty.Add(id)
		return true
	}
	m.view = d.next
	h.do(id, func(l group.Layer) { l.Install(&h.step, d.cut, d.next) })
	m.log, m.base = nil, m.count
	h.accounts = append(h.accounts, account{id, d.next.Number, len(h.history.Deliveries)})
	queued := m.queued
	m.report, m.queued = nil, nil
	for _, q := range queued {
		h.request(id, q, false)
	}
	return true
}

// crash stops a member and loses some of what is last on its links.
func (h *hall) crash(r *rand.Rand, id parley.ID) {
	h.members[id].gone, h.members[id].down = true, true
	h.history.Faulty.Add(id)
	for to := range h.links[id] {
		h.lose(r, id, parley.ID(to))
	}
}

func (h *hall) lose(r *rand.Rand, from, to parley.ID) {
	h.links[from][to] = h.links[from][to][:r.IntN(len(h.links[from][to])+1)]
}

// latest returns the members of the newest view that live, and whether they are a
// majority of it.
func (h *hall) latest() (parley.Set, bool) {
	view := group.View{Number: 1, Members: parley.Everyone(len(h.members))}
	if last := len(h.decided) - 1; last > 0 {
		view = h.decided[last].next
	}
	var living parley.Set
	for id := range view.Members.All() {
		if h.living(id) {
			living.Add(id)
		}
	}
	return living, living.Len() >= view.Majority()
}

// rest lets everything arrive and changes views until nobody waits, and tells
// whether that came to an end.
func (h *hall) rest() bool {
	for range 8 {
		for again := true; again; {
			again = false
			for from := range h.links {
				for to := range h.links[from] {
					for len(h.links[from][to]) > 0 {
						h.receive(parley.ID(from), parley.ID(to))
						again = true
					}
				}
				again = h.install(parley.ID(from)) || again
			}
		}
		living, enough := h.latest()
		waits := false
		for id := range living.All() {
			m := &h.members[id]
			waits = waits || m.report != nil || m.layer.Waiting() || m.layer.(group.Sender).Oldest() > 0
		}
		if !enough || !waits {
			h.history.Over = enough
			return enough
		}
		for id := range living.All() {
			h.freeze(id)
		}
		h.agree(living)
	}
	h.t.Error("it does not come to rest")
	return false
}

// uniform are the properties that always hold, and those that hold in the end if
// there is one.
var uniform = []string{problem.Integrity, problem.UniformTotalOrder, problem.UniformPrefix,
	problem.UniformAgreement, problem.Validity}

// check returns the first property that does not hold.
func (h *hall) check(names ...string) error {
	for _, property := range problem.Of(names...) {
		if err := property.Check(&h.history); err != nil {
			return fmt.Errorf("%s: %w", property.Name, err)
		}
	}
	return h.synchrony()
}

// synchrony: members that install a view have by then delivered the same of what is
// for both.
func (h *hall) synchrony() error {
	to := make(map[string]parley.Set)
	for _, q := range h.history.Requests {
		set, body, err := problem.Decode(q.Msg, h.history.N)
		if err != nil {
			return err
		}
		to[string(body)] = set
	}
	before := func(a account, other parley.ID) (out []string) {
		for _, d := range h.history.Deliveries[:a.delivered] {
			if body := string(d.Msg.Body); d.At == a.at && to[body].Has(other) {
				out = append(out, body)
			}
		}
		return out
	}
	for _, a := range h.accounts {
		for _, b := range h.accounts {
			if x, y := before(a, b.at), before(b, a.at); a.view == b.view && !slices.Equal(x, y) {
				return fmt.Errorf("view synchrony: before view %d %d delivered %v and %d %v", a.view, a.at, x, b.at, y)
			}
		}
	}
	return nil
}

// storm is what a drawn run may have.
type storm struct{ casts, changes, crashes, breaks int }

// run draws a run and lets it come to rest.
func (h *hall) run(r *rand.Rand, o storm) bool {
	n := len(h.members)
	casts, changes, crashes, breaks := o.casts, o.changes, r.IntN(o.crashes+1), o.breaks
	pick := func() parley.ID { return parley.ID(r.IntN(n)) }
	for moves := 0; casts > 0 || moves < 40*n; moves++ {
		at := pick()
		switch x := r.IntN(100); {
		case x < 8 && casts > 0:
			casts--
			body := fmt.Appendf(nil, "m%d", casts)
			switch {
			case !h.living(at):
			case r.IntN(2) == 0:
				h.cast(at, problem.Request(body))
			default:
				h.cast(at, problem.RequestTo(parley.SetOf(receivers(r, n, false)...), body))
			}
		case x < 9 && crashes > 0:
			crashes--
			if living, _ := h.latest(); h.living(at) && living.Len() > 1 {
				h.crash(r, at)
			}
		case x < 10 && h.durable && h.members[at].down:
			h.back(at)
		case x < 11 && breaks > 0:
			breaks--
			h.lose(r, at, pick())
		case x < 14:
			h.freeze(at)
		case x < 18 && changes > 0:
			if next, ok := h.drawn(r); ok {
				changes--
				h.agree(next)
			}
		case x < 22:
			h.install(at)
		default:
			if to := pick(); len(h.links[at][to]) > 0 {
				h.receive(at, to)
			}
		}
	}
	for id := range parley.ID(n) {
		if h.durable && h.members[id].down {
			h.back(id)
		}
	}
	return h.rest()
}

// drawn draws the next view among those that have reported in the newest one.
func (h *hall) drawn(r *rand.Rand) (parley.Set, bool) {
	number := uint64(len(h.decided))
	view := group.View{Number: 1, Members: parley.Everyone(len(h.members))}
	if number > 1 {
		view = h.decided[number-1].next
	}
	var reported []parley.ID
	for id := range view.Members.All() {
		if m := &h.members[id]; m.report != nil && m.view.Number == number {
			reported = append(reported, id)
		}
	}
	spare := len(reported) - view.Majority()
	if spare < 0 {
		return parley.Set{}, false
	}
	r.Shuffle(len(reported), func(i, k int) { reported[i], reported[k] = reported[k], reported[i] })
	return parley.SetOf(reported[r.IntN(spare+1):]...), true
}

// The form in views is uniform whatever is suspected: every view change that leaves
// out a member that lives is a false suspicion, and the excluded go on until they are
// told. What is delivered is pairwise a prefix, of crashed and excluded members too;
// members of a view have delivered the same before it; and if a majority of the last
// view lives, what members of it broadcast is delivered.
func TestUniformInViews(t *testing.T) {
	for name, o := range map[string]storm{
		"no change":   {casts: 8},
		"suspicions":  {casts: 6, changes: 3},
		"crashes":     {casts: 6, changes: 2, crashes: 3},
		"broken":      {casts: 6, changes: 2, breaks: 3},
		"all of them": {casts: 8, changes: 4, crashes: 2, breaks: 2},
	} {
		t.Run(name, func(t *testing.T) {
			ended := 0
			for seed := range uint64(800) {
				h := newHall(t, 3+int(seed%3))
				h.reload = seed%8 == 0
				if h.run(rand.New(rand.NewPCG(seed, 3)), o) {
					ended++
				}
				if err := h.check(uniform...); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			if ended < 400 {
				t.Errorf("%d runs came to an end", ended)
			}
		})
	}
}

// Members that crash go on from their logs: uniform as ever, and what they had
// delivered they deliver again in the same order and nothing else in its place. What a
// sender that crashed sent to others alone may be lost.
func TestDurableInViews(t *testing.T) {
	ended := 0
	for seed := range uint64(2000) {
		h := newHallOf(t, 3+int(seed%3), true)
		h.reload = seed%8 == 0
		if h.run(rand.New(rand.NewPCG(seed, 6)), storm{casts: 8, changes: 4, crashes: 4, breaks: 1}) {
			ended++
		}
		if err := h.check(problem.Integrity, problem.UniformTotalOrder, problem.UniformPrefix,
			problem.UniformAgreement); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if ended < 1600 {
		t.Errorf("%d runs came to an end", ended)
	}
}

// A message that is not the next one of its link is a gap, and one that came before
// is ignored.
func TestGap(t *testing.T) {
	h := newHall(t, 2)
	h.castTo(0, "a", 1)
	h.castTo(0, "b", 1)
	link := h.links[0][1]
	l := h.members[1].layer
	s := parley.Step{Self: 1, N: 2, Host: quiet{}}
	for i, c := range []struct {
		m    stamped
		gap  bool
		asks int // effects so far
	}{{link[1], true, 0}, {link[0], false, 1}, {link[0], false, 1}, {link[1], false, 2}} {
		if gap := l.Receive(&s, 0, c.m.msg); gap != c.gap || len(s.Effects) != c.asks {
			t.Errorf("%d: gap %v, effects %v", i, gap, s.Effects)
		}
	}
}

// quiet is a host that does not mind what is refused.
type quiet struct{ parley.Host }

func (quiet) Refused(parley.ID, parley.ID, string) {}

// A message that nobody but its sender has, because the sender is no receiver and
// its links broke, is in the sender's report.
func TestOwnMessageSurvives(t *testing.T) {
	h := newHall(t, 3)
	h.castTo(0, "a", 1, 2)
	h.links[0][1], h.links[0][2] = nil, nil
	if !h.rest() {
		t.Error("no majority")
	}
	if err := h.check(uniform...); err != nil {
		t.Error(err)
	}
	if len(h.history.Deliveries) != 2 {
		t.Errorf("deliveries %v", h.history.Deliveries)
	}
}

// A joiner goes on from where its sponsor is: of the cut it delivers what is for itself,
// whether it is for its sponsor or not, above the last priority that the sponsor had
// delivered. That it was no member when a message was sent does not matter.
func TestJoiner(t *testing.T) {
	h := newHall(t, 4)
	h.crash(rand.New(rand.NewPCG(1, 1)), 3)
	for id := range parley.ID(3) {
		h.freeze(id)
	}
	h.agree(parley.Everyone(3))
	for id := range parley.ID(3) {
		h.install(id)
	}
	h.cast(0, problem.Request([]byte("first")))
	for range 3 { // REQ, PROP; FINAL, LOGGED; LOGGED
		for from := range parley.ID(3) {
			for to := range parley.ID(3) {
				for range len(h.links[from][to]) {
					h.receive(from, to)
				}
			}
		}
	}
	if len(h.history.Deliveries) != 3 {
		t.Fatalf("deliveries %v", h.history.Deliveries)
	}
	joiner := atomic.Layer(3, 4)
	if !joiner.Restore(h.members[1].layer.Snapshot()) {
		t.Fatal("the snapshot is not accepted")
	}
	h.cast(2, problem.Request([]byte("second")))
	h.castTo(2, "third", 0, 1)
	h.castTo(2, "fourth", 0, 3)
	for id := range parley.ID(3) {
		h.freeze(id)
	}
	h.agree(parley.Everyone(3))
	s := parley.Step{Self: 3, N: 4, Host: quiet{}}
	joiner.Install(&s, h.decided[2].cut, h.decided[2].next)
	var texts []string
	for _, e := range s.Effects {
		_, body, err := problem.Decode(e.Msg, 4)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(body))
	}
	if !slices.Equal(texts, []string{"second", "fourth"}) {
		t.Errorf("the joiner delivers %q", texts)
	}
	if joiner.Restore([]byte{1}) || joiner.Restore([]byte{1, 1, 1}) {
		t.Error("a snapshot that is none is accepted")
	}
}

// What a reader sees of the messages in views.
func TestExplainInViews(t *testing.T) {
	h := newHall(t, 2)
	explain := atomic.Service(group.Config{N: 2}).Explain
	var rows []string
	look := func(from, to parley.ID) {
		for row := range explain(parley.Env{From: from, To: to}, h.links[from][to][0].msg, parley.ID.String) {
			rows = append(rows, row)
		}
		h.receive(from, to)
	}
	h.cast(0, problem.Request([]byte("m")))
	look(0, 1)
	look(1, 0)
	look(0, 1)
	look(1, 0)
	want := []string{
		"REQ 0#1 to 0 1: m (message 1)", "PROP 0#1 at 1.1 (message 1)", "FINAL 0#1 at 1.1 (message 2)",
		"LOGGED 0#1 (message 2)",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("%q", rows)
	}
}

// Reports, cuts, records and snapshots from nowhere stop nobody.
func TestGarbageInViews(t *testing.T) {
	h := newHall(t, 3)
	for k := range 4 {
		h.cast(parley.ID(k%3), problem.Request(fmt.Appendf(nil, "m%d", k)))
	}
	h.receive(0, 1)
	h.receive(0, 2)
	h.receive(1, 0)
	r := rand.New(rand.NewPCG(1, 1))
	l := h.members[1].layer
	cut := l.Cut([][]byte{l.Report(), h.members[0].layer.Report()})
	if !l.(group.Reader).Reads(cut) {
		t.Fatal("a cut is none")
	}
	readable := 0
	for range 5000 {
		garbled := slices.Clone(cut)
		for range 1 + r.IntN(3) {
			garbled[r.IntN(len(garbled))] = byte(r.Uint32())
		}
		garbled = garbled[:len(garbled)-r.IntN(2)*r.IntN(len(garbled))]
		if !l.(group.Reader).Reads(l.Cut([][]byte{garbled, append([]byte{1, 1}, garbled...)})) {
			t.Fatalf("a cut of %x is none", garbled)
		}
		d := atomic.DurableLayer(1, 3)
		d.Replay(garbled)
		d.Restore(garbled)
		if l.(group.Reader).Reads(garbled) {
			readable++
			s := parley.Step{Self: 1, N: 3, Host: quiet{}}
			d.Install(&s, garbled, group.View{Number: 2, Members: parley.Everyone(3)})
		}
	}
	if readable == 0 || readable == 5000 {
		t.Errorf("%d of 5000 can be read", readable)
	}
}
