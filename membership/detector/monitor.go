package detector

import "parley"

// Monitor judges by their silence who has failed. It is a part for machines that
// send heartbeats of their own and have a timer for them: they tell it what they
// hear and ask it once a Period. It has no effects.
type Monitor struct {
	c                  Config
	self               parley.ID
	watched, suspected parley.Set
	checked            parley.Tick   // when Check was last called
	of                 []watch       // by process
	broken             parley.Set    // the own links that are, of processes that are not watched too
	lost               []parley.Tick // by process: since when
	said               []parley.Set  // by process: with whom its links are broken, as it says
}

// watch is what a monitor knows of one process.
type watch struct {
	heard   parley.Tick // the last sign of life, or what is as good as one
	timeout parley.Tick
	again   int // heartbeats in a row since it was suspected
}

// NewMonitor returns a monitor that watches nobody yet.
func NewMonitor(c Config, self parley.ID) Monitor {
	return Monitor{c: c.WithDefaults(), self: self, of: make([]watch, c.N),
		lost: make([]parley.Tick, c.N), said: make([]parley.Set, c.N)}
}

// Watch sets the processes to watch from now on, without this one. One that was not
// watched before has a whole timeout from now. One that is no longer watched is forgotten.
func (d *Monitor) Watch(now parley.Tick, who parley.Set) {
	who.Remove(d.self)
	if d.watched == (parley.Set{}) {
		d.checked = now
	}
	for id := range who.Minus(d.watched).All() {
		d.of[id] = watch{heard: now, timeout: d.c.Timeout}
	}
	for id := range d.watched.Minus(who).All() {
		d.of[id] = watch{}
		d.suspected.Remove(id)
		d.said[id] = parley.Set{}
	}
	d.watched = who
}

// Heard takes a sign of life of a process: a heartbeat, or anything else that it
// sent. It tells whether the process was suspected and no longer is; its timeout is
// then longer than before.
func (d *Monitor) Heard(now parley.Tick, q parley.ID) (trusted bool) {
	if !d.watched.Has(q) {
		return false
	}
	w := &d.of[q]
	silence := now - w.heard
	w.heard = now
	if !d.suspected.Has(q) {
		return false
	}
	if silence > w.timeout {
		w.again = 0
	}
	if w.again++; w.again < d.c.Again {
		return false
	}
	d.suspected.Remove(q)
	w.again, w.timeout = 0, min(w.timeout+d.c.Grow, d.c.Most)
	return true
}

// Check is to be called once a Period. It returns who is suspected from now on and
// was not before.
func (d *Monitor) Check(now parley.Tick) (suspected parley.Set) {
	late := now - d.checked - d.c.Period
	d.checked = now
	// First the own pause: if it was me who was silent I know nothing of the others.
	if late > d.c.Late {
		for id := range d.watched.Minus(d.suspected).All() {
			d.of[id].heard = now
		}
		return parley.Set{}
	}
	for id := range d.watched.All() {
		w := &d.of[id]
		if now-w.heard <= w.timeout {
			continue
		}
		w.heard = now - w.timeout - 1 // longer ago is no different
		if d.suspected.Add(id) {
			w.again = 0
			suspected.Add(id)
		}
	}
	return suspected
}

// Broke notes that the own link with q is broken.
func (d *Monitor) Broke(now parley.Tick, q parley.ID) {
	if q != d.self && int(q) < d.c.N && d.broken.Add(q) {
		d.lost[q] = now
	}
}

// Mended notes that it is whole again.
func (d *Monitor) Mended(q parley.ID) { d.broken.Remove(q) }

// Links looks which of the own links have been broken for Grace at least, and tells whether
// that has changed since the last look: the others are to hear of it then.
func (d *Monitor) Links(now parley.Tick) (changed bool) {
	var broken parley.Set
	for id := range d.broken.All() {
		if now-d.lost[id] >= d.c.Grace {
			broken.Add(id)
		}
	}
	changed = broken != d.said[d.self]
	d.said[d.self] = broken
	return changed
}

// Word is what heartbeats say of the own links: a bit for each process, from the lowest
// of the first byte on, 1 if the link with it is broken; nil if none is.
func (d *Monitor) Word() []byte {
	broken := d.said[d.self]
	if broken == (parley.Set{}) {
		return nil
	}
	word := make([]byte, (d.c.N+7)/8)
	for id := range broken.All() {
		word[id/8] |= 1 << (id % 8)
	}
	return word
}

// Said takes the word of a process, and tells whether it is one.
func (d *Monitor) Said(from parley.ID, word []byte) bool {
	var broken parley.Set
	if len(word) > 0 {
		if len(word) != (d.c.N+7)/8 {
			return false
		}
		for i, b := range word {
			broken[i/8] |= uint64(b) << (i % 8 * 8)
		}
		if broken.Minus(parley.Everyone(d.c.N)) != (parley.Set{}) || broken == (parley.Set{}) {
			return false
		}
	}
	if d.watched.Has(from) {
		d.said[from] = broken
	}
	return true
}

// Cut returns who is suspected from now on because more than half of all processes say that
// their links with it are broken. The word of those who are suspected does not count.
func (d *Monitor) Cut() (suspected parley.Set) {
	speak := d.watched.Minus(d.suspected)
	speak.Add(d.self)
	for id := range d.watched.Minus(d.suspected).All() {
		say := 0
		for from := range speak.All() {
			if from != id && d.said[from].Has(id) {
				say++
			}
		}
		if say > d.c.N/2 {
			suspected.Add(id)
		}
	}
	for id := range suspected.All() {
		d.suspected.Add(id)
		d.of[id].again = 0
	}
	return suspected
}

// Watched returns the processes that are watched.
func (d *Monitor) Watched() parley.Set { return d.watched }

// Suspected returns the processes that are suspected now.
func (d *Monitor) Suspected() parley.Set { return d.suspected }

// State visits every variable.
func (d *Monitor) State(v *parley.Vars) {
	v.Set("watched", &d.watched)
	v.Set("suspected", &d.suspected)
	v.Time("checked", &d.checked)
	v.Set("broken", &d.broken)
	parley.PerProcess(v, "said", d.said, func(_ parley.ID, broken *parley.Set) { v.Set("broken", broken) })
	parley.PerProcess(v, "lost", d.lost, func(id parley.ID, since *parley.Tick) {
		if v.Loading() {
			*since = 0
		}
		if d.broken.Has(id) {
			v.Time("since", since)
		}
	})
	parley.PerProcess(v, "of", d.of, func(id parley.ID, w *watch) {
		if v.Loading() {
			*w = watch{}
		}
		if !d.watched.Has(id) { // a time would be another one in every state
			return
		}
		v.Time("heard", &w.heard)
		parley.Num(v, "timeout", &w.timeout)
		parley.Num(v, "again", &w.again)
	})
}
