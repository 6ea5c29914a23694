package host

import (
	"fmt"
	"slices"

	"parley"
)

// carry carries out the effects of a step: first those that must become durable, then the rest, immediately
// if nothing must wait for the disk. The caller holds the lock.
func (p *Process) carry() {
	effects := p.step.Effects
	parley.DurableFirst(effects)
	if p.crashPlan.Crash != nil {
		effects = p.crashPlan.cut(effects, p.step.N, p.step.Now)
		p.stopped = p.stopped || p.crashPlan.crashing
		defer func() { p.crashPlan.die(p.outbox.empty()) }()
	}
	if p.outbox.book != nil {
		for i := range effects {
			if e := &effects[i]; e.Op == parley.OpAppend {
				p.noteEffect(e)
			}
		}
		p.outbox.append(effects, p.m, p.step.Now)
		if !p.outbox.empty() {
			p.outbox.hold(effects, p.step.Now)
			return
		}
	}
	for i := range effects {
		p.perform(&effects[i], p.step.Now)
	}
}

// release carries out the effects that waited for the disk.
func (p *Process) release(upto uint64) {
	p.mu.Lock()
	defer p.unlock()
	defer p.guard()
	p.step.Now = p.clock.Now()
	done, free := 0, p.outbox.reached(upto)
	for done < len(free) && (!p.stopped || p.crashPlan.crashing) {
		p.perform(&free[done].Effect, free[done].now)
		done++
	}
	p.outbox.list = slices.Delete(p.outbox.list, 0, done)
	p.crashPlan.die(p.outbox.empty())
}

// perform carries out one effect of a step at time now.
func (p *Process) perform(e *parley.Effect, now parley.Tick) {
	switch e.Op {
	case parley.OpSend:
		p.send(e)
	case parley.OpDeliver:
		p.noteEffect(e)
		p.notified = true
		if p.o.Upper != nil {
			p.o.Upper.Deliver(e.To, e.Path, e.Msg)
		}
	case parley.OpIndicate:
		p.noteEffect(e)
		p.notified = true
		if p.o.Upper != nil {
			p.o.Upper.Indicate(e.Path, e.Msg)
		}
	case parley.OpSetTimer:
		// A timer counts from its step, however long the disk took since then.
		p.timers.put(timerName{e.Path, e.Timer}, now+e.After)
		p.wake()
	case parley.OpStopTimer:
		p.timers.remove(timerName{e.Path, e.Timer})
	case parley.OpKeep, parley.OpAppend, parley.OpCompact: // without a store, nothing becomes durable
		p.noteEffect(e)
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
	p.noteEffect(e)
	p.head = parley.EncodeHead(p.head[:0], parley.Env{Epoch: e.Epoch, Path: e.Path}, e.Msg)
	if e.To != parley.All {
		p.h.send(e.To, &p.o, p.head, e.Msg.Body)
		return
	}
	for to := range parley.ID(p.step.N) {
		if to != p.step.Self {
			p.h.send(to, &p.o, p.head, e.Msg.Body)
		}
	}
}
