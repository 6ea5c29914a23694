package group

import (
	"parley"
	"parley/membership/detector"
)

// suspicions holds the members that this one suspects.
type suspicions struct {
	monitor  detector.Monitor
	reported parley.Set // suspected by another detector
	gone     parley.Set // members that have restarted as other incarnations
}

// begin monitors the members of a view. Those of the previous view have reported, which counts like
// consecutive heartbeats.
func (x *suspicions) begin(now parley.Tick, members parley.Set, again int) {
	x.monitor.Watch(now, members)
	for id := range x.monitor.Watched().All() {
		for range again {
			x.monitor.Heard(now, id)
		}
	}
	x.reported, x.gone = parley.Set{}, parley.Set{}
}

// heard records any message from a member in this view.
func (x *suspicions) heard(now parley.Tick, from parley.ID) {
	x.monitor.Heard(now, from)
	x.reported.Remove(from)
}

// all returns the members that this one suspects.
func (x *suspicions) all() parley.Set {
	return x.gone.Plus(x.reported).Plus(x.monitor.Suspected())
}

// State visits every variable.
func (x *suspicions) State(v *parley.Vars) {
	v.Machine("monitor", &x.monitor)
	v.Set("told", &x.reported)
	v.Set("gone", &x.gone)
}

// progress detects that a view stalls.
type progress struct {
	stuck   progressMark   // by position: nothing is delivered while something waits
	unsent  []progressMark // by layer: the oldest own message is not finished
	looked  parley.Tick    // the last check
	blocked bool           // stalled for too long
}

// progressMark is a value that should change.
type progressMark struct {
	mark  uint64      // the value at the last check
	since parley.Tick // when it last changed
}

func (w *progressMark) look(now parley.Tick, idle bool, mark uint64) {
	if idle || w.mark != mark {
		*w = progressMark{mark, now}
	}
}

// begin resets the marks at the start of a view.
func (x *progress) begin(now parley.Tick, position uint64) {
	x.stuck, x.looked, x.blocked = progressMark{position, now}, now, false
	for i := range x.unsent {
		x.unsent[i] = progressMark{0, now}
	}
}

// look checks whether anything is delivered while something waits for it, and whether this member's own
// messages get finished. A process that was paused knows nothing of the time that it missed.
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

// tries schedules when a member asks for another view.
type tries struct {
	due   parley.Tick // the next try; 0 while no view change is needed
	wait  parley.Tick // from the next try to the one after
	tried bool        // since a view change became necessary
	flush parley.Tick // when to stop waiting for members that are not suspected
}

// turn reports whether the member of a rank must try now: the lowest one that is not suspected at once, the
// others if that does not help.
func (x *tries) turn(now parley.Tick, c *Config, rank int, lowest bool) bool {
	stagger := parley.Tick(rank) * c.Stagger
	if x.due == 0 {
		x.wait = c.Wait + stagger
		x.due = now + x.wait
	}
	late := now >= x.due
	if late {
		most := 64 * c.Wait
		if c.Liars > 0 { // a liar makes tries fail, and after it is gone the next one must come soon
			most = 4*c.Wait + stagger
		}
		x.wait = min(2*x.wait, most)
		x.due = now + x.wait
	}
	return late || lowest && !x.tried
}

// State visits the times that count, and that of the flush while a ballot is in progress.
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
