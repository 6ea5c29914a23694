package sim

import (
	"fmt"

	"parley"
	"parley/trace"
)

// carry carries out the effects of the step that process id has just made. Records come first: nothing leaves
// a process before they are durable.
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

func (s *Sim) perform(at parley.ID, effects []parley.Effect) {
	for i := range effects {
		e, id := &effects[i], uint64(0)
		if s.opt.Log != nil {
			if event, traced := trace.OfEffect(e); traced {
				id = s.trace(event)
			}
		}
		switch e.Op {
		case parley.OpSend:
			s.send(e, id)
		case parley.OpKeep:
			if s.opt.Measure && !s.faulty.Has(e.From) {
				s.Stats.measure(&s.opt.Protocol, e, 1)
			}
		case parley.OpDeliver:
			s.seen(trace.Deliver, parley.ExternalEvent{At: e.From, From: e.To, Path: e.Path, Msg: e.Msg})
		case parley.OpIndicate:
			if e.Msg.Kind == parley.Suspect {
				s.Stats.suspicion(!s.faulty.Has(e.From) && s.serves(e.Msg.Origin))
			}
			s.seen(trace.Indicate, parley.ExternalEvent{At: e.From, From: e.From, Path: e.Path, Msg: e.Msg})
		case parley.OpSetTimer:
			s.armed++
			when := s.procs[e.From].arm(e, s.armed, s.now, s.skewed)
			s.due.at(when, event{what: expiry, to: e.From, ref: s.armed})
		case parley.OpStopTimer:
			s.procs[e.From].disarm(e.Path, e.Timer)
		case parley.OpAppend:
			p := &s.procs[e.From]
			p.log = append(p.log, parley.Record{Path: e.Path, Body: e.Msg.Body})
		case parley.OpCompact:
			p := &s.procs[at]
			p.state, p.log = parley.SaveDurable(p.seat.Machine, s.Clock(at), nil), p.log[:0]
		default:
			panic(fmt.Sprintf("sim: process %d asks a layer beneath, and there is none that serves", at))
		}
	}
}

// send puts a message on its links. id is the number of its Send event in the trace.
func (s *Sim) send(e *parley.Effect, id uint64) {
	if e.Msg.Kind >= parley.Local {
		panic(fmt.Sprintf("sim: process %d sends local kind %#x", e.From, e.Msg.Kind))
	}
	all := e.To == parley.All
	receivers := 1
	if all {
		receivers = len(s.procs) - 1
	}
	s.Stats.Sends += uint64(receivers)
	if s.opt.Measure && !s.faulty.Has(e.From) {
		s.Stats.measure(&s.opt.Protocol, e, receivers)
	}
	ref := s.wire.put(storedMessage{path: e.Path, epoch: e.Epoch, msg: e.Msg, id: id, refs: 1})
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
	s.wire.drop(ref) // release the sender's reference
}

// link decides whether, when, and how often a message arrives at one receiver.
func (s *Sim) link(from, to parley.ID, ref int32) {
	rule := Link{Delay: s.opt.Delay, Loss: s.opt.Loss, Twice: s.opt.Twice}
	if s.ruled {
		rule = s.weather.Rule(from, to, s.now)
	}
	var lost *uint64
	switch {
	case s.ruled && !s.weather.Edge(from, to):
		lost = &s.Stats.NoEdge
	case s.ruled && rule.Loss >= 1:
		lost = &s.Stats.Cut
	case rule.Loss > 0 && s.delays.Float64() < rule.Loss:
		lost = &s.Stats.Lost
	}
	w := &s.wire.slots[ref]
	if lost != nil {
		*lost++
		s.trace(trace.Event{Op: trace.Lose, At: to, Peer: from, Cause: w.id, Epoch: w.epoch, Path: w.path, Msg: w.msg})
		return
	}
	copies := 1
	if rule.Twice > 0 && s.delays.Float64() < rule.Twice {
		copies = 2
		s.Stats.Doubled++
	}
	last := s.latest(from, to)
	before := *last
	for range copies {
		at := s.arrival(s.now, rule.Delay, s.procs[from].rushing, before)
		if at-s.now > s.opt.Promised.Delay {
			s.Stats.Late++
		}
		if at < before {
			s.Stats.Overtaken++
		}
		w.refs++
		s.due.at(at, event{what: arrival, to: to, from: from, ref: ref})
		*last = max(*last, at)
	}
}
