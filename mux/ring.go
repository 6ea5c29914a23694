package mux

import (
	"parley"
	"parley/lockstep"
)

// slot is one instance, or what is known of one that has not begun, or is over.
type slot struct {
	begin parley.Tick        // of round 0; before that, since when it is wanted
	one   *lockstep.Instance // nil: nothing came yet, or it is over
	out   []parley.Effect    // what it delivered before an earlier one was over
	sizes []int              // by process: of its frame of round 0
	came  []bool             // by process: it was heard to begin it, by one who comes back
	own   bool               // wanted by this process alone, which waits with it
	apart bool               // this process was late in it, or heard too few
}

// ring are the slots of which anything is known.
type ring struct {
	window uint64
	over   uint64 // all slots up to here are over
	opened uint64 // and up to here they have begun
	wanted uint64 // and up to here they are to begin when they may; 0: none is
	slots  []slot // by number: from opened-window+1 to opened+window
	quota
	spare []*lockstep.Instance // scratch
}

func newRing(window, n int) ring {
	return ring{window: uint64(window), slots: make([]slot, 2*window), quota: quota{held: make([]int, n)}}
}

// Opened is the last slot that has begun, and Done the last one of those that are over
// with all before them.
func (l *ring) Opened() uint64 { return l.opened }

// Done is the last slot up to which all are over.
func (l *ring) Done() uint64 { return l.over }

func (l *ring) slot(k uint64) *slot { return &l.slots[k%uint64(len(l.slots))] }

// place goes to where slots up to k are over, and began long ago, at such a time.
func (l *ring) place(k uint64, began parley.Tick) {
	for i := range l.slots {
		r := &l.slots[i]
		l.vacate(r)
		clear(r.came)
		r.begin = began
	}
	l.over, l.opened, l.wanted = k, k, 0
}

// vacate leaves nothing in a place but its memory.
func (l *ring) vacate(r *slot) {
	if r.one != nil {
		l.spare = append(l.spare, r.one)
	}
	l.letGo(r)
	clear(r.out)
	*r = slot{begin: r.begin, out: r.out[:0], sizes: r.sizes, came: r.came}
}

// advance notes that slots up to k have begun without this process. Those that fewer than
// enough were heard to begin did so long ago, at such a time.
func (l *ring) advance(k uint64, enough int, began parley.Tick) {
	if k > l.opened+l.window {
		l.place(k, began)
		return
	}
	for ; l.opened < k; l.opened++ {
		r := l.slot(l.opened + 1)
		if l.vacate(r); r.count() < enough {
			r.begin = began
		}
		next := l.slot(l.opened + 1 + l.window)
		l.vacate(next)
		clear(next.came)
	}
	l.over = k
}

// count is how many processes were heard to begin a slot.
func (r *slot) count() (sum int) {
	for _, yes := range r.came {
		if yes {
			sum++
		}
	}
	return sum
}

// note notes that a process begins slot k, while this one listens. The slot's beginning is
// when enough have. Of one that began before it listened fewer may be heard.
func (l *ring) note(now parley.Tick, from parley.ID, k uint64, enough int) {
	if k+l.window <= l.opened || k > l.opened+l.window {
		return
	}
	r := l.slot(k)
	if r.came == nil {
		r.came = make([]bool, len(l.held))
	}
	if !r.came[from] {
		if r.came[from] = true; r.count() == enough {
			r.begin = now
		}
	}
}

// quota is how much is kept of each process.
type quota struct {
	held  []int // by process: bytes of its frames of round 0 in slots that are not over
	limit int   // of them; 0: as many as there are
}

// Bound limits how many bytes are kept of the frames that one process sends in rounds 0, over
// all slots that are not over; what is beyond that is refused as it comes. A correct process
// must never have as many under way: a slot is over everywhere before window more of them
// can have begun, and at the latest a round after it should be.
func (l *quota) Bound(bytes int) { l.limit = bytes }

// keeps tells whether there is room for what a process's frame of round 0 has in a slot, and counts it.
func (l *quota) keeps(r *slot, from parley.ID, size int) bool {
	if l.limit == 0 {
		return true
	}
	sizes := l.sizes(r)
	if sizes[from] > 0 {
		return true // a second one, of which nothing is kept
	}
	if l.held[from]+size > l.limit {
		return false
	}
	sizes[from] = size
	l.held[from] += size
	return true
}

// sizes are the sizes of frames in a slot.
func (l *quota) sizes(r *slot) []int {
	if r.sizes == nil {
		r.sizes = make([]int, len(l.held))
	}
	return r.sizes
}

// letGo is for a slot that is over.
func (l *quota) letGo(r *slot) {
	for id, size := range r.sizes {
		l.held[id] -= size
		r.sizes[id] = 0
	}
}

// alarm is the one timer that does for all slots: it is set for the earliest time that
// anything was due when it was set.
type alarm struct {
	timer parley.Timer
	due   parley.Tick // never: it is not set
}

const never parley.Tick = 1 << 62

// Timer sets the number of the pipeline's timer, by default 0, where a machine has several.
func (l *alarm) Timer(t parley.Timer) { l.timer = t }

// wake sets the timer, if it is not to run out earlier anyway.
func (l *alarm) wake(s *parley.Step, at parley.Tick) {
	if at < l.due {
		l.due = at
		s.SetTimer(l.timer, at-s.Now)
	}
}

// Behind is how late this process is, at a time, with what was due first.
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
