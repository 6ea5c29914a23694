// Package stack puts protocols on top of each other, as layers. For example, stack.New(diffusion, fifo, causal) is
// the tower of broadcasts of the lecture (docs/explanation/sources.md). The result is again a protocol with one
// machine per process, so it may be a layer of another stack.
//
// A clause is the code of a layer that handles one event, such as a message. A clause requests effects, which go to
// different places.
//
// Sideways: Send and SendAll send to the same layer of the other processes.
//
// Down: a serving layer is a layer that broadcasts for the layers above it. Broadcast passes a message to the nearest
// serving layer below, as a Request of kind Carried (a message that another layer broadcasts). The serving layer
// delivers the message at all processes, also at its sender. At each process, the layer that broadcast the message
// gets it as Receive(from, m), even if other layers are in between. Request also passes a message to the nearest
// serving layer below, but the message has a kind that the serving layer defines.
//
// Up: Deliver passes a message of a local kind (such as Decide) to the next layer, as Receive(from, m). If a serving
// layer delivers a Carried message, the stack calls Receive(from, m) of the layer that broadcast the message. The
// argument "from" is then the process that broadcast the message. Deliveries of the top layer leave the stack.
//
// Up, too: Indicate passes an indication to every layer above as Receive(self, m), one layer after another. Then the
// indication leaves the stack. When a layer receives an indication, it may deliver messages in this clause. The next
// layer gets these deliveries first, and then the indication. Messages that a layer delivers in later clauses come
// after the indication. For example, layer 1 indicates the view v, and layer 2 handles it with Deliver(a) and
// Request(q):
//
//	layer 1: Indicate(v)
//	layer 2: Receive(v), which requests Deliver(a) and Request(q)
//	layer 3: Receive(a), Receive(v), and then what the answer to q causes
//
// So in this one clause a layer can deliver the messages that belong before a view, and broadcast messages that
// belong to the view. Sometimes a layer needs an answer from another layer before the layers above may get the
// indication. Then it first sends its request, and calls Indicate when it has the answer.
//
// Back to the same layer: when a timer expires, the event goes to the layer that set the timer. When a log record
// is read after a restart, it goes to the layer that wrote the record. If one layer calls Compact, this replaces
// the records of all layers. So every layer that appends records must also hold their contents in durable
// variables.
//
// A layer finishes its clause before any of its effects happen. The effects happen in the order in which the layer
// requested them. So the stack never calls a machine while a clause of this machine is running. If no layer below is
// a serving layer, Broadcast and Request leave the stack at its bottom. The answer to such a Request goes to the
// lowest layer.
//
// A message on a link names its layer, and a faulty peer can name any layer. But a peer cannot forge a Carried
// message. The field Hears of a layer's protocol says whether the layer receives messages from links, from the layer
// below, or from both. If a message arrives in another way, the stack refuses and counts it.
package stack

import (
	"fmt"
	"math/bits"
	"slices"

	"parley"
)

// New returns the protocols as one protocol. The lowest layer comes first. Requests from above go to the top layer,
// whose properties and promises are also those of the stack. The stack has the assumptions of all layers. It is
// synchronous if one layer is. It tolerates only the faults, and only as many faults, as every layer tolerates.
//
// A protocol that broadcasts must say so in Hears. If it says HearsBeneath, link messages to it are refused.
// A protocol that also sends says HearsBoth. It must itself check with Step.Carried whether a message was
// carried. For all other protocols carried messages are refused.
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
	// A layer cannot rename the processes in the messages that it carries, because
	// it does not know their meaning.
	if !served {
		out.Rename = l.rename
	}
	return out
}

// machine is one process, with its machine in every layer, the lowest first.
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

// Start starts the lowest layer first, each with its own records. Their effects
// happen when all have started.
func (m *machine) Start(s *parley.Step) {
	log, mark := s.Log, s.Mark()
	for i := range m.parts {
		s.Log = parley.LogOf(log, m.bits, parley.Path(i))
		m.within(s, i, 0, func(part parley.Machine) { part.Start(s) })
	}
	s.Log = log
	m.route(s, mark)
}

// Request goes to the top layer.
func (m *machine) Request(s *parley.Step, q parley.Msg) {
	mark := s.Mark()
	m.within(s, len(m.parts)-1, 0, func(part parley.Machine) { part.Request(s, q) })
	m.route(s, mark)
}

// Receive handles a message from a link or from what lies beneath the stack, which delivers
// to the layer that asked or to the lowest, and indicates to every layer.
func (m *machine) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	mark := s.Mark()
	if q.Kind >= parley.Indication {
		m.notify(s, 0, parley.Effect{Op: passedIndication, From: s.Self, To: from, Msg: q})
		m.route(s, mark)
		return
	}
	i := int(s.Pop(m.bits))
	if why := m.refusal(i, s.Carried, q); why != "" {
		s.Refuse(from, why)
		return
	}
	m.within(s, i, s.Path, func(part parley.Machine) { part.Receive(s, from, q) })
	m.route(s, mark)
}

// refusal returns why layer i does not accept a message that reaches the stack, or "". No
// honest peer would have sent a refused message to that layer in that way.
func (m *machine) refusal(i int, carried bool, q parley.Msg) string {
	switch {
	case i >= len(m.parts):
		return "message to a layer there is not"
	case q.Kind >= parley.Local: // a message of what lies beneath, in its own kinds
		return ""
	case carried && (m.beneath(i) >= 0 || m.of[i].Hears == parley.HearsLinks):
		return unexpectedCarried
	case !carried && m.of[i].Hears == parley.HearsBeneath:
		return "link message to a layer that is carried"
	}
	return ""
}

const unexpectedCarried = "carried message for nobody"

// Timeout goes to the layer that set the timer.
func (m *machine) Timeout(s *parley.Step, t parley.Timer) {
	mark, i := s.Mark(), int(s.Pop(m.bits))
	m.within(s, i, s.Path, func(part parley.Machine) { part.Timeout(s, t) })
	m.route(s, mark)
}

// within runs a clause of layer i and pushes i on the path of its effects.
func (m *machine) within(s *parley.Step, i int, path parley.Path, clause func(parley.Machine)) {
	mark, outer := s.Mark(), s.Path
	s.Path = path
	clause(m.parts[i])
	s.Lower(mark, m.bits, parley.Path(i))
	s.Path = outer
}

// route carries out the effects that concern layers, in the order of the requests,
// until only effects for the host are left. Paths name the layer of an effect.
func (m *machine) route(s *parley.Step, mark int) {
	carried := s.Carried
	s.Carried = false
	s.Take(mark, func(e *parley.Effect) bool { return m.routeOne(s, *e) })
	s.Carried = carried
}

// passedIndication is OpIndicate of a layer beneath the stack, which itself notifies the layers
// above the stack. No machine requests it.
const passedIndication parley.Op = 0

// notify notifies layer i of an indication, which then waits behind what the layer
// requested in that clause and before.
func (m *machine) notify(s *parley.Step, i int, e parley.Effect) {
	m.within(s, i, 0, func(part parley.Machine) { part.Receive(s, e.To, e.Msg) })
	e.Path = parley.Path(i)
	s.Effects = append(s.Effects, e)
}

// routeOne carries out one effect and reports whether it is done.
func (m *machine) routeOne(s *parley.Step, e parley.Effect) bool {
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
		return e.Op == passedIndication
	case e.Op == parley.OpDeliver && e.Msg.Kind == parley.Carried:
		path, q, rest, err := parley.ReadMsg(e.Msg.Body)
		to := m.layer(path)
		if err != nil || len(rest) > 0 || to > top || m.beneath(to) != i || m.of[to].Hears == parley.HearsLinks {
			s.Refuse(e.To, unexpectedCarried)
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
	case e.Op == parley.OpIndicate || e.Op == passedIndication:
		m.notify(s, i+1, e)
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
