package sim

import (
	"fmt"

	"parley"
	"parley/trace"
)

// carry carries out the effects of the step that process id has just made.
// Records come first: nothing leaves a process before they are durable.
func (s *Sim) carry(id parley.ID) {
	p := &s.procs[id]
	p.steps++
	effects := s.step.Effects
	if len(effects) == 0 && len(s.opt.Crashes) == 0 {
		return
	}
	for _, c := range s.opt.Crashes {
		if c.At == id && c.Step == p.steps {
			effects = singly(s.durableFirst(effects), id, parley.ID(len(s.procs)))
			s.perform(id, effects[:min(c.Effects, len(effects))])
			s.crash(c)
			return
		}
	}
	for i := range effects {
		if effects[i].Op == parley.OpAppend || effects[i].Op == parley.OpCompact {
			effects = s.durableFirst(effects)
			break
		}
	}
	s.perform(id, effects)
}

// durableFirst returns the effects with the log's in front: the records, and
// then what replaces them, which is the state after the step.
func (s *Sim) durableFirst(effects []parley.Effect) []parley.Effect {
	place := func(op parley.Op) int {
		switch op {
		case parley.OpAppend:
			return 0
		case parley.OpCompact:
			return 1
		}
		return 2
	}
	s.durable = s.durable[:0]
	for k := range 3 {
		for _, e := range effects {
			if place(e.Op) == k {
				s.durable = append(s.durable, e)
			}
		}
	}
	return s.durable
}

// singly returns the effects with one send for each receiver: a process may
// crash in the middle of a send to all.
func singly(effects []parley.Effect, from, n parley.ID) []parley.Effect {
	var out []parley.Effect
	for _, e := range effects {
		if e.Op != parley.OpSend || e.To != parley.All {
			out = append(out, e)
			continue
		}
		for e.To = range n {
			if e.To != from {
				out = append(out, e)
			}
		}
	}
	return out
}

func (s *Sim) perform(id parley.ID, effects []parley.Effect) {
	for i := range effects {
		e := &effects[i]
		switch e.Op {
		case parley.OpSend:
			s.send(e)
		case parley.OpKeep:
			s.measure(e, 1)
			s.trace(trace.Event{Op: trace.Keep, At: e.From, Peer: e.From, Path: e.Path, Msg: e.Msg})
		case parley.OpDeliver:
			s.History.Deliveries = append(s.History.Deliveries, s.happening(e.From, e.To, e.Path, e.Msg))
			s.trace(trace.Event{Op: trace.Deliver, At: e.From, Peer: e.To, Path: e.Path, Msg: e.Msg})
		case parley.OpIndicate:
			s.History.Indications = append(s.History.Indications, s.happening(e.From, e.From, e.Path, e.Msg))
			s.trace(trace.Event{Op: trace.Indicate, At: e.From, Path: e.Path, Msg: e.Msg})
		case parley.OpSetTimer:
			s.arm(e)
		case parley.OpStopTimer:
			s.procs[e.From].disarm(e.Path, e.Timer)
		case parley.OpAppend:
			p := &s.procs[e.From]
			p.log = append(p.log, parley.Record{Path: e.Path, Body: e.Msg.Body})
			s.trace(trace.Event{Op: trace.Append, At: e.From, Path: e.Path, Msg: e.Msg})
		case parley.OpCompact:
			p := &s.procs[id]
			p.state, p.log = parley.SaveDurable(p.seat.Machine, s.now, nil), p.log[:0]
		default:
			panic(fmt.Sprintf("sim: process %d asks a layer beneath, and there is none that serves", id))
		}
	}
}

// send puts a message on its links.
func (s *Sim) send(e *parley.Effect) {
	if e.Msg.Kind >= parley.Local {
		panic(fmt.Sprintf("sim: process %d sends local kind %#x", e.From, e.Msg.Kind))
	}
	all := e.To == parley.All
	receivers := 1
	if all {
		receivers = len(s.procs) - 1
	}
	s.Stats.Sends += uint64(receivers)
	s.measure(e, receivers)
	cause := s.trace(trace.Event{Op: trace.Send, At: e.From, Peer: e.To, Path: e.Path, Msg: e.Msg})
	ref := s.wire.put(stored{path: e.Path, msg: e.Msg, id: cause, refs: 1})
	if all && s.broadcast {
		s.due.at(s.now+s.opt.Delay.Least, event{what: arrival, to: parley.All, from: e.From, ref: ref})
		return
	}
	if !all {
		s.link(e.From, e.To, ref)
	} else {
		for to := range parley.ID(len(s.procs)) {
			if to != e.From {
				s.link(e.From, to, ref)
			}
		}
	}
	s.wire.drop(ref) // the sender's own hold on it
}

// link decides when a message arrives at one receiver, how often, and if.
func (s *Sim) link(from, to parley.ID, ref int32) {
	copies := 1
	if s.opt.Loss > 0 && s.delays.Float64() < s.opt.Loss {
		s.Stats.Lost++
		w := &s.wire.slots[ref]
		s.trace(trace.Event{Op: trace.Lose, At: to, Peer: from, Cause: w.id, Path: w.path, Msg: w.msg})
		return
	}
	if s.opt.Twice > 0 && s.delays.Float64() < s.opt.Twice {
		copies = 2
	}
	for range copies {
		delay := s.opt.Delay.Least
		if spread := s.opt.Delay.Most - delay; spread > 0 && !s.procs[from].rushing {
			delay += parley.Tick(s.delays.Uint64N(uint64(spread) + 1))
		}
		s.wire.slots[ref].refs++
		s.due.at(s.now+delay, event{what: arrival, to: to, from: from, ref: ref})
	}
}

// measure adds what correct processes send to the count of its round. Without
// rounds, or without a theorem that counts by them, all are one.
func (s *Sim) measure(e *parley.Effect, receivers int) {
	if !s.opt.Measure || s.opt.Protocol.Size == nil || s.faulty.Has(e.From) {
		return
	}
	round := int(e.Msg.Seq)
	if s.opt.Protocol.Timing != parley.Synchronous || s.opt.Protocol.Cost == nil {
		round = 0
	}
	for len(s.Stats.Sent) <= round {
		s.Stats.Sent = append(s.Stats.Sent, parley.Traffic{})
	}
	size := s.opt.Protocol.Size(parley.Env{From: e.From, To: e.To, Path: e.Path}, e.Msg)
	s.Stats.Sent[round] = s.Stats.Sent[round].Plus(size.Times(uint64(receivers)))
}

// crash stops a process; what it had not yet done is not done.
func (s *Sim) crash(c Crash) {
	p := &s.procs[c.At]
	p.down = true
	p.timers = p.timers[:0]
	s.Stats.Crashes++
	s.trace(trace.Event{Op: trace.Crash, At: c.At})
	if c.LostDisk {
		p.state, p.log = nil, nil
	}
	if c.Back > 0 {
		s.due.at(s.now+c.Back, event{what: back, to: c.At})
	}
}

// Durable returns what a process would come back with after a crash: the durable
// state that Compact put in the place of records, nil if it never did, and the
// records since.
func (s *Sim) Durable(id parley.ID) (state []byte, log []parley.Record) {
	return s.procs[id].state, s.procs[id].log
}

// restart begins a new incarnation of a process: its durable state is loaded
// before Start, which finds the records since in its log.
func (s *Sim) restart(id parley.ID) {
	p := &s.procs[id]
	p.down = false
	p.seat.Machine = s.opt.Protocol.New(id)
	state, records := s.Durable(id)
	if len(state) > 0 && !parley.LoadDurable(p.seat.Machine, s.now, state) {
		panic("sim: a machine does not load the durable state it saved")
	}
	s.History.Restarts = append(s.History.Restarts, s.happening(id, id, 0, parley.Msg{}))
	s.trace(trace.Event{Op: trace.Restart, At: id})
	s.step.Restart, s.step.Log = true, records
	s.do(id, 0, func(m parley.Machine) { m.Start(&s.step) })
	s.step.Restart, s.step.Log = false, nil
}
