package host

import (
	"fmt"
	"slices"

	"parley"
	"parley/trace"
)

// carry carries out what a step asked for: what is to be made durable first, then the
// rest, at once if nothing has to wait for the disk. The lock is held.
func (p *Process) carry() {
	effects := p.step.Effects
	parley.DurableFirst(effects)
	if p.o.Crash != nil {
		effects = p.cut(effects)
		defer p.die()
	}
	if p.book != nil {
		p.append(effects)
		if p.durable < p.wanted || len(p.outbox) > 0 {
			for i := range effects {
				if op := effects[i].Op; op != parley.OpAppend && op != parley.OpCompact {
					p.outbox = append(p.outbox, held{effects[i], p.wanted, p.step.Now})
				}
			}
			return
		}
	}
	for i := range effects {
		p.perform(&effects[i], p.step.Now)
	}
}

// mostSaved is the largest buffer for a state that is kept for the next one.
const mostSaved = 12 << 20

// append hands what the step appended to the store: the records, and then the state
// after the step if that is to replace them.
func (p *Process) append(effects []parley.Effect) {
	compact := false
	for i := range effects {
		switch e := &effects[i]; e.Op {
		case parley.OpAppend:
			p.wanted = p.book.Append(parley.Record{Path: e.Path, Body: e.Msg.Body})
			p.note(trace.Event{Op: trace.Append, Path: e.Path, Msg: e.Msg})
		case parley.OpCompact:
			compact = true
		}
	}
	if compact {
		p.saved = parley.SaveDurable(p.m, p.step.Now, p.saved[:0])
		if p.wanted = p.book.Replace(p.saved); cap(p.saved) > mostSaved {
			p.saved = nil
		}
	}
}

// release carries out what waited for the disk.
func (p *Process) release(upto uint64) {
	p.mu.Lock()
	defer p.unlock()
	defer p.guard()
	p.durable = max(p.durable, upto)
	p.step.Now = p.clock.Now()
	done := 0
	for done < len(p.outbox) && p.outbox[done].after <= p.durable && (!p.stopped || p.dying) {
		p.perform(&p.outbox[done].Effect, p.outbox[done].now)
		done++
	}
	p.outbox = slices.Delete(p.outbox, 0, done)
	p.die()
}

// perform carries out one effect, which a step asked for at the time now.
func (p *Process) perform(e *parley.Effect, now parley.Tick) {
	switch e.Op {
	case parley.OpSend:
		p.send(e)
	case parley.OpDeliver:
		p.note(trace.Event{Op: trace.Deliver, Peer: e.To, Path: e.Path, Msg: e.Msg})
		p.told = true
		if p.o.Upper != nil {
			p.o.Upper.Deliver(e.To, e.Path, e.Msg)
		}
	case parley.OpIndicate:
		p.note(trace.Event{Op: trace.Indicate, Path: e.Path, Msg: e.Msg})
		p.told = true
		if p.o.Upper != nil {
			p.o.Upper.Indicate(e.Path, e.Msg)
		}
	case parley.OpSetTimer:
		// Its time counts from the step that asked for it, however long the disk took since.
		p.timers.put(timerName{e.Path, e.Timer}, now+e.After)
		p.wake()
	case parley.OpStopTimer:
		p.timers.remove(timerName{e.Path, e.Timer})
	case parley.OpKeep:
		p.note(trace.Event{Op: trace.Keep, Peer: e.From, Epoch: e.Epoch, Path: e.Path, Msg: e.Msg})
	case parley.OpAppend, parley.OpCompact: // there is no store
		if e.Op == parley.OpAppend {
			p.note(trace.Event{Op: trace.Append, Path: e.Path, Msg: e.Msg})
		}
	case parley.OpBroadcast:
		if p.o.Beneath == nil {
			panic("it broadcasts, and there is nothing beneath that serves")
		}
		p.o.Beneath(e.Msg)
	default:
		panic(fmt.Sprintf("it asks a layer beneath, and there is none that serves (effect %d)", e.Op))
	}
}

// send puts a message into the buffers of the links.
func (p *Process) send(e *parley.Effect) {
	if e.Msg.Kind >= parley.Local {
		panic(fmt.Sprintf("it sends local kind %#x", e.Msg.Kind))
	}
	p.note(trace.Event{Op: trace.Send, Peer: e.To, Epoch: e.Epoch, Path: e.Path, Msg: e.Msg})
	p.head = parley.EncodeHead(p.head[:0], parley.Env{Epoch: e.Epoch, Path: e.Path}, e.Msg)
	if e.To != parley.All {
		p.sendTo(e.To, e.Msg.Body)
		return
	}
	for to := range parley.ID(p.step.N) {
		if to != p.step.Self {
			p.sendTo(to, e.Msg.Body)
		}
	}
}

func (p *Process) sendTo(to parley.ID, body []byte) {
	h := p.h
	if h.c.Transport.Send(to, p.o.Class, p.o.Channel, p.head, body) && !h.dirty[to].Load() {
		h.dirty[to].Store(true)
	}
}
