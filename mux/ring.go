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
	sizes     []int              // by process: of its frame of round 0
	beganBy   []bool             // by process: it was heard to begin the slot, by one that rejoins
	ownOnly   bool               // requested by this process only, which delays it
	missed    bool               // this process was late in it, or heard too few
}

// ring holds the slots of which anything is known.
type ring struct {
	window    uint64
	over      uint64 // all slots up to this one are over
	opened    uint64 // all slots up to this one have begun
	requested uint64 // slots up to this one begin as soon as they may; 0: none is requested
	slots     []slot // by number: from opened-window+1 to opened+window
	quota
	spare []*lockstep.Instance // scratch
}

func newRing(window, n int) ring {
	return ring{window: uint64(window), slots: make([]slot, 2*window), quota: quota{heldBytes: make([]int, n)}}
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
	l.releaseQuota(r)
	clear(r.delivered)
	*r = slot{begin: r.begin, delivered: r.delivered[:0], sizes: r.sizes, beganBy: r.beganBy}
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
		r.beganBy = make([]bool, len(l.heldBytes))
	}
	if !r.beganBy[from] {
		if r.beganBy[from] = true; r.beganCount() == enough {
			r.begin = now
		}
	}
}

// quota limits how much is kept of each process.
type quota struct {
	heldBytes []int // by process: bytes of its frames of round 0 in slots that are not over
	limit     int   // of held; 0: no limit
}

// Bound limits the bytes of frames of round 0 that are kept from one process, in all unfinished slots
// together. Frames beyond the limit are refused, so a correct process must never have that many bytes in
// flight. A slot counts until it is over everywhere. That is before window more slots can have begun, and at
// the latest a round after its end.
func (l *quota) Bound(bytes int) { l.limit = bytes }

// admit reports whether there is room for a process's frame of round 0 in a slot, and counts it.
func (l *quota) admit(r *slot, from parley.ID, size int) bool {
	if l.limit == 0 {
		return true
	}
	sizes := l.sizes(r)
	if sizes[from] > 0 {
		return true // a second frame, of which nothing is kept
	}
	if l.heldBytes[from]+size > l.limit {
		return false
	}
	sizes[from] = size
	l.heldBytes[from] += size
	return true
}

func (l *quota) sizes(r *slot) []int {
	if r.sizes == nil {
		r.sizes = make([]int, len(l.heldBytes))
	}
	return r.sizes
}

// releaseQuota releases the quota of a slot that is over.
func (l *quota) releaseQuota(r *slot) {
	for id, size := range r.sizes {
		l.heldBytes[id] -= size
		r.sizes[id] = 0
	}
}

// alarm is the one timer for all slots: it is set for the earliest time at which
// anything is due.
type alarm struct {
	timer parley.Timer
	due   parley.Tick // never: the timer is not set
}

const never parley.Tick = 1 << 62

// Timer sets the number of the pipeline's timer, for machines with several. The default is 0.
func (l *alarm) Timer(t parley.Timer) { l.timer = t }

// wake sets the timer, unless it expires earlier anyway.
func (l *alarm) wake(s *parley.Step, at parley.Tick) {
	if at < l.due {
		l.due = at
		s.SetTimer(l.timer, at-s.Now)
	}
}

// Behind returns how late this process is, at time now, with its earliest due event.
func (l *alarm) Behind(now parley.Tick) parley.Tick { return max(0, now-l.due) }

func (l *alarm) state(v *parley.Vars) {
	set := l.due < never
	v.Bool("timer", &set)
	if set {
		v.Time("alarm", &l.due)
	} else {
		l.due = never
	}
}
