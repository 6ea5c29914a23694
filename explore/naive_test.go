package explore_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley"
	"parley/explore"
)

// toy is a machine drawn from a seed: its steps depend on a hash of its state and its input. Every run
// ends.
type toy struct {
	seed    uint64
	self    parley.ID
	x, kept uint64
}

func (m *toy) State(v *parley.Vars) {
	parley.Num(v, "x", &m.x)
	v.Durable(func() { parley.Num(v, "kept", &m.kept) })
}

func (m *toy) Start(s *parley.Step) {
	for _, r := range s.Log {
		m.kept += uint64(len(r.Body))
	}
	m.act(s, 1, 1)
}
func (m *toy) Request(s *parley.Step, q parley.Msg) { m.act(s, 2, 2) }
func (m *toy) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	if q.Kind == parley.Suspect {
		m.act(s, 1, 3, uint64(q.Origin))
		return
	}
	m.act(s, q.Value, 4, uint64(from), q.Seq)
}
func (m *toy) Timeout(s *parley.Step, t parley.Timer) { m.act(s, uint64(t)/4, 5, uint64(t)) }

// act does something that uses up some of what is left.
func (m *toy) act(s *parley.Step, left uint64, what ...uint64) {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, append(what, m.seed, uint64(m.self), m.x, m.kept, left))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	if r.IntN(3) > 0 {
		m.x = r.Uint64N(3)
	}
	if left == 0 {
		return
	}
	for range r.IntN(3) {
		msg := parley.Msg{Kind: 1, Value: left - 1, Seq: r.Uint64N(2)}
		switch r.IntN(9) {
		case 0, 1:
			if to := parley.ID(r.IntN(s.N)); to != m.self {
				s.Send(to, msg)
			}
		case 2:
			s.SendAll(msg)
		case 3:
			s.Deliver(m.self, parley.Msg{Kind: parley.Decide, Value: r.Uint64N(3)})
		case 4, 5:
			s.SetTimer(parley.Timer(4*(left-1)+r.Uint64N(4)), parley.Tick(5*r.Uint64N(3)))
		case 6:
			s.StopTimer(parley.Timer(4*(left-1) + r.Uint64N(4)))
		case 7:
			if m.kept < 2 {
				m.kept++
				s.Append([]byte("r"))
			}
			if r.IntN(3) == 0 {
				s.Compact()
			}
		case 8:
			m.x = uint64(s.Choose(2))
		}
	}
}

func toys(seed uint64, n int) parley.Protocol {
	return parley.Protocol{
		Name: "toys", N: n, Kinds: []string{"", "M"}, Relies: parley.ModelAssumptions{Delay: 7},
		New: func(self parley.ID) parley.Machine { return &toy{seed: seed, self: self} },
	}
}

// naive visits the states of toys one by one and identifies each by its complete contents: an explorer
// without any of the optimizations of the fast one.
type naive struct {
	p     parley.Protocol
	m     explore.Model
	asked [][]parley.Msg
	known map[string]bool
	seen  map[string]bool // what a goal can distinguish
	all   bool            // the order of events at different processes counts

	script []([2]int)
	at     int
}

func (x *naive) Choose(n int) int {
	if x.at == len(x.script) {
		x.script = append(x.script, [2]int{0, n})
	}
	x.at++
	return x.script[x.at-1][0]
}
func (*naive) Sign(parley.ID, []byte) []byte         { return nil }
func (*naive) Verify(parley.ID, []byte, []byte) bool { return false }
func (*naive) Refused(_, _ parley.ID, _ string)      {}

type world struct {
	begun  int // how many processes have started
	procs  []proc
	flight []letter
	used   explore.Model
	seen   []string // at all processes
}

type proc struct {
	machine, durable []byte
	log              []parley.Record
	timers           []alarm
	down             bool
	lives, asked     int
	told             []string // the crashes it was notified of, with the incarnation
	seen             []string
}

type alarm struct {
	due    parley.Tick
	number parley.Timer
}

type letter struct {
	from, to parley.ID
	msg      parley.Msg
	due      parley.Tick
}

func (l letter) String() string {
	return fmt.Sprintf("%d-%d %d/%d by %d", l.from, l.to, l.msg.Value, l.msg.Seq, l.due)
}

func (w *world) clone() *world {
	c := &world{begun: w.begun, procs: slices.Clone(w.procs), flight: slices.Clone(w.flight), used: w.used, seen: slices.Clone(w.seen)}
	for i := range c.procs {
		p := &c.procs[i]
		p.log, p.timers = slices.Clone(p.log), slices.Clone(p.timers)
		p.told, p.seen = slices.Clone(p.told), slices.Clone(p.seen)
	}
	return c
}

// enough is the maximum number of states of toys visited.
const enough = 1000

// visit visits a state and all its successors.
func (x *naive) visit(w *world) {
	if w.begun < x.p.N {
		next := w.clone()
		next.begun++
		x.step(next, parley.ID(w.begun), 0, func(m parley.Machine, s *parley.Step, _ *proc) { m.Start(s) })
		return
	}
	if !x.m.FIFO {
		slices.SortFunc(w.flight, func(a, b letter) int { return strings.Compare(a.String(), b.String()) })
	} else {
		slices.SortStableFunc(w.flight, func(a, b letter) int { return int(a.from)*99 + int(a.to) - int(b.from)*99 - int(b.to) })
	}
	for i := range w.procs {
		slices.SortFunc(w.procs[i].timers, func(a, b alarm) int { return int(a.due-b.due)*1000 + int(a.number) - int(b.number) })
		slices.Sort(w.procs[i].told)
	}
	key := fmt.Sprintf("%+v", *w)
	if x.known[key] || len(x.known) > enough {
		return
	}
	x.known[key] = true
	x.seen[x.seenIn(w, false)] = true
	if !x.moves(w) {
		x.seen[x.seenIn(w, true)] = true
	}
}

// seenIn returns what a goal sees of a state.
func (x *naive) seenIn(w *world, over bool) string {
	var b bytes.Buffer
	fmt.Fprint(&b, w.seen)
	for id := range w.procs {
		p := &w.procs[id]
		fmt.Fprint(&b, p.down, p.seen)
		if !p.down {
			m := x.p.New(parley.ID(id))
			parley.Load(m, 0, p.machine)
			fmt.Fprint(&b, parley.Show(m, 0))
		}
	}
	return fmt.Sprint(b.String(), over)
}

// step runs one clause with every answer to its choices and, with a crash, with every prefix of its
// effects.
func (x *naive) step(w *world, id parley.ID, latest parley.Tick, clause func(m parley.Machine, s *parley.Step, p *proc)) {
	x.script = nil
	for {
		cuts := 0
		for cut := -1; cut <= cuts; cut++ {
			if cut >= 0 && !x.mayCrash(w, id) {
				break
			}
			x.at = 0
			next := w.clone()
			p, m := &next.procs[id], x.p.New(id)
			seen := len(p.seen)
			if p.machine != nil {
				parley.Load(m, 0, p.machine)
			}
			s := &parley.Step{Self: id, N: x.p.N, Members: parley.SetOf(id), Host: x}
			clause(m, s, p)
			var effects []parley.Effect
			for _, want := range []parley.Op{parley.OpAppend, parley.OpCompact, 0} {
				for _, e := range s.Effects {
					switch op := e.Op; {
					case op == want, want == 0 && op != parley.OpAppend && op != parley.OpCompact:
						for to := range parley.ID(x.p.N) {
							if e.Op == parley.OpSend && e.To == parley.All && to != id {
								one := e
								one.To = to
								effects = append(effects, one)
							}
						}
						if e.Op != parley.OpSend || e.To != parley.All {
							effects = append(effects, e)
						}
					}
				}
			}
			cuts = len(effects)
			if cut >= 0 {
				effects = effects[:cut]
			}
			for i := range p.timers {
				p.timers[i].due -= s.Now
			}
			x.carry(next, id, m, s.Now, latest, effects)
			p.machine = parley.Save(m, s.Now, nil)
			at := slices.IndexFunc(p.timers, func(a alarm) bool { return x.m.InTime && a.due <= 0 })
			for i := seen; x.all && i < len(p.seen); i++ {
				next.seen = append(next.seen, fmt.Sprint(id, " ", p.seen[i]))
			}
			if cut >= 0 {
				x.crash(next, id)
			}
			if cut == cuts && at < 0 {
				break // a crash between two steps covers this
			}
			script, asked := x.script, x.at
			x.visit(next)
			x.script, x.at = script, asked
		}
		x.script = x.script[:x.at]
		last := len(x.script) - 1
		for last >= 0 && x.script[last][0] == x.script[last][1]-1 {
			last--
		}
		if last < 0 {
			return
		}
		x.script = x.script[:last+1]
		x.script[last][0]++
	}
}

func (x *naive) carry(w *world, id parley.ID, m parley.Machine, now, latest parley.Tick, effects []parley.Effect) {
	p := &w.procs[id]
	without := func(n parley.Timer) {
		p.timers = slices.DeleteFunc(p.timers, func(a alarm) bool { return a.number == n })
	}
	for _, e := range effects {
		switch e.Op {
		case parley.OpSend:
			l := letter{id, e.To, e.Msg, 0}
			if x.m.InTime {
				l.due = latest + x.p.Relies.Delay
			}
			w.flight = append(w.flight, l)
		case parley.OpDeliver:
			p.seen = append(p.seen, fmt.Sprint("deliver ", e.Msg.Value))
		case parley.OpSetTimer:
			without(e.Timer)
			p.timers = append(p.timers, alarm{e.After, e.Timer})
		case parley.OpStopTimer:
			without(e.Timer)
		case parley.OpAppend:
			p.log = append(p.log, parley.Record{Body: e.Msg.Body})
		case parley.OpCompact:
			p.durable, p.log = parley.SaveDurable(m, now, nil), nil
		}
	}
}

func (x *naive) mayCrash(w *world, id parley.ID) bool {
	return w.used.Crashes < x.m.Crashes && (x.m.CrashOnly == (parley.Set{}) || x.m.CrashOnly.Has(id))
}

func (x *naive) crash(w *world, id parley.ID) {
	w.used.Crashes++
	p := &w.procs[id]
	p.down, p.machine, p.timers, p.told = true, nil, nil, nil
}

// first returns whether letter i is the first on its link.
func (x *naive) first(w *world, i int) bool {
	if !x.m.FIFO {
		return true
	}
	j := slices.IndexFunc(w.flight, func(l letter) bool { return l.from == w.flight[i].from && l.to == w.flight[i].to })
	return i == j
}

// moves takes the transitions of a state.
func (x *naive) moves(w *world) (due bool) {
	n := parley.ID(x.p.N)
	local := false // something other than a message or a timer is due
	if x.m.InTime {
		for id := range n {
			if t := w.procs[id].timers; len(t) > 0 && t[0].due <= 0 {
				x.expire(w, id)
				return true
			}
		}
	}
	for i, l := range w.flight {
		if !x.first(w, i) {
			continue
		}
		due = true
		for twice := range 2 {
			if twice == 1 && w.used.Doubles == x.m.Doubles || w.procs[l.to].down {
				continue
			}
			next := w.clone()
			if next.used.Doubles += twice; twice == 0 {
				next.flight = slices.Delete(next.flight, i, i+1)
			}
			x.step(next, l.to, l.due, func(m parley.Machine, s *parley.Step, _ *proc) { m.Receive(s, l.from, l.msg) })
		}
		next := w.clone()
		next.flight = slices.Delete(next.flight, i, i+1)
		if !w.procs[l.to].down {
			if next.used.Losses++; next.used.Losses > x.m.Losses {
				continue
			}
		}
		x.visit(next)
	}
	for id := range n {
		p := &w.procs[id]
		if p.down {
			x.back(w, id)
			continue
		}
		if p.asked < len(x.asked[id]) {
			local = true
			x.step(w, id, 0, func(m parley.Machine, s *parley.Step, p *proc) {
				p.seen = append(p.seen, "asked")
				p.asked++
				m.Request(s, x.asked[id][p.asked-1])
			})
		}
		if x.mayCrash(w, id) {
			next := w.clone()
			x.crash(next, id)
			x.visit(next)
		}
		if len(p.timers) > 0 && !x.m.InTime {
			due = true
			if w.used.Timeouts < x.m.Timeouts {
				next := w.clone()
				next.used.Timeouts++
				x.expire(next, id)
			}
		}
		local = x.suspect(w, id) || local
	}
	if !x.m.InTime {
		return due || local
	}
	wake := parley.Tick(1 << 40)
	for id := range n {
		if t := w.procs[id].timers; len(t) > 0 {
			wake, due = min(wake, t[0].due), true
		}
	}
	if wake == 1<<40 || local || slices.ContainsFunc(w.flight, func(l letter) bool { return l.due <= wake }) {
		return due || local
	}
	next := w.clone()
	for i := range next.flight {
		next.flight[i].due -= wake
	}
	for id := range next.procs {
		for i := range next.procs[id].timers {
			next.procs[id].timers[i].due -= wake
		}
	}
	x.moves(next)
	return true
}

// expire expires each of the timers that are due first at a process.
func (x *naive) expire(w *world, id parley.ID) {
	for i, t := range w.procs[id].timers {
		if t.due > w.procs[id].timers[0].due {
			break
		}
		x.step(w, id, 0, func(m parley.Machine, s *parley.Step, p *proc) {
			p.timers = slices.Delete(p.timers, i, i+1)
			if !x.m.InTime {
				s.Now = t.due
			}
			m.Timeout(s, t.number)
		})
	}
}

func (x *naive) back(w *world, id parley.ID) {
	for lost := range 2 {
		next := w.clone()
		if next.used.Restarts++; next.used.Restarts > x.m.Restarts {
			return
		}
		if next.used.LostDisks += lost; next.used.LostDisks > x.m.LostDisks {
			return
		}
		x.step(next, id, 0, func(m parley.Machine, s *parley.Step, p *proc) {
			p.down, p.lives = false, p.lives+1
			if lost == 1 {
				p.durable, p.log = nil, nil
			} else if len(p.durable) > 0 {
				parley.LoadDurable(m, 0, p.durable)
			}
			p.seen = append(p.seen, fmt.Sprint("restart ", lost))
			s.Restart, s.Log = true, p.log
			m.Start(s)
		})
	}
}

func (x *naive) suspect(w *world, id parley.ID) (due bool) {
	for of := range parley.ID(x.p.N) {
		q := &w.procs[of]
		told := fmt.Sprint(of, " in life ", q.lives)
		if of == id || slices.Contains(w.procs[id].told, told) {
			continue
		}
		next := w.clone()
		switch {
		case q.down && x.m.Detect:
			due = true
			if slices.ContainsFunc(w.flight, func(l letter) bool { return l.from == of && l.to == id }) {
				continue
			}
		case q.down || w.used.FalseSuspicions == x.m.FalseSuspicions:
			continue
		default:
			next.used.FalseSuspicions++
		}
		x.step(next, id, 0, func(m parley.Machine, s *parley.Step, p *proc) {
			p.told = append(p.told, told)
			m.Receive(s, id, parley.Msg{Kind: parley.Suspect, Origin: of})
		})
	}
	return due
}

// both visits the states of toys with both explorers, and returns what each of them sees.
func both(t *testing.T, o explore.Options, asked [][]parley.Msg) (fast, slow map[string]bool) {
	t.Helper()
	x := naive{all: o.Ordered, p: o.Protocol, m: o.Model, asked: asked, known: make(map[string]bool), seen: make(map[string]bool)}
	if x.visit(&world{procs: make([]proc, o.Protocol.N)}); len(x.known) > enough {
		return nil, nil
	}
	fast = make(map[string]bool)
	var mu sync.Mutex
	o.Looks, o.Goal = true, func(v *explore.View) bool {
		var b bytes.Buffer
		type one struct {
			order uint64
			what  string
		}
		var all []one
		lists := make([][]one, o.Protocol.N)
		add := func(list []parley.ExternalEvent, what func(h *parley.ExternalEvent) string) {
			for i := range list {
				h := &list[i]
				lists[h.At] = append(lists[h.At], one{h.Order, what(h)})
				if o.Ordered {
					all = append(all, one{h.Order, fmt.Sprint(h.At, " ", what(h))})
				}
			}
		}
		add(v.History.Requests, func(*parley.ExternalEvent) string { return "asked" })
		add(v.History.Deliveries, func(h *parley.ExternalEvent) string { return fmt.Sprint("deliver ", h.Msg.Value) })
		add(v.History.Restarts, func(h *parley.ExternalEvent) string { return fmt.Sprint("restart ", h.Msg.Value) })
		sorted := func(list []one) []string {
			slices.SortFunc(list, func(a, b one) int { return int(a.order) - int(b.order) })
			seen := []string{}
			for _, e := range list {
				seen = append(seen, e.what)
			}
			return seen
		}
		fmt.Fprint(&b, sorted(all))
		for id, list := range lists {
			seen := sorted(list)
			fmt.Fprint(&b, v.Down.Has(parley.ID(id)), seen)
			if !v.Down.Has(parley.ID(id)) {
				fmt.Fprint(&b, v.Vars(parley.ID(id)))
			}
		}
		mu.Lock()
		defer mu.Unlock()
		fast[fmt.Sprint(b.String(), v.History.Over)] = true
		return false
	}
	for id, list := range asked {
		for _, m := range list {
			o.Roots[0].Requests = append(o.Roots[0].Requests, explore.Request{At: parley.ID(id), Msg: m})
		}
	}
	if r := search(t, o); r.Outcome != explore.Exhausted {
		t.Fatalf("%s, %+v", r.Outcome, r.Findings)
	}
	return fast, x.seen
}

// models are the faults injected into toys.
var models = map[string]explore.Model{
	"asynchronous": {}, "timers": {Timeouts: 2}, "losses": {Losses: 1, Doubles: 1}, "crashes": {Crashes: 1},
	"crashes of one": {Crashes: 2, Restarts: 1, CrashOnly: parley.SetOf(1)},
	"detected":       {Crashes: 2, Restarts: 1, Detect: true}, "slander": {FalseSuspicions: 1, Timeouts: 1},
	"disks": {Crashes: 2, Restarts: 1, LostDisks: 1}, "in order": {FIFO: true, Doubles: 1, Losses: 1},
	"in time": {InTime: true}, "in time, crashes": {InTime: true, Crashes: 1, Restarts: 1},
	"in time, in order": {InTime: true, FIFO: true, Losses: 1}, "in time, detected": {InTime: true, Crashes: 1, Detect: true},
}

// TestNaive visits the states of random machines with the naive explorer as well, which must see the same.
func TestNaive(t *testing.T) {
	for name, m := range models {
		t.Run(strings.NewReplacer(" ", "-", ",", "").Replace(name), func(t *testing.T) {
			states := 0
			for seed := range uint64(8) {
				n := 2 + int(seed/2%2)
				o := explore.Options{Protocol: toys(seed, n), Roots: []explore.Root{{}}, Model: m, Workers: 2, Order: explore.Order(seed % 2), Ordered: seed/4%2 == 1}
				asked := make([][]parley.Msg, n)
				asked[0], asked[1] = make([]parley.Msg, 1), make([]parley.Msg, 1+seed/2%2)
				fast, slow := both(t, o, asked)
				states += len(slow)
				missing := slices.Sorted(maps.Keys(slow))
				missing = slices.DeleteFunc(missing, func(s string) bool { return fast[s] })
				if len(missing) > 0 || len(fast) != len(slow) {
					t.Errorf("seed %d: of %d kinds of states %d are missing, of %d: %.1q", seed, len(slow), len(missing), len(fast), missing)
				}
			}
			if states < 50 {
				t.Errorf("%d kinds of states", states)
			}
		})
	}
}
