package byzantine

import (
	"parley"
	"parley/lockstep"
)

// pace is how fast one process puts its requests into slots. Nothing else holds it back when it
// is asked for more than processors can do: with a silent process rounds end by the clock,
// however busy all are, until they are too late and nothing is agreed on. So no more bytes may
// be in slots that are not over than a window of them, which grows as long as slots end in time
// and halves when one does not; and they are spread over the time that a slot takes, for those
// that begin together end together, and then there is too much to do at once.
type pace struct {
	window int         // bytes
	under  int         // bytes of own slots that are not over
	took   parley.Tick // how long the last own slot did
	last   parley.Tick // when one began last
	size   int         // its bytes
	held   bool        // one had to wait since
	halved parley.Tick // when the window was
}

// The window, in batches: at first, and at most.
const (
	firstWindow = 8
	mostWindow  = 64
)

// next is when the next own slot may begin.
func (p *pace) next() parley.Tick {
	return p.last + p.took*parley.Tick(p.size)/parley.Tick(p.window)
}

// holds tells whether the next own slot has to wait.
func (p *pace) holds(now parley.Tick) bool {
	waits := p.under >= p.window || now < p.next()
	p.held = p.held || waits
	return waits
}

// begun is for an own slot that begins. It tells whether the pace held it back.
func (p *pace) begun(now parley.Tick, size int) (held bool) {
	held = p.held
	p.held, p.last, p.size = false, now, size
	p.under += size
	return held
}

// over is for an own slot that is over. It was in time if it ended soon after it began, or after
// the end of the last round that had to be waited for.
func (p *pace) over(now parley.Tick, own *part, when lockstep.Schedule, batch int) {
	p.took = now - own.begun
	late := p.took >= when.Delta/8
	if p.took >= when.Delta {
		late = when.Late(4 * (p.took % when.Delta))
	}
	switch {
	case !own.held: // there was room: this says nothing of the window
	case !late:
		more := own.size / 4
		if p.halved > 0 { // it is near what there is room for
			more /= 4
		}
		p.window = min(p.window+more, mostWindow*batch)
	case own.begun >= p.halved: // nor does one that began before
		p.window, p.halved = max(p.window/2, batch), now
	}
}

func (p *pace) state(v *parley.Vars) {
	parley.Num(v, "window", &p.window)
	parley.Num(v, "unfinished", &p.under)
	parley.Num(v, "took", &p.took)
	v.Time("last slot", &p.last)
	parley.Num(v, "its size", &p.size)
	v.Bool("held", &p.held)
	v.Time("halved", &p.halved)
}
