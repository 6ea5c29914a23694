package host

import (
	"container/heap"
	"time"

	"parley"
	"parley/trace"
)

// timerName identifies a timer of a machine.
type timerName struct {
	path  parley.Path
	timer parley.Timer
}

// timer is a timer that is set, with the time at which it expires.
type timer struct {
	timerName
	due   parley.Tick
	order uint64 // of timers due at the same time, the one set first expires first
	at    int    // in the heap
}

// timers are the timers of one machine, the next one first.
type timers struct {
	list  []*timer
	named map[timerName]*timer
	free  []*timer
	set   uint64
}

func (t *timers) Len() int { return len(t.list) }

func (t *timers) Less(i, j int) bool {
	a, b := t.list[i], t.list[j]
	return a.due < b.due || a.due == b.due && a.order < b.order
}

func (t *timers) Swap(i, j int) {
	t.list[i], t.list[j] = t.list[j], t.list[i]
	t.list[i].at, t.list[j].at = i, j
}

// Push and Pop implement heap.Interface.
func (t *timers) Push(x any) {
	one := x.(*timer)
	one.at = len(t.list)
	t.list = append(t.list, one)
}

func (t *timers) Pop() any {
	last := len(t.list) - 1
	one := t.list[last]
	t.list[last], t.list = nil, t.list[:last]
	return one
}

// put sets or resets a timer.
func (t *timers) put(name timerName, due parley.Tick) {
	t.set++
	if one := t.named[name]; one != nil {
		one.due, one.order = due, t.set
		heap.Fix(t, one.at)
		return
	}
	if t.named == nil {
		t.named = make(map[timerName]*timer)
	}
	one := new(timer)
	if last := len(t.free) - 1; last >= 0 {
		one, t.free = t.free[last], t.free[:last]
	}
	*one = timer{timerName: name, due: due, order: t.set}
	t.named[name] = one
	heap.Push(t, one)
}

func (t *timers) remove(name timerName) {
	if one := t.named[name]; one != nil {
		delete(t.named, name)
		heap.Remove(t, one.at)
		t.free = append(t.free, one)
	}
}

// wake sets the alarm to the next timer's due time, unless the alarm already fires earlier: a timer that
// was set and canceled costs no alarm.
func (p *Process) wake() {
	if len(p.timers.list) == 0 || p.stopped {
		return
	}
	due := p.timers.list[0].due
	if p.pending && p.alarmAt <= due {
		return
	}
	p.pending, p.alarmAt = true, due
	wait := max(0, time.Duration(due-p.clock.Now()))
	if c, paced := p.clock.(Paced); paced {
		wait = c.Until(due)
	}
	if p.alarm == nil {
		p.alarm = time.AfterFunc(wait, p.fireTimers)
	} else {
		p.alarm.Reset(wait)
	}
	p.h.alarms.schedule(p, wait)
}

// fireTimers expires the timers that are due.
func (p *Process) fireTimers() {
	p.mu.Lock()
	p.pending = false
	for p.timeout() {
	}
	p.unlock()
	p.h.Flush()
}

// timeout expires the next timer if it is due, or sets the alarm to it, because the clock of a machine may
// run at another speed than the alarm's.
func (p *Process) timeout() bool {
	if p.stopped || len(p.timers.list) == 0 {
		return false
	}
	next := p.timers.list[0]
	if next.due > p.clock.Now() {
		p.wake()
		return false
	}
	if p.crashed() {
		return false
	}
	defer p.guard()
	name := next.timerName
	p.timers.remove(name)
	p.begin(name.path, 0)
	p.note(trace.Event{Op: trace.Timeout, Path: name.path, Msg: parley.Msg{Value: uint64(name.timer)}})
	p.m.Timeout(&p.step, name.timer)
	p.carry()
	return true
}
