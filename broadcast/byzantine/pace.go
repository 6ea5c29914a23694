package byzantine

import (
	"parley"
	"parley/lockstep"
)

// pace is how fast one process puts its requests into slots. While a process is silent rounds
// end by the clock, however busy all are, until they are too late and nothing is agreed on;
// more requests only make it worse. So no more bytes may be in slots that go on than a window
// of them, which grows as long as this process is in time and halves when it is late; and they
// are spread over the time that a slot takes, for those that begin together end together, and
// then there is too much to do at once. Only what this process does late itself counts: of how
// long slots take liars have a say.
type pace struct {
	window int         // bytes
	share  int         // by which part of a slot that was in time it grows
	onWay  int         // bytes of own slots that go on
	took   parley.Tick // how long the last own one did
	last   parley.Tick // when one began last
	size   int         // its bytes; 0: none has
	held   bool        // the next one had to wait
	late   parley.Tick // how much this process was, at most, since an own slot was over
	halved parley.Tick // when the window was, if it was
}

// The window, in batches: at first, and at most.
const (
	firstWindow = 8
	mostWindow  = 64
)

// The window grows by a quarter in the time that a slot takes, until it was halved: then it is
// near what there is room for, and grows half as fast.
const (
	growth     = 4
	lateGrowth = 2 * growth
)

// newPace is for a process that begins an era, of slots that take so long.
func newPace(slot parley.Tick, batch int) pace {
	return pace{window: firstWindow * batch, share: growth, took: slot}
}

// next is when the next own slot may begin.
func (p *pace) next() parley.Tick {
	return p.last + p.took*parley.Tick(p.size)/parley.Tick(p.window)
}

// holds tells whether the next own slot has to wait.
func (p *pace) holds(now parley.Tick) bool {
	return p.full() || p.size > 0 && now < p.next()
}

// full tells whether as much goes on as may.
func (p *pace) full() bool { return p.onWay >= p.window }

// begun is for an own slot that begins.
func (p *pace) begun(now parley.Tick, size int) (held bool) {
	held = p.held
	p.held, p.last, p.size = false, now, size
	p.onWay += size
	return held
}

// over is for an own slot that is over, and tells whether what this process said counts. If not
// it came too late for the others.
func (p *pace) over(now parley.Tick, own *part, counts bool, when lockstep.Schedule, batch int) {
	p.onWay -= own.size
	p.took = now - own.begun
	late := !counts || when.Late(4*p.late) // with four times as much it abstains
	p.late = 0
	switch {
	case late && (own.held || !counts):
		p.halve(now, own.begun, batch)
	case !late && own.held: // else there was room: it says nothing of the window
		p.window = min(p.window+own.size/p.share, mostWindow*batch)
	}
}

// halve is for a slot that began at a time: one that began before the window was halved says
// nothing of what it is now.
func (p *pace) halve(now, begun parley.Tick, batch int) {
	if p.share == growth || begun >= p.halved {
		p.window, p.share, p.halved = max(p.window/2, batch), lateGrowth, now
	}
}

// again is for requests that are all to be put into slots once more: those that they are in may
// go on, so they wait as long as one takes.
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
