// Package sm implements the algorithm SM(m): Byzantine agreement on the value of one source with signed messages.
//
// The problem: there are n processes, and at most m of them are faulty. One process, the source (process 0, called
// the transmitter in the lecture), has a value for all others, its lieutenants. All correct lieutenants must decide
// on the same value. If the source is correct, they must decide on its value. Messages are signed. Faulty processes
// may do anything, and may sign for each other. But no process can forge the signature of a correct process, or
// change a message that a correct process signed.
//
// The bound: any m, in m+1 rounds. If n < m+2, agreement holds trivially: if m processes are faulty, at most one
// process is correct.
//
// A message v:0:j1:...:jk is a value v with a chain of signatures: first the signature of the source, then one
// signature of each process that relayed the value. Each signature covers the value and all earlier signatures. The
// source signs its value and sends it to all. A lieutenant collects the received values in a set V. If a received
// value is not in V yet, the lieutenant adds its own signature and relays the value. After the last round it decides
// on choice(V). The function choice depends only on V.
//
// Why it works: all correct lieutenants end with the same V. If a correct lieutenant receives a value before round m,
// it relays the value, and all others have the value one round later. If it receives a value in round m, the chain
// has m+1 signers. At least one of these signers is correct, and has relayed the value to all. For this reason, a
// chain that arrives in round r must have r+1 signers. If shorter chains were valid, a faulty process could send a
// value to only one process in the last round. If the source is correct, V contains only its value, because no other
// value carries its signature.
//
// Source: the lecture (docs/explanation/sources.md), "Protocol with Signed Messages"; Lamport, Shostak and Pease
// (1982), section 4. The lecture does not say when a chain is valid, how many rounds are necessary, and what choice
// is. This package adds the answers above. [RelayTwo], a form in which V has at most two values, is from Dolev and
// Strong (1983).
package sm

import (
	"bytes"
	"slices"

	"parley"
	"parley/agreement/problem"
	"parley/lockstep"
)

// Signed is the only message, v:0:j1:...:jk. Seq: the round, k. Body: the value
// and its chain of signatures, see chain.go. Origin and Value: unused.
const Signed parley.Kind = 1

// New returns the protocol as machines on the given schedule.
func New(c Config, when lockstep.Schedule) parley.Protocol {
	p := lockstep.Of(Rounds(c), when)
	p.Flags = parley.Flags(c, flags, func(c Config) parley.Protocol { return New(c, when) })
	return p
}

// Rounds returns the protocol at the level of rounds.
func Rounds(c Config) lockstep.Protocol {
	instance := instanceDigest(&c)
	return lockstep.Protocol{
		Protocol: parley.Protocol{
			Name:       "sm",
			Title:      "Byzantine agreement by signed messages, SM(m)",
			Paper:      "lecture, Protocol with Signed Messages; Lamport, Shostak, Pease 1982",
			Faults:     parley.SignedByzantineFaults,
			Kinds:      []string{"", "SIGNED"},
			N:          c.N,
			M:          c.M,
			Proposers:  parley.SetOf(c.Source),
			Properties: problem.Byzantine(c.Source),
			Promises:   promises(c),
			Bound:      c.Bounded(problem.SignedBound),
			Cost:       c.Costing(Cost),
			Size:       size(c),
			Explain:    explain,
			Lies:       lies(c),
			Overhears:  true,
			Rename:     rename,
		},
		Last: c.Last(),
		New:  func(self parley.ID) lockstep.Rounds { return &process{c: &c, instance: instance, self: self} },
	}
}

type process struct {
	c        *Config
	instance digest
	self     parley.ID

	value  []byte     // the source's value
	given  bool       // it has a value to propose
	v      [][]byte   // V, in order
	relay  []relayed  // values new in this round, to relay in the next
	caught parley.Set // senders of a bad signature in this round; RelayTwo only

	judge judge // scratch
}

// relayed is a chain with this process's signature, and the processes that have not signed it.
type relayed struct {
	to   parley.Set
	body []byte
}

// Request: the source gets its value, once.
func (p *process) Request(_ *parley.Step, m parley.Msg) {
	if m.Kind == parley.Propose && p.self == p.c.Source && len(m.Body) <= problem.MaxValue && !p.given {
		p.value, p.given = m.Body, true
	}
}

// Emit sends what is new: the source's value, or what the last round brought.
func (p *process) Emit(s *parley.Step, r int) {
	// 1. The source signs its value and sends it to every other process. A source
	// without a value sends nothing, and all decide on the default.
	if r == 0 && p.given {
		d := p.instance.withValue(p.value)
		s.SendAll(parley.Msg{Kind: Signed, Body: chain{p.value, []link{{p.self, s.Sign(d[:])}}}.encode()})
	}
	// 2.B (ii), the sending: see Absorb.
	for _, x := range p.relay {
		s.SendTo(x.to, parley.Msg{Kind: Signed, Seq: uint64(r), Body: x.body})
	}
	clear(p.relay)
	p.relay = p.relay[:0]
}

// Absorb: 2. Process i receives v:0:j1:...:jk in round k. The direct message of
// the source, 2.A, is no other case than k = 0: a second one adds to V and does
// not reset it.
func (p *process) Absorb(s *parley.Step, r int, from parley.ID, m parley.Msg) {
	if m.Kind != Signed || m.Seq != uint64(r) || m.Origin != 0 || m.Value != 0 {
		s.Refuse(from, malformed)
		return
	}
	v, why := p.judge.read(p.c, p.self, from, r, m.Body)
	if why == "" {
		why = p.unwanted(v.value, from)
	}
	if why == "" {
		why = p.judge.verify(p.instance, v, s.Verify)
	}
	if why == badSignature && p.c.Relay == RelayTwo {
		p.caught.Add(from)
	}
	if why != "" {
		s.Refuse(from, why)
		return
	}
	// 2.B (i) It adds v to V.
	at, _ := slices.BinarySearchFunc(p.v, v.value, bytes.Compare)
	p.v = slices.Insert(p.v, at, v.value)
	// (ii) If k < m, it sends v:0:j1:...:jk:i, in the next round, to every
	// lieutenant other than j1, ..., jk and itself.
	if k := r; k < p.c.Last() {
		to := parley.Everyone(p.c.N).Minus(p.judge.signers)
		to.Remove(p.self)
		v.links = append(v.links, link{p.self, s.Sign(p.judge.digest[:])})
		p.relay = append(p.relay, relayed{to, v.encode()})
	}
}

// unwanted returns why a chain with the value would change nothing, whatever its
// signatures, or "". This check before verification avoids nearly all verifications: each
// value comes from all processes, and is new once.
func (p *process) unwanted(value []byte, from parley.ID) string {
	_, known := slices.BinarySearchFunc(p.v, value, bytes.Compare)
	switch {
	case known:
		return duplicate
	case p.c.Relay == RelayTwo && len(p.v) >= 2:
		return thirdValue
	case p.caught.Has(from):
		return afterBadSignature
	}
	return ""
}

// Close: 3. When no more messages can come, after round m, process i decides on
// choice(V). The source decides on its own value.
func (p *process) Close(s *parley.Step, r int) {
	p.caught = parley.Set{}
	if r == p.c.Last() {
		s.Deliver(p.c.Source, parley.Msg{Kind: parley.Decide, Origin: p.c.Source, Body: p.choice()})
	}
}

func (p *process) choice() []byte {
	switch {
	case p.given:
		return p.value
	case len(p.v) == 1, len(p.v) > 1 && p.c.Choice == Minimum:
		return p.v[0]
	}
	return p.c.Default
}

// Values returns the set V of a process that [Rounds] made, in order: the values
// that it has accepted so far.
func Values(r lockstep.Rounds) [][]byte { return slices.Clone(r.(*process).v) }

func (p *process) State(v *parley.Vars) {
	v.Bytes("value", &p.value)
	v.Bool("given", &p.given)
	parley.Slice(v, "V", &p.v, func(_ int, b *[]byte) { v.Bytes("value", b) })
	parley.Slice(v, "relay", &p.relay, func(_ int, x *relayed) {
		v.Set("to", &x.to)
		v.Coded("chain", &x.body, renameBody)
	})
	v.Set("caught", &p.caught)
}

// Cost returns the theorem's count for a correct source. The source sends its value to n-1 lieutenants. If m > 0,
// each of them relays the value to n-2 others, for which it is not new. A message of round r is one value, of one
// bit, with r+1 names and signatures.
func Cost(n, m int) parley.Cost {
	cost := parley.Cost{Rounds: m + 1, PerRound: make([]parley.Traffic, m+1)}
	messages := uint64(n - 1)
	for r := range min(m+1, 2) {
		signers := uint64(r + 1)
		one := parley.Traffic{Messages: 1, Bits: 1 + signers*parley.IDBits(n), Signatures: signers}
		cost.PerRound[r] = one.Times(messages)
		messages *= uint64(max(n-2, 0))
	}
	return cost
}
