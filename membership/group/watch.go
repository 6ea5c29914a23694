package group

import (
	"parley"
	"parley/membership/detector"
)

// suspicions are whom a member takes to have failed.
type suspicions struct {
	monitor detector.Monitor
	told    parley.Set // suspected on somebody else's word
	gone    parley.Set // members that have come back as other incarnations
}

// begin listens to the members of a view. Those of the view before have reported,
// which is as good as heartbeats in a row.
func (x *suspicions) begin(now parley.Tick, members parley.Set, again int) {
	x.monitor.Watch(now, members)
	for id := range x.monitor.Watched().All() {
		for range again {
			x.monitor.Heard(now, id)
		}
	}
	x.told, x.gone = parley.Set{}, parley.Set{}
}

// heard is upon anything that a member says in this view.
func (x *suspicions) heard(now parley.Tick, from parley.ID) {
	x.monitor.Heard(now, from)
	x.told.Remove(from)
}

// all returns the members that this one takes to have failed.
func (x *suspicions) all() parley.Set {
	return x.gone.Plus(x.told).Plus(x.monitor.Suspected())
}

// State visits every variable.
func (x *suspicions) State(v *parley.Vars) {
	v.Machine("monitor", &x.monitor)
	v.Set("told", &x.told)
	v.Set("gone", &x.gone)
}

// progress tells whether what ought to go on in a view does.
type progress struct {
	stuck   progressMark   // by its position: nothing is delivered while something waits
	unsent  []progressMark // by layer: the oldest message of its own is not finished
	looked  parley.Tick    // when that was looked at last
	blocked bool           // that has been so for too long
}

// progressMark is something that ought to change.
type progressMark struct {
	mark  uint64      // what it was when it was looked at last
	since parley.Tick // and has been since
}

func (w *progressMark) look(now parley.Tick, idle bool, mark uint64) {
	if idle || w.mark != mark {
		*w = progressMark{mark, now}
	}
}

// begin is upon a view.
func (x *progress) begin(now parley.Tick, position uint64) {
	x.stuck, x.looked, x.blocked = progressMark{position, now}, now, false
	for i := range x.unsent {
		x.unsent[i] = progressMark{0, now}
	}
}

// look looks whether anything is delivered while something waits for it, and
// whether what this member has sent goes on. A process that was paused knows nothing of
// the time that it missed.
func (x *progress) look(now parley.Tick, c *Config, frozen bool, l *layers, position uint64) {
	idle := frozen || now-x.looked > c.Detector.Period+c.Detector.Late
	x.stuck.look(now, idle || !l.waiting(), position)
	x.looked, x.blocked = now, now-x.stuck.since >= c.Wait
	for i, layer := range l.list {
		if own, ok := layer.(Sender); ok {
			oldest := own.Oldest()
			x.unsent[i].look(now, idle || oldest == 0, oldest)
			x.blocked = x.blocked || now-x.unsent[i].since >= c.Wait
		}
	}
}

// State visits every variable.
func (x *progress) State(v *parley.Vars) {
	visit := func(w *progressMark) {
		parley.Num(v, "mark", &w.mark)
		v.Time("since", &w.since)
	}
	visit(&x.stuck)
	for i := range x.unsent {
		visit(&x.unsent[i])
	}
	v.Time("looked", &x.looked)
	v.Bool("blocked", &x.blocked)
}

// tries are when a member asks for another view.
type tries struct {
	due   parley.Tick // the next one; 0 while nobody needs another view
	wait  parley.Tick // between this one and the one after
	tried bool        // since the need arose
	flush parley.Tick // until when to wait for the members that are not suspected
}

// turn tells whether it is the turn of the member of a rank: of the lowest that is not suspected
// at once, of the others if that does not help.
func (x *tries) turn(now parley.Tick, c *Config, rank int, lowest bool) bool {
	stagger := parley.Tick(rank) * c.Stagger
	if x.due == 0 {
		x.wait = c.Wait + stagger
		x.due = now + x.wait
	}
	late := now >= x.due
	if late {
		most := 64 * c.Wait
		if c.Liars > 0 { // a liar makes tries fail, and when it is gone the next one must come soon
			most = 4*c.Wait + stagger
		}
		x.wait = min(2*x.wait, most)
		x.due = now + x.wait
	}
	return late || lowest && !x.tried
}

// State visits the times that count, and that of the flush if a ballot is under way.
func (x *tries) State(v *parley.Vars, started bool) {
	needed := x.due != 0
	v.Bool("needed", &needed)
	if needed {
		v.Time("due", &x.due)
		parley.Num(v, "wait", &x.wait)
		v.Bool("tried", &x.tried)
	} else if v.Loading() {
		x.due, x.wait, x.tried = 0, 0, false
	}
	if started {
		v.Time("flush", &x.flush)
	}
}
