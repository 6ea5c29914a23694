// Package mux runs many synchronous protocols in parallel in one machine.
//
// [Rounds] and [OfSources] run several protocols, which are called parts, in the same rounds. The parts share one
// schedule. In each round, a process sends one frame to each peer, which carries the messages of all parts. A
// [Pipeline] runs consecutive instances of one protocol, which are called slots. Each slot begins on demand, that is,
// when a process requests it.
//
// The path of a message says to which part the message belongs. When a part requests an effect, this package adds the
// part's number to the path. When a message arrives, the package removes the number. It does not encode messages again.
// Because each level only adds and removes one number, machines of this package can be nested in any order.
//
// # Decisions
//
// A process can rejoin a stream of slots that has continued without it. It asks the others for their positions (slot
// numbers), and takes the (m+1)th greatest answer. Then it listens for the duration of a slot. After that it takes part
// in slots beyond its reserve. The reserve is a slot number on its disk. Before its restart, the process may have sent
// messages in slots up to the reserve, but not in later slots.
//
// Processes that rejoin at the same time have different reserves. So in a slot between two reserves, more than m
// processes may be silent. For this reason, a process that rejoins waits before it reports decisions. It must receive
// frames from n-1-m others in every slot of three consecutive windows. A window is the maximum number of slots in
// flight.
//
// Motive: a stream never stops at an agreed slot, so there is no agreed slot at which a process could join. Cost: a
// round must be longer than three message delays instead of two. When all processes rejoin, they run thousands of empty
// slots. Twice per window a process writes a new reserve to its disk, and its frames wait until the reserve is durable.
// If the disk takes longer than a round, the process is late and does not detect this.
//
// Before the first slot of a stream, a process asks the others whether they are prepared. Each process answers when its
// first reserve is on its disk. Motive: without this question, the first agreement would fail if a disk takes longer
// than a round. Cost: the first proposal in a stream waits for a round trip. It waits for two rounds if a node is
// silent, and for about ten rounds if more than m nodes are silent. A node still misses the first agreement if its disk
// takes a round longer than the disks of n-m others.
package mux

import (
	"fmt"
	"iter"
	"math/bits"
	"slices"
	"strconv"

	"parley"
	"parley/lockstep"
)

// Rounds runs the parts in parallel, part i at path i. It lasts as long as the longest part. A shorter part is over
// earlier.
//
// A Request goes to every part that has the process among its Proposers, so these parts get the same initial value.
// The deliveries of a part leave with the part's number in their path (see [Part]). An outer protocol that computes
// one result from them takes them by lockstep.Delivered, and has its own properties. The properties of the parts are
// not properties of the whole.
func Rounds(name string, parts []lockstep.Protocol) lockstep.Protocol {
	return compose(name, parts, false)
}

// OfSources is [Rounds] for n parts in which part i is about process i. Renaming the processes permutes the
// parts.
func OfSources(name string, parts []lockstep.Protocol) lockstep.Protocol {
	if len(parts) == 0 || len(parts) != parts[0].N {
		panic(fmt.Sprintf("mux: %s has %d parts, not one for each process", name, len(parts)))
	}
	return compose(name, parts, true)
}

// Part splits the path of a delivery into the number of the part (one of k parts) and the path inside the part.
func Part(path parley.Path, k int) (part int, inside parley.Path) {
	width := widthOf(k)
	return int(path & (1<<width - 1)), path >> width
}

// Inside returns one part of a process made by [Rounds] or [OfSources].
func Inside(r lockstep.Rounds, part int) lockstep.Rounds { return r.(*parallelProcess).parts[part] }

// widthOf returns ceil(log2 k), the number of bits of a path that name one of k parts.
func widthOf(k int) int { return bits.Len(uint(k - 1)) }

// parallel is what all processes of one composition share.
type parallel struct {
	parts   []lockstep.Protocol
	bits    int
	sources bool // part i is about process i
}

func compose(name string, parts []lockstep.Protocol, sources bool) lockstep.Protocol {
	if len(parts) == 0 {
		panic("mux: " + name + " has no parts")
	}
	c := parallel{parts: parts, bits: widthOf(len(parts)), sources: sources}
	out := lockstep.Protocol{
		Protocol: parley.Protocol{
			Name:    name,
			Title:   fmt.Sprintf("%d protocols side by side", len(parts)),
			Timing:  parley.Synchronous,
			Faults:  parts[0].Faults,
			N:       parts[0].N,
			M:       parts[0].M,
			Bound:   c.bound,
			Cost:    c.cost,
			Memory:  c.memory,
			Size:    c.size,
			Explain: c.explain,
			Lies:    c.lies,
		},
		New: c.process,
	}
	if !slices.ContainsFunc(parts, func(p lockstep.Protocol) bool { return p.Rename == nil }) {
		out.Rename, out.RenameAll = c.rename, c.renameAll
	}
	for _, p := range parts {
		if p.N != out.N {
			panic(fmt.Sprintf("mux: %s has parts for %d and for %d processes", name, out.N, p.N))
		}
		out.Last = max(out.Last, p.Last)
		out.Faults = min(out.Faults, p.Faults)
		out.Overhears = out.Overhears || p.Overhears
		for id := range p.Proposers.All() {
			out.Proposers.Add(id)
		}
	}
	return out
}

// parallelProcess is one process, with its process in every part.
type parallelProcess struct {
	parallel
	self  parley.ID
	parts []lockstep.Rounds
}

func (c parallel) process(self parley.ID) lockstep.Rounds {
	p := &parallelProcess{parallel: c, self: self}
	for _, part := range c.parts {
		p.parts = append(p.parts, part.New(self))
	}
	return p
}

// within runs a clause of part i and pushes i on the path of its effects.
func (p *parallelProcess) within(s *parley.Step, i int, clause func(lockstep.Rounds)) {
	mark := s.Mark()
	clause(p.parts[i])
	s.Lower(mark, p.bits, parley.Path(i))
}

func (p *parallelProcess) Request(s *parley.Step, m parley.Msg) {
	for i := range p.parts {
		if p.parallel.parts[i].Proposers.Has(p.self) {
			p.within(s, i, func(part lockstep.Rounds) { part.Request(s, m) })
		}
	}
}

func (p *parallelProcess) Emit(s *parley.Step, r int) {
	for i := range p.parts {
		if r <= p.parallel.parts[i].Last {
			p.within(s, i, func(part lockstep.Rounds) { part.Emit(s, r) })
		}
	}
}

func (p *parallelProcess) Absorb(s *parley.Step, r int, from parley.ID, m parley.Msg) {
	i := int(s.Pop(p.bits))
	switch {
	case i >= len(p.parts):
		s.Refuse(from, "message to a part there is not")
	case r > p.parallel.parts[i].Last:
		s.Refuse(from, "message to a part that is over")
	default:
		p.within(s, i, func(part lockstep.Rounds) { part.Absorb(s, r, from, m) })
	}
}

func (p *parallelProcess) Close(s *parley.Step, r int) {
	for i := range p.parts {
		if r <= p.parallel.parts[i].Last {
			p.within(s, i, func(part lockstep.Rounds) { part.Close(s, r) })
		}
	}
}

// Reset resets all parts.
func (p *parallelProcess) Reset() {
	for i, part := range p.parts {
		if r, ok := part.(lockstep.Reusable); ok {
			r.Reset()
		} else {
			p.parts[i] = p.parallel.parts[i].New(p.self)
		}
	}
}

func (p *parallelProcess) State(v *parley.Vars) {
	if p.sources {
		parley.PerProcess(v, "part", p.parts, func(id parley.ID, part *lockstep.Rounds) {
			v.Inner(p.parallel.parts[id].Name, *part, p.parallel.parts[id].Rename)
		})
		return
	}
	for i, part := range p.parts {
		v.Inner("part["+strconv.Itoa(i)+"]", part, p.parallel.parts[i].Rename)
	}
}

func (c parallel) bound(n, m int) error {
	for _, p := range c.parts {
		if p.Bound != nil {
			if err := p.Bound(n, m); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c parallel) cost(n, m int) parley.Cost {
	parts := c.parts
	if c.sources {
		parts = slices.Repeat(parts[:1], n) // one part per process
	}
	var sum parley.Cost
	for _, p := range parts {
		if p.Cost == nil {
			continue
		}
		part := p.Cost(n, m)
		sum.Rounds = max(sum.Rounds, part.Rounds)
		sum.AtMost = sum.AtMost || part.AtMost
		for r, load := range part.PerRound {
			if r == len(sum.PerRound) {
				sum.PerRound = append(sum.PerRound, parley.Traffic{})
			}
			sum.PerRound[r] = sum.PerRound[r].Plus(load)
		}
	}
	return sum
}

func (c parallel) memory() uint64 {
	var sum parley.Traffic
	for _, p := range c.parts {
		if p.Memory != nil {
			sum = sum.Plus(parley.Traffic{Bits: p.Memory()})
		}
	}
	return sum.Bits
}

// open finds the part that a message belongs to and pops it from the path. Paths come
// from peers too, so the part may not exist.
func (c parallel) open(e parley.Env) (i int, inside parley.Env, ok bool) {
	inside = e
	i, inside.Path = Part(e.Path, len(c.parts))
	return i, inside, i < len(c.parts) && e.Round <= c.parts[i].Last
}

func (c parallel) size(e parley.Env, m parley.Msg) parley.Traffic {
	i, e, ok := c.open(e)
	if !ok || c.parts[i].Size == nil {
		return parley.Traffic{}
	}
	return c.parts[i].Size(e, m)
}

// explain prefixes each row with the number of the part, or with the process that the
// part is about.
func (c parallel) explain(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		i, e, ok := c.open(e)
		if !ok || c.parts[i].Explain == nil {
			return
		}
		before := "#" + strconv.Itoa(i)
		if c.sources {
			before = name(parley.ID(i))
		}
		for row := range c.parts[i].Explain(e, m, name) {
			if !yield(before + ": " + row) {
				return
			}
		}
	}
}

// lies calls the Lies of every part that is not over, even if an honest process would
// send nothing.
func (c parallel) lies(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	var out []parley.Outgoing
	for i, p := range c.parts {
		if t.Round > p.Last {
			continue
		}
		turn := t.Child(c.bits, parley.Path(i))
		said := turn.Honest
		if p.Lies != nil {
			said = p.Lies(s, turn)
		}
		out = append(out, parley.Lift(slices.Clone(said), c.bits, parley.Path(i))...)
	}
	return out
}

func (c parallel) rename(e parley.Env, m parley.Msg, perm []parley.ID) parley.Msg {
	if i, e, ok := c.open(e); ok {
		return c.parts[i].Rename(e, m, perm)
	}
	return m
}

// renameAll renames the messages of each part and puts the parts in their new order,
// as an honest process would send them.
func (c parallel) renameAll(e parley.Env, sent []parley.Outgoing, perm []parley.ID) []parley.Outgoing {
	byPart := make([][]parley.Outgoing, len(c.parts))
	for _, one := range sent {
		if i, inside, ok := c.open(parley.Env{Path: one.Path, Round: e.Round}); ok {
			byPart[i] = append(byPart[i], parley.Outgoing{Path: inside.Path, Msg: one.Msg})
		}
	}
	renamed := make([][]parley.Outgoing, len(c.parts))
	for i, list := range byPart {
		to := i
		if c.sources {
			to = int(perm[i])
		}
		renamed[to] = parley.Lift(c.parts[i].Renamed(e, list, perm), c.bits, parley.Path(to))
	}
	var out []parley.Outgoing
	for _, list := range renamed {
		out = append(out, list...)
	}
	return out
}
