package detector

import "parley"

// Monitor judges from silence which processes have failed. It is a part of machines that send heartbeats and
// have a timer for them. These machines report received messages to the Monitor, and call Check once a
// Period. A Monitor requests no effects. It is not safe for concurrent use.
type Monitor struct {
	c                  Config
	self               parley.ID
	watched, suspected parley.Set
	checked            parley.Tick   // when Check was last called
	of                 []watch       // by process
	broken             parley.Set    // own broken links, including those with processes that are not watched
	lost               []parley.Tick // by process: when the link broke
	said               []parley.Set  // by process: its broken links, as it reports them
}

// watch is the state of one watched process.
type watch struct {
	heard   parley.Tick // the last sign of life, or what counts as one
	timeout parley.Tick
	again   int // consecutive heartbeats since it was suspected
}

// NewMonitor returns a monitor that watches no process yet.
func NewMonitor(c Config, self parley.ID) Monitor {
	return Monitor{c: c.WithDefaults(), self: self, of: make([]watch, c.N),
		lost: make([]parley.Tick, c.N), said: make([]parley.Set, c.N)}
}

// Watch sets the processes to watch from now on. The process itself is never watched. The timeout of a process that
// was not watched before starts now. The Monitor forgets a process that is no longer watched.
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

// Heard records that a heartbeat or another message of q has arrived. It reports whether this clears a
// suspicion of q. The timeout of q is then longer than before.
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

// Check must be called once a Period. It returns the processes that are newly suspected.
func (d *Monitor) Check(now parley.Tick) (suspected parley.Set) {
	late := now - d.checked - d.c.Period
	d.checked = now
	// After an own pause this process knows nothing about the others.
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
		w.heard = now - w.timeout - 1 // a longer silence makes no difference
		if d.suspected.Add(id) {
			w.again = 0
			suspected.Add(id)
		}
	}
	return suspected
}

// Broke records that the own link with q is broken.
func (d *Monitor) Broke(now parley.Tick, q parley.ID) {
	if q != d.self && int(q) < d.c.N && d.broken.Add(q) {
		d.lost[q] = now
	}
}

// Mended records that the own link with q works again.
func (d *Monitor) Mended(q parley.ID) { d.broken.Remove(q) }

// Links determines which of the own links have been broken for at least Grace. It reports whether these links have
// changed since the last call. If they have, the caller must send a heartbeat.
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

// Word encodes the own broken links for heartbeats, with one bit for each process. The lowest bit of the first byte
// is for process 0. A bit is 1 if the link is broken. If no link is broken, Word returns nil.
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

// Said records the broken links that a process reports. It returns whether word is well-formed.
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

// Cut returns the processes that are newly suspected because more than half of all processes report that
// their links with them are broken. Reports of suspected processes do not count.
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
		if !d.watched.Has(id) { // a stale time would make every state distinct
			return
		}
		v.Time("heard", &w.heard)
		parley.Num(v, "timeout", &w.timeout)
		parley.Num(v, "again", &w.again)
	})
}
