package byzantine

import (
	"encoding/binary"
	"slices"

	"parley"
)

// admission is the admission of a process that restarted without its state.
type admission struct {
	number uint64 // 1 for the first admission of the process, 2 for the second
	name   uint64 // tells the lives of the process apart, in any order: a faulty process may use any name
}

// welcome is a vote of a member for an admission of a process.
type welcome struct {
	who parley.ID
	admission
}

// welcomeBytes bounds the bytes of a welcome in a batch.
const welcomeBytes = 2 + 2*binary.MaxVarintLen64

// checkpoint is everything that follows from the slots up to one of them.
type checkpoint struct {
	slot uint64
	done cut
	body []byte
}

// ledger is what follows from the decided slots, and the batches of each lane. All correct processes have the same,
// except for batches that are not delivered, and for how much they have forgotten.
type ledger struct {
	c        Config
	lanes    []lane
	total    uint64 // requests delivered
	tenure   tenure
	welcomes [][]admission // by process, and by member: the last admission of the process for which the member voted

	checks  []checkpoint // the last two
	fresh   int          // bytes of batches and cuts that were delivered since the last one
	dropped uint64       // slots that are forgotten
	past    []known      // the decided cuts of the slots after these

	logged int  // bytes appended since the log was shortened
	due    bool // the log can be shortened
}

func newLedger(c Config) ledger {
	l := ledger{
		c: c, lanes: make([]lane, c.N), tenure: tenure{fails: make([]uint8, c.N)}, welcomes: make([][]admission, c.N),
	}
	for i := range l.welcomes {
		l.welcomes[i] = make([]admission, c.N)
	}
	return l
}

// unordered reports whether this process holds a batch that is not ordered.
func (l *ledger) unordered() bool {
	return slices.ContainsFunc(l.lanes, func(x lane) bool { return x.tip() != x.done })
}

// tips are the last batches that this process holds.
func (l *ledger) tips() cut {
	c := make(cut, len(l.lanes))
	for i := range c {
		c[i] = l.lanes[i].tip()
	}
	return c
}

// apply delivers a decided cut of which nothing is missing; c is nil if the slot is decided on nothing. Each lane
// whose tip in the cut leads to the last delivered batch is delivered up to the tip, in the order of the sources. An
// old tip leaves the lane out. All processes find the same, because they have delivered the same before.
func (l *ledger) apply(s *parley.Step, c cut, decided known) {
	for i, t := range c {
		x, source := &l.lanes[i], parley.ID(i)
		if _, leads := x.follow(t); !leads || t == x.done {
			continue
		}
		x.advance(t, func(b *batch) {
			l.fresh += len(b.body)
			b.visit(l.c.N, func(request []byte) {
				l.total++
				x.requests++
				s.Deliver(source, parley.Msg{
					Kind: parley.Carried, Origin: source, Seq: x.requests, Value: l.total, Body: request,
				})
			}, func(w welcome) { l.tally(source, w) })
		})
	}
	l.past = append(l.past, decided)
	l.fresh += len(decided.body) + slotCost
	l.tenure.decided(c == nil, l.c.Tenure, l.c.M)
	l.admit()
}

// slotCost is about how many bytes of memory a decided slot takes in addition to its cut and batches.
const slotCost = 128

// held returns about how many bytes a durable copy of the ledger has.
func (l *ledger) held() (size int) {
	for _, k := range l.past {
		size += len(k.body)
	}
	for i := range l.lanes {
		for _, list := range [][]batch{l.lanes[i].chain, l.lanes[i].loose} {
			for _, b := range list {
				size += len(b.body)
			}
		}
	}
	return size
}

// repeat delivers again what was delivered in the slots that are not forgotten.
func (l *ledger) repeat(s *parley.Step) {
	old, forgotten := newLedger(l.c), newLedger(l.c)
	body := forgotten.encode()
	if l.dropped > 0 {
		body = l.checks[0].body
	}
	old.lanes = l.lanes
	old.decode(l.dropped, body)
	s.Indicate(parley.Msg{Kind: Repeats, Seq: old.total})
	for _, k := range l.past {
		c, _ := readCut(k.body, l.c.N)
		old.apply(s, c, k)
	}
}

// append appends a log record, if records are durable.
func (l *ledger) append(s *parley.Step, kind byte, slot uint64, body []byte) {
	if l.c.Durable {
		r := record(kind, slot, body)
		s.Append(r)
		l.logged += len(r)
		l.shorten(l.c.log())
	}
}

// record makes a log record: its type, a slot or 0, and a body.
func record(kind byte, slot uint64, body []byte) []byte {
	r := append(make([]byte, 0, 1+binary.MaxVarintLen64+len(body)), kind)
	return append(binary.AppendUvarint(r, slot), body...)
}

// shorten has the log shortened if it has more bytes than that. So all that is written is at most 1.5 times the log.
func (l *ledger) shorten(most int) { l.due = l.due || l.c.Durable && l.logged > most }

// tally counts a welcome that was delivered from the lane of a member.
func (l *ledger) tally(by parley.ID, w welcome) { l.welcomes[w.who][by] = w.admission }

// admit begins the lives of the processes that m+1 members welcome. No correct member gave its welcome before the old
// life of the process had ended, so the old life has not spoken in the next slot. There the new life takes part. Its
// lane continues after the last delivered batch.
func (l *ledger) admit() {
	for id, votes := range l.welcomes {
		x := &l.lanes[id]
		for _, a := range votes {
			count := 0
			for _, other := range votes {
				if other == a {
					count++
				}
			}
			if count > l.c.M && a.number == x.life+1 {
				x.begin(a.number)
				x.name = a.name
			}
		}
	}
}

// check makes a checkpoint after every Config.Checkpoint slots or KeepBytes bytes, and reports whether it did. It
// forgets the slots up to the checkpoint before: a quorum took part in this slot, so m+1 correct processes have
// delivered that checkpoint, and can tell it.
func (l *ledger) check(slot uint64) bool {
	var before checkpoint
	if len(l.checks) > 0 {
		before = l.checks[len(l.checks)-1]
	}
	if slot < before.slot+uint64(l.c.Checkpoint) && l.fresh < l.c.KeepBytes {
		return false
	}
	if before.slot > 0 {
		for i := range l.lanes {
			l.lanes[i].drop(before.done[i])
		}
		l.past = slices.Delete(l.past, 0, int(before.slot-l.dropped))
		l.dropped = before.slot
		l.checks = slices.Delete(l.checks, 0, len(l.checks)-1)
	}
	l.fresh = 0
	l.checks = append(l.checks, checkpoint{slot, l.delivered(), l.encode()})
	return true
}

// delivered is the cut of the last delivered batches.
func (l *ledger) delivered() cut {
	c := make(cut, len(l.lanes))
	for i := range c {
		c[i] = l.lanes[i].done
	}
	return c
}

// encode writes what all correct processes have alike after a slot: the position; for each lane its life, what was
// delivered, and the welcomes of its source; and the tenure.
func (l *ledger) encode() []byte {
	b := binary.AppendUvarint(nil, l.total)
	for i := range l.lanes {
		x := &l.lanes[i]
		b = binary.AppendUvarint(binary.AppendUvarint(b, x.life), x.name)
		b = binary.AppendUvarint(binary.AppendUvarint(b, x.requests), x.done.number)
		b = append(b, x.done.digest[:]...)
		for _, a := range l.welcomes[i] {
			b = binary.AppendUvarint(binary.AppendUvarint(b, a.number), a.name)
		}
	}
	t := &l.tenure
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(t.owner)), uint64(t.used))
	b = append(b, t.fails...)
	b = binary.AppendUvarint(b, uint64(len(t.bench)))
	for _, x := range t.bench {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(x.who)), uint64(x.left))
	}
	return b
}

// decode takes over what encode wrote after a slot. It keeps the batches that are not delivered there: own ones may
// have been sent, and the process must not send others of the same numbers.
func (l *ledger) decode(slot uint64, body []byte) bool {
	r := parley.Reader{Rest: body}
	next := newLedger(l.c)
	next.total = r.Number(1 << 62)
	for i := range next.lanes {
		x := &next.lanes[i]
		x.life, x.name = r.Number(mostLife), r.Number(mostLife)
		x.requests, x.done.number = r.Number(1<<62), r.Number(mostNumber)
		copy(x.done.digest[:], r.Take(uint64(len(x.done.digest))))
		x.base = x.done
		for by := range next.welcomes[i] {
			next.welcomes[i][by] = admission{r.Number(mostLife), r.Number(mostLife)}
		}
	}
	t := &next.tenure
	t.owner, t.used = r.ID(l.c.N), int(r.Number(1<<31))
	copy(t.fails, r.Take(uint64(l.c.N)))
	for range r.Number(uint64(l.c.M)) {
		t.bench = append(t.bench, benched{r.ID(l.c.N), int(r.Number(1 << mostFails))})
	}
	if !r.Done() {
		return false
	}
	for i := range next.lanes {
		x := &next.lanes[i]
		for _, b := range slices.Concat(l.lanes[i].chain, l.lanes[i].loose) {
			if b.number > x.done.number && b.life >= x.life {
				x.add(b)
			}
		}
	}
	next.dropped, next.logged, next.due = slot, l.logged, l.due
	next.checks = []checkpoint{{slot, next.delivered(), body}}
	*l = next
	return true
}

// decidedCut returns the cut of a slot that this process has delivered, by its digest, or nil.
func (l *ledger) decidedCut(slot uint64, d []byte) []byte {
	if i := slot - l.dropped - 1; i < uint64(len(l.past)) && string(l.past[i].digest[:]) == string(d) {
		return l.past[i].body
	}
	return nil
}

func (l *ledger) state(v *parley.Vars) {
	parley.PerProcess(v, "lane", l.lanes, func(_ parley.ID, x *lane) { x.state(v, l.c.N) })
	parley.Num(v, "delivered", &l.total)
	l.tenure.state(v)
	parley.PerProcess(v, "welcomes of", l.welcomes, func(_ parley.ID, x *[]admission) {
		parley.PerProcess(v, "by", *x, func(_ parley.ID, a *admission) { a.state(v) })
	})
	parley.Slice(v, "checkpoints", &l.checks, func(_ int, c *checkpoint) {
		parley.Num(v, "slot", &c.slot)
		parley.Slice(v, "done", (*[]tip)(&c.done), func(_ int, t *tip) { t.state(v, "tip") })
		v.Bytes("ledger", &c.body)
	})
	parley.Num(v, "bytes since", &l.fresh)
	parley.Num(v, "forgotten slots", &l.dropped)
	parley.Slice(v, "past", &l.past, func(_ int, c *known) { c.state(v) })
}

func (a *admission) state(v *parley.Vars) {
	parley.Num(v, "admission", &a.number)
	parley.Num(v, "of life", &a.name)
}
