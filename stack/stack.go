// Package stack puts protocols on top of one another: stack.New(diffusion, fifo,
// causal) is the lecture's tower. The result is again a protocol of one machine,
// and may be a layer of another stack.
//
// What a layer asks for goes in four directions.
//
// Sideways: Send and SendAll reach the same layer at the others.
//
// Down: Broadcast hands a message to the nearest layer beneath that serves, as a
// Request of kind Carried. It comes back, to oneself too, as Receive(from, m) of
// the layer that asked, whatever lies between. Request goes to the nearest
// serving layer beneath in that layer's own words.
//
// Up: Deliver goes to the next layer as Receive(from, m), where m is of a local
// kind (Decide, say); what is Carried goes to the layer that asked for it, which
// may stand higher. A serving layer delivers what it carries with the process it
// came from. Deliveries of the top layer are the stack's own.
//
// Indicate goes to every layer above as Receive(self, m), one after another, and
// then leaves the stack. It stays in its place among what each layer asks for:
// the next one hears of it behind all that the layer beneath asked for up to the
// end of the clause that heard of it, and before what that asks for later. A
// layer can so deliver what belongs before a view, and broadcast what belongs
// into it, all in that clause. Who has to ask first, and hear the answer before
// the layers above are told, lets the layer that indicates wait for it: it asks
// for the question, and indicates when it was answered.
//
// Timers and log records come back to the layer they are of. Compact of one
// layer replaces the records of all, so every layer that appends must hold what
// its records say in durable variables.
//
// A layer finishes its clause before anything that it asked for happens, and
// what it asked happens in that order: no machine is re-entered. With nothing
// beneath that serves, Broadcast and Request are left to what lies beneath the
// stack; the answer to such a Request goes to the lowest layer.
//
// A peer's message on a link names the layer that it is for, as it likes. What is
// carried is not to be had that way: a layer hears as its protocol says in Hears,
// and whatever comes otherwise is refused and counted.
package stack

import (
	"fmt"
	"math/bits"
	"slices"

	"parley"
)

// New returns the protocols as one, the lowest first. Requests from above go to
// the top layer, whose properties and promises are those of the stack. The stack
// assumes what any layer assumes: it is synchronous if one of them is, and
// tolerates no worse faults and no more of them than each one does.
//
// A protocol that Broadcasts must say so in Hears. If it says HearsBeneath, link
// messages to it are refused; one that Sends too says HearsBoth and must look at
// Step.Carried itself before it trusts a message to have been carried. To all
// others carried messages are refused.
func New(lowestFirst ...parley.Protocol) parley.Protocol {
	if len(lowestFirst) == 0 {
		panic("stack: no layers")
	}
	l := layers{of: slices.Clone(lowestFirst), bits: bits.Len(uint(len(lowestFirst) - 1))}
	top := l.of[len(l.of)-1]
	out := parley.Protocol{
		Faults: top.Faults, N: top.N, M: top.M, Serves: top.Serves, Proposers: top.Proposers,
		Hears: parley.HearsBoth, Properties: top.Properties, Promises: top.Promises,
		New: l.machine, Memory: l.memory, Size: l.size, Explain: l.explain, Lies: l.lies,
		Tree: l.tree(),
	}
	if slices.ContainsFunc(l.of, func(p parley.Protocol) bool { return p.Bound != nil }) {
		out.Bound = l.bound
	}
	served := false
	out.Graph = l.of[0].Graph
	out.Relays = l.of[0].Relays && !slices.ContainsFunc(l.of[1:], func(p parley.Protocol) bool {
		return p.Hears != parley.HearsBeneath
	})
	for i, p := range l.of {
		if p.N != out.N {
			panic(fmt.Sprintf("stack: %s is for %d processes and %s for %d", p.Name, p.N, top.Name, out.N))
		}
		out.M = min(out.M, p.M)
		out.Overhears = out.Overhears || p.Overhears
		out.Relies, out.Span = out.Relies.And(p.Relies), max(out.Span, p.Span)
		out.Faults = min(out.Faults, p.Faults)
		out.Timing = max(out.Timing, p.Timing)
		out.Name, out.Title, out.Paper = join(out.Name, p.Name, "/"), join(out.Title, p.Title, ", under "),
			join(out.Paper, p.Paper, "; ")
		out.Kinds = kinds(out.Kinds, p.Kinds)
		served = served || l.beneath(i) >= 0
	}
	// What is carried is opaque to the layer that carries it, which cannot rename
	// the processes in there.
	if !served {
		out.Rename = l.rename
	}
	return out
}

// machine is one process: its part in every layer, the lowest first.
type machine struct {
	layers
	parts []parley.Machine
}

func (l layers) machine(self parley.ID) parley.Machine {
	m := &machine{layers: l}
	for _, p := range l.of {
		m.parts = append(m.parts, p.New(self))
	}
	return m
}

// Start starts the lowest layer first, each with its own records. What they ask
// for happens when all have started.
func (m *machine) Start(s *parley.Step) {
	log, mark := s.Log, s.Mark()
	for i := range m.parts {
		s.Log = parley.LogOf(log, m.bits, parley.Path(i))
		m.within(s, i, 0, func(part parley.Machine) { part.Start(s) })
	}
	s.Log = log
	m.workOff(s, mark)
}

// Request is for the top layer.
func (m *machine) Request(s *parley.Step, q parley.Msg) {
	mark := s.Mark()
	m.within(s, len(m.parts)-1, 0, func(part parley.Machine) { part.Request(s, q) })
	m.workOff(s, mark)
}

// Receive is from a link or from what lies beneath the stack. That delivers to
// the layer that asked, or to the lowest, and indicates to every layer.
func (m *machine) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	mark := s.Mark()
	if q.Kind >= parley.Indication {
		m.tell(s, 0, parley.Effect{Op: passing, From: s.Self, To: from, Msg: q})
		m.workOff(s, mark)
		return
	}
	i := int(s.Pop(m.bits))
	if why := m.unheard(i, s.Carried, q); why != "" {
		s.Refuse(from, why)
		return
	}
	m.within(s, i, s.Path, func(part parley.Machine) { part.Receive(s, from, q) })
	m.workOff(s, mark)
}

// unheard tells why layer i does not hear a message that comes to the stack: no
// honest peer would have sent it there in that way.
func (m *machine) unheard(i int, carried bool, q parley.Msg) string {
	switch {
	case i >= len(m.parts):
		return "message to a layer there is not"
	case q.Kind >= parley.Local: // own words of what lies beneath
		return ""
	case carried && (m.beneath(i) >= 0 || m.of[i].Hears == parley.HearsLinks):
		return forNobody
	case !carried && m.of[i].Hears == parley.HearsBeneath:
		return "link message to a layer that is carried"
	}
	return ""
}

const forNobody = "carried message for nobody"

// Timeout is for the layer that set the timer.
func (m *machine) Timeout(s *parley.Step, t parley.Timer) {
	mark, i := s.Mark(), int(s.Pop(m.bits))
	m.within(s, i, s.Path, func(part parley.Machine) { part.Timeout(s, t) })
	m.workOff(s, mark)
}

// within runs a clause of layer i and marks what it asks for as the layer's.
func (m *machine) within(s *parley.Step, i int, path parley.Path, clause func(parley.Machine)) {
	mark, outer := s.Mark(), s.Path
	s.Path = path
	clause(m.parts[i])
	s.Lower(mark, m.bits, parley.Path(i))
	s.Path = outer
}

// workOff carries what layers asked of one another to its place, in the order
// asked, until only what concerns the host is left. Paths tell whose it is.
func (m *machine) workOff(s *parley.Step, mark int) {
	carried := s.Carried
	s.Carried = false
	s.Take(mark, func(e *parley.Effect) bool { return m.settle(s, *e) })
	s.Carried = carried
}

// passing is OpIndicate of a layer beneath the stack, which tells those above the
// stack by itself. No machine asks for it.
const passing parley.Op = 0

// tell lets layer i hear of an indication, which then waits behind what the layer
// asked for in that clause, and all before it.
func (m *machine) tell(s *parley.Step, i int, e parley.Effect) {
	m.within(s, i, 0, func(part parley.Machine) { part.Receive(s, e.To, e.Msg) })
	e.Path = parley.Path(i)
	s.Effects = append(s.Effects, e)
}

// settle carries out one effect and tells whether it is done with.
func (m *machine) settle(s *parley.Step, e parley.Effect) bool {
	i, top := m.layer(e.Path), len(m.parts)-1
	switch {
	case e.Op == parley.OpBroadcast || e.Op == parley.OpRequest:
		to := m.beneath(i)
		if to < 0 {
			return false
		}
		if e.Op == parley.OpBroadcast {
			e.Msg = parley.Msg{Kind: parley.Carried, Body: parley.AppendMsg(nil, e.Path, e.Msg)}
		}
		m.within(s, to, 0, func(part parley.Machine) { part.Request(s, e.Msg) })
	case i == top:
		return e.Op == passing
	case e.Op == parley.OpDeliver && e.Msg.Kind == parley.Carried:
		path, q, rest, err := parley.ReadMsg(e.Msg.Body)
		to := m.layer(path)
		if err != nil || len(rest) > 0 || to > top || m.beneath(to) != i || m.of[to].Hears == parley.HearsLinks {
			s.Refuse(e.To, forNobody)
			return true
		}
		s.Carried = true
		m.within(s, to, path>>m.bits, func(part parley.Machine) { part.Receive(s, e.To, q) })
		s.Carried = false
	case e.Op == parley.OpDeliver:
		if e.Msg.Kind < parley.Local { // the layer above would take it for a peer's message
			panic(fmt.Sprintf("stack: %s delivers kind %#x to the layer above, which is not a local kind",
				m.of[i].Name, e.Msg.Kind))
		}
		m.within(s, i+1, 0, func(part parley.Machine) { part.Receive(s, e.To, e.Msg) })
	case e.Op == parley.OpIndicate || e.Op == passing:
		m.tell(s, i+1, e)
	default:
		return false
	}
	return true
}

func (m *machine) State(v *parley.Vars) {
	for i, part := range m.parts {
		v.Inner(m.of[i].Name, part, m.of[i].Rename)
	}
}
