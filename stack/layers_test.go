package stack_test

import (
	"fmt"
	"slices"

	"parley"
)

// data is the one kind of message of the layers below: Seq is the number given by
// the origin, from 1, and Body is what is carried.
const data parley.Kind = 1

// carrier returns what flood and order have in common.
func carrier(name string, n int, machine func(self parley.ID) parley.Machine) parley.Protocol {
	return parley.Protocol{
		Name: name, N: n, M: n - 1, Serves: true, New: machine, Kinds: []string{"", "DATA"},
		Lies: func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
			out := slices.Clone(t.Honest)
			switch s.Choose(3) {
			case 1:
				for i := range out {
					if t.Body != nil {
						out[i].Msg.Body = t.Body(s, out[i].Msg.Body)
					}
				}
			case 2:
				return nil
			}
			return out
		},
		Properties: []parley.Property{
			{Name: "integrity", Says: "nothing is delivered twice, and only what was broadcast", Check: integrity},
			{Name: "agreement", Says: "all correct processes deliver the same", Mode: parley.Eventually,
				Check: agreement},
			{Name: "validity", Says: "correct processes deliver what they broadcast", Mode: parley.Eventually,
				Check: validity},
		},
	}
}

// flood is reliable broadcast by diffusion: a process that receives a message for the
// first time relays it to all before it delivers it.
type flood struct {
	parley.Base
	last uint64     // own number
	seen [][]uint64 // by origin
}

func newFlood(n int) parley.Protocol {
	return carrier("flood", n, func(parley.ID) parley.Machine { return &flood{seen: make([][]uint64, n)} })
}

func (p *flood) Request(s *parley.Step, m parley.Msg) {
	p.last++
	p.Receive(s, s.Self, parley.Msg{Kind: data, Origin: s.Self, Seq: p.last, Body: m.Body})
}

func (p *flood) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Kind != data || int(m.Origin) >= s.N || slices.Contains(p.seen[m.Origin], m.Seq) {
		return
	}
	p.seen[m.Origin] = append(p.seen[m.Origin], m.Seq)
	s.SendAll(m)
	s.Deliver(m.Origin, parley.Msg{Kind: parley.Carried, Origin: m.Origin, Body: m.Body})
}

func (p *flood) State(v *parley.Vars) {
	parley.Num(v, "last", &p.last)
	parley.PerProcess(v, "seen", p.seen, func(_ parley.ID, list *[]uint64) {
		parley.Slice(v, "seq", list, func(_ int, seq *uint64) { parley.Num(v, "seq", seq) })
	})
}

// order is FIFO order by sequence numbers on top of a reliable broadcast.
type order struct {
	parley.Base
	last uint64
	next []uint64       // by origin: the number of the last delivery
	bag  [][]parley.Msg // by origin: messages that came too early
	late parley.Set     // suspected processes
}

func newOrder(n int) parley.Protocol {
	p := carrier("order", n, func(parley.ID) parley.Machine {
		return &order{next: make([]uint64, n), bag: make([][]parley.Msg, n)}
	})
	p.Hears = parley.HearsBeneath
	p.Properties = append(p.Properties, parley.Property{Name: "FIFO order", Check: fifo,
		Says: "what a process broadcast is delivered in that order"})
	return p
}

func (p *order) Request(s *parley.Step, m parley.Msg) {
	p.last++
	s.Broadcast(parley.Msg{Kind: data, Seq: p.last, Body: m.Body})
}

func (p *order) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Kind == parley.Suspect {
		p.late.Add(m.Origin)
	}
	if m.Kind != data {
		return
	}
	p.bag[from] = append(p.bag[from], m)
	for {
		i := slices.IndexFunc(p.bag[from], func(m parley.Msg) bool { return m.Seq == p.next[from]+1 })
		if i < 0 {
			return
		}
		p.next[from]++
		s.Deliver(from, parley.Msg{Kind: parley.Carried, Origin: from, Body: p.bag[from][i].Body})
		p.bag[from] = slices.Delete(p.bag[from], i, i+1)
	}
}

func (p *order) State(v *parley.Vars) {
	parley.Num(v, "last", &p.last)
	v.Set("late", &p.late)
	parley.PerProcess(v, "next", p.next, func(_ parley.ID, seq *uint64) { parley.Num(v, "seq", seq) })
	parley.PerProcess(v, "bag", p.bag, func(id parley.ID, list *[]parley.Msg) {
		parley.Slice(v, "early", list, func(_ int, m *parley.Msg) { v.Msg("message", parley.Env{From: id}, m) })
	})
}

// watch is a failure detector that does not serve. Every process reports ten times that
// it is alive, and a process that is silent for two periods is suspected.
type watch struct {
	parley.Base
	round     int
	heard     []int
	suspected parley.Set
}

func newWatch(n int) parley.Protocol {
	return parley.Protocol{
		Name: "watch", N: n, M: n - 1, Kinds: []string{"", "ALIVE"},
		New: func(parley.ID) parley.Machine { return &watch{heard: make([]int, n)} },
	}
}

func (p *watch) Start(s *parley.Step) { s.SetTimer(0, 0) }

func (p *watch) Receive(s *parley.Step, from parley.ID, m parley.Msg) { p.heard[from] = p.round }

func (p *watch) Timeout(s *parley.Step, _ parley.Timer) {
	p.round++
	for id := range parley.ID(s.N) {
		if id != s.Self && p.round-p.heard[id] > 3 && p.suspected.Add(id) {
			s.Indicate(parley.Msg{Kind: parley.Suspect, Origin: id})
		}
	}
	if p.round <= 10 {
		s.SendAll(parley.Msg{Kind: 1})
		s.SetTimer(0, 1000)
	}
}

func (p *watch) State(v *parley.Vars) {
	parley.Num(v, "round", &p.round)
	v.Set("suspected", &p.suspected)
	parley.PerProcess(v, "heard", p.heard, func(_ parley.ID, r *int) { parley.Num(v, "round", r) })
}

func delivered(h *parley.History) map[parley.ID][]string {
	out := make(map[parley.ID][]string)
	for _, d := range h.Deliveries {
		if h.Correct(d.At) {
			out[d.At] = append(out[d.At], fmt.Sprintf("%d:%s", d.From, d.Msg.Body))
		}
	}
	return out
}

func broadcasts(h *parley.History) map[string]parley.ID {
	out := make(map[string]parley.ID)
	for _, q := range h.Requests {
		out[fmt.Sprintf("%d:%s", q.At, q.Msg.Body)] = q.At
	}
	return out
}

func integrity(h *parley.History) error {
	asked := broadcasts(h)
	for id, list := range delivered(h) {
		once := make(map[string]bool)
		for _, m := range list {
			if _, known := asked[m]; once[m] || !known {
				return fmt.Errorf("%d delivers %q, twice or out of nothing", id, m)
			}
			once[m] = true
		}
	}
	return nil
}

func agreement(h *parley.History) error {
	got := delivered(h)
	var first []string
	for i, id := range slices.Collect(parley.Everyone(h.N).Minus(h.Faulty).All()) {
		list := slices.Sorted(slices.Values(got[id]))
		if i == 0 {
			first = list
		} else if !slices.Equal(first, list) {
			return fmt.Errorf("%d delivers %q and others %q", id, list, first)
		}
	}
	return nil
}

func validity(h *parley.History) error {
	got := delivered(h)
	for m, at := range broadcasts(h) {
		if h.Correct(at) && !slices.Contains(got[at], m) {
			return fmt.Errorf("%d does not deliver %q, which it broadcast", at, m)
		}
	}
	return nil
}

func fifo(h *parley.History) error {
	sent := make(map[parley.ID][]string)
	for _, q := range h.Requests {
		sent[q.At] = append(sent[q.At], fmt.Sprintf("%d:%s", q.At, q.Msg.Body))
	}
	for id, list := range delivered(h) {
		next := make(map[parley.ID]int)
		for _, m := range list {
			at := broadcasts(h)[m]
			if sent[at][next[at]] != m {
				return fmt.Errorf("%d delivers %q of %d before its number %d", id, m, at, next[at])
			}
			next[at]++
		}
	}
	return nil
}
