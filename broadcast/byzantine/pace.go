package byzantine

import (
	"parley"
	"parley/lockstep"
)

// pace limits how fast one process puts its requests into slots. While a process is silent, rounds end by the
// clock, however busy all processes are, until they are too late and nothing is agreed on; more requests only
// make it worse. So the bytes in running slots are at most a window, which grows as long as this process is
// in time and halves when it is late; and they are spread over the time that a slot takes, because slots that
// begin together end together, and then there is too much work at once. Only this process's own lateness
// counts: liars can influence how long slots take.
type pace struct {
	window int         // bytes
	share  int         // the reciprocal of the part of a slot's bytes by which the window grows
	onWay  int         // bytes of own running slots
	took   parley.Tick // duration of the last own slot
	last   parley.Tick // when the last own slot began
	size   int         // its bytes; 0: there was none
	held   bool        // the next one had to wait
	late   parley.Tick // the maximum lateness of this process since the end of an own slot
	halved parley.Tick // when the window was halved, if it was
}

// The window, in batches: initial, and maximum.
const (
	firstWindow = 8
	mostWindow  = 64
)

// The window grows by a quarter in the time that a slot takes, until it is halved for the first time: then it
// is near its limit, and grows half as fast.
const (
	growth     = 4
	lateGrowth = 2 * growth
)

// newPace returns the pace at the beginning of an era, whose slots have the given duration.
func newPace(slot parley.Tick, batch int) pace {
	return pace{window: firstWindow * batch, share: growth, took: slot}
}

// next returns when the next own slot may begin.
func (p *pace) next() parley.Tick {
	return p.last + p.took*parley.Tick(p.size)/parley.Tick(p.window)
}

// holds reports whether the next own slot must wait.
func (p *pace) holds(now parley.Tick) bool {
	return p.full() || p.size > 0 && now < p.next()
}

// full reports whether the window is used up.
func (p *pace) full() bool { return p.onWay >= p.window }

// begun records the beginning of an own slot, and reports whether it had to wait.
func (p *pace) begun(now parley.Tick, size int) (held bool) {
	held = p.held
	p.held, p.last, p.size = false, now, size
	p.onWay += size
	return held
}

// over records the end of an own slot. counts is whether the others counted this process's batch; if not, it
// arrived too late for them.
func (p *pace) over(now parley.Tick, own *part, counts bool, when lockstep.Schedule, batch int) {
	p.onWay -= own.size
	p.took = now - own.begun
	late := !counts || when.Late(4*p.late) // with four times this lateness it abstains
	p.late = 0
	switch {
	case late && (own.held || !counts):
		p.halve(now, own.begun, batch)
	case !late && own.held: // otherwise there was room, which shows nothing about the window
		p.window = min(p.window+own.size/p.share, mostWindow*batch)
	}
}

// halve halves the window because of a slot that began at a time: a slot that began before the last halving
// shows nothing about the present window.
func (p *pace) halve(now, begun parley.Tick, batch int) {
	if p.share == growth || begun >= p.halved {
		p.window, p.share, p.halved = max(p.window/2, batch), lateGrowth, now
	}
}

// again resets the pace when all requests must be proposed again: the slots that they are in may still run,
// so they wait for the duration of one.
func (p *pace) again(now parley.Tick) {
	p.onWay, p.last, p.size = 0, now, p.window
}

func (p *pace) state(v *parley.Vars) {
	parley.Num(v, "window", &p.window)
	parley.Num(v, "share", &p.share)
	parley.Num(v, "unfinished", &p.onWay)
	parley.Num(v, "took", &p.took)
	parley.Num(v, "late", &p.late)
	parley.Num(v, "last size", &p.size)
	if p.size > 0 {
		v.Time("last slot", &p.last)
	}
	v.Bool("held", &p.held)
	if p.share != growth {
		v.Time("halved", &p.halved)
	}
	if p.window < 1 || p.share < 1 {
		p.window, p.share = 1, growth
		v.Fail()
	}
}
