package mux

import (
	"parley"
	"parley/lockstep"
)

// slot is one instance, or what is known of one that has not begun or is over.
type slot struct {
	begin     parley.Tick        // when round 0 began; before that, when the slot was requested
	instance  *lockstep.Instance // nil: no frame yet, or over
	delivered []parley.Effect    // deliveries, kept until all earlier slots are over
	beganBy   []bool             // by process: it was heard to begin the slot, by one that rejoins
	ownOnly   bool               // requested by this process only, which delays it
	missed    bool               // this process was late in it, or heard too few
}

// ring holds the slots of which anything is known.
type ring struct {
	window    uint64
	over      uint64               // all slots up to this one are over
	opened    uint64               // all slots up to this one have begun
	requested uint64               // slots up to this one begin as soon as they may; 0: none is requested
	slots     []slot               // by number: from opened-window+1 to opened+window
	n         int                  // number of processes
	spare     []*lockstep.Instance // scratch
}

func newRing(window, n int) ring {
	return ring{window: uint64(window), slots: make([]slot, 2*window), n: n}
}

// Opened returns the last slot that has begun.
func (l *ring) Opened() uint64 { return l.opened }

// Done returns the last slot up to which all slots are over.
func (l *ring) Done() uint64 { return l.over }

func (l *ring) slot(k uint64) *slot { return &l.slots[k%uint64(len(l.slots))] }

// reset resets the ring: slots up to k are over, and all slots of the ring began at began, long ago.
func (l *ring) reset(k uint64, began parley.Tick) {
	for i := range l.slots {
		r := &l.slots[i]
		l.vacate(r)
		clear(r.beganBy)
		r.begin = began
	}
	l.over, l.opened, l.requested = k, k, 0
}

// vacate empties a slot but keeps its memory.
func (l *ring) vacate(r *slot) {
	if r.instance != nil {
		l.spare = append(l.spare, r.instance)
	}
	clear(r.delivered)
	*r = slot{begin: r.begin, delivered: r.delivered[:0], beganBy: r.beganBy}
}

// skipTo records that slots up to k have begun without this process. A slot that it heard
// fewer than enough processes begin counts as begun long ago, at began.
func (l *ring) skipTo(k uint64, enough int, began parley.Tick) {
	if k > l.opened+l.window {
		l.reset(k, began)
		return
	}
	for ; l.opened < k; l.opened++ {
		r := l.slot(l.opened + 1)
		if l.vacate(r); r.beganCount() < enough {
			r.begin = began
		}
		next := l.slot(l.opened + 1 + l.window)
		l.vacate(next)
		clear(next.beganBy)
	}
	l.over = k
}

// beganCount returns how many processes were heard to begin the slot.
func (r *slot) beganCount() (sum int) {
	for _, yes := range r.beganBy {
		if yes {
			sum++
		}
	}
	return sum
}

// recordBeginning records that a process begins slot k while this one listens. The slot begins when
// enough processes have. If it began before this process listened, fewer may be heard.
func (l *ring) recordBeginning(now parley.Tick, from parley.ID, k uint64, enough int) {
	if k+l.window <= l.opened || k > l.opened+l.window {
		return
	}
	r := l.slot(k)
	if r.beganBy == nil {
		r.beganBy = make([]bool, l.n)
	}
	if !r.beganBy[from] {
		if r.beganBy[from] = true; r.beganCount() == enough {
			r.begin = now
		}
	}
}

// alarm is the one timer for all slots: it is set for the earliest time at which
// anything is due.
type alarm struct {
	due parley.Tick // never: the timer is not set
}

const never parley.Tick = 1 << 62

// wake sets the timer, unless it expires earlier anyway.
func (l *alarm) wake(s *parley.Step, at parley.Tick) {
	if at < l.due {
		l.due = at
		s.SetTimer(0, at-s.Now)
	}
}

func (l *alarm) state(v *parley.Vars) {
	set := l.due < never
	v.Bool("timer", &set)
	if set {
		v.Time("alarm", &l.due)
	} else {
		l.due = never
	}
}
