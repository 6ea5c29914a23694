package byzantine

import (
	"slices"

	"parley"
)

// peer is what this process heard from a process and about its lane.
type peer struct {
	life      uint64       // of the process: what an earlier life said does not count
	at        uint64       // the greatest slot in which it has spoken, so it has delivered all slots before
	lost      uint64       // the greatest slot of which a message may not have been kept
	from      uint64       // the slot of the first decision in its last Answer
	decisions [][]byte     // its last Answer
	snapshots []parley.Msg // its last two Snapshots
	claim     cut          // its last Tips
	greeted   admission    // the last one for which this process welcomed it
	sent      int          // bytes that it was sent upon request
	since     parley.Tick  // since this time

	first  uint64 // the first batch of its lane that was not ordered at the last look; 0: none
	looks  int    // how many looks in a row have seen this batch
	strict uint64 // up to this slot, only batches of its lane that 2m+1 processes claim to hold are proposed
}

// peers are all processes, in the order of their IDs.
type peers []peer

// speakers returns how many processes have spoken in a slot or a later one.
func (x peers) speakers(slot uint64) (count int) {
	for i := range x {
		if x[i].at >= slot {
			count++
		}
	}
	return count
}

// miss notes that messages of a slot may not have been kept.
func (x *peer) miss(slot uint64) { x.lost = max(x.lost, slot) }

// miss notes that messages of a slot, from all processes, may not have been kept.
func (x peers) miss(slot uint64) {
	for i := range x {
		x[i].miss(slot)
	}
}

// claims reports whether a process claims to hold a batch as the last one of its lane.
func (x *peer) claims(source parley.ID, t tip) bool { return x.claim != nil && x.claim[source] == t }

// claimed returns how many processes claim to hold a batch as the last one of its lane.
func (x peers) claimed(source parley.ID, t tip) (count int) {
	for i := range x {
		if x[i].claims(source, t) {
			count++
		}
	}
	return count
}

// common returns the first checkpoint, of a slot or a later one, that more than m processes tell alike.
func (x peers) common(slot uint64, m int) (first parley.Msg, ok bool) {
	for i := range x {
		for _, c := range x[i].snapshots {
			if c.Seq < slot {
				continue
			}
			count := 0
			for other := range x {
				if slices.ContainsFunc(x[other].snapshots, c.Equal) {
					count++
				}
			}
			if count > m && (!ok || c.Seq < first.Seq) {
				first, ok = c, true
			}
		}
	}
	return first, ok
}

func (x peers) state(v *parley.Vars) {
	parley.PerProcess(v, "of", x, func(_ parley.ID, x *peer) {
		parley.Num(v, "of life", &x.life)
		parley.Num(v, "spoke in slot", &x.at)
		parley.Num(v, "lost", &x.lost)
		parley.Num(v, "first decision", &x.from)
		parley.Slice(v, "decisions", &x.decisions, func(_ int, b *[]byte) { v.Bytes("cut", b) })
		parley.Slice(v, "snapshot", &x.snapshots, func(_ int, m *parley.Msg) {
			parley.Num(v, "slot", &m.Seq)
			v.Bytes("checkpoint", &m.Body)
		})
		parley.Slice(v, "claim", (*[]tip)(&x.claim), func(_ int, t *tip) { t.state(v, "tip") })
		x.greeted.state(v)
		if parley.Num(v, "was sent", &x.sent); x.sent > 0 {
			v.Time("since", &x.since)
		}
		parley.Num(v, "not ordered", &x.first)
		parley.Num(v, "looks", &x.looks)
		parley.Num(v, "strict up to slot", &x.strict)
	})
}
