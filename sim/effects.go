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
	parley.DurableFirst(effects)
	for i, c := range s.opt.Crashes {
		doomed := p.doom == int32(i+1) && (len(effects) > 0 || c.When == 0 && c.Effects == 0)
		if c.At == id && c.Step == p.steps || doomed {
			effects = parley.Singly(effects, len(s.procs))
			s.perform(id, effects[:min(c.Effects, len(effects))])
			s.crash(c)
			return
		}
	}
	s.perform(id, effects)
}

func (s *Sim) perform(id parley.ID, effects []parley.Effect) {
	for i := range effects {
		e := &effects[i]
		switch e.Op {
		case parley.OpSend:
			s.send(e)
		case parley.OpKeep:
			s.measure(e, 1)
			s.trace(trace.Event{Op: trace.Keep, At: e.From, Peer: e.From, Epoch: e.Epoch, Path: e.Path, Msg: e.Msg})
		case parley.OpDeliver:
			s.seen(trace.Deliver, parley.Happening{At: e.From, From: e.To, Path: e.Path, Msg: e.Msg})
			s.trace(trace.Event{Op: trace.Deliver, At: e.From, Peer: e.To, Path: e.Path, Msg: e.Msg})
		case parley.OpIndicate:
			if e.Msg.Kind == parley.Suspect {
				s.suspected(e.From, e.Msg.Origin)
			}
			s.seen(trace.Indicate, parley.Happening{At: e.From, From: e.From, Path: e.Path, Msg: e.Msg})
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
			p.state, p.log = parley.SaveDurable(p.seat.Machine, s.Clock(id), nil), p.log[:0]
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
	cause := s.trace(trace.Event{Op: trace.Send, At: e.From, Peer: e.To, Epoch: e.Epoch, Path: e.Path, Msg: e.Msg})
	ref := s.wire.put(stored{path: e.Path, epoch: e.Epoch, msg: e.Msg, id: cause, refs: 1})
	if all && s.broadcast {
		if s.opt.Delay.Least > s.opt.Promised.Delay {
			s.Stats.Late += uint64(receivers)
		}
		s.due.at(after(s.now, s.opt.Delay.Least), event{what: arrival, to: parley.All, from: e.From, ref: ref})
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
