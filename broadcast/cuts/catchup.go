package cuts

import (
	"slices"

	"parley"
	"parley/agreement/tetra"
)

// earlyPerPeer is how many messages of the next slot are kept from each process.
const earlyPerPeer = 64

// mostBody*(n+1) is more than the bytes of each message of a slot. The longest is ENTER: it has a claim, and at most
// n+1 votes of each of four phases.
const mostBody = 200

// skipAfter is the number of looks in one slot after which a process takes over a checkpoint: the length of view 0, in
// which those who know the decision could answer.
const skipAfter = 4

// message is a message that waits for its slot.
type message struct {
	from parley.ID
	m    parley.Msg
}

// answer holds the decisions of consecutive slots.
type answer struct {
	first uint64
	cuts  [][]byte
}

// catchup follows the slots of the others: it keeps what comes early, and knows whether this process is behind.
type catchup struct {
	n, m      int
	early     []message      // messages of the next slot
	at        []uint64       // by process: the greatest slot in which it has spoken
	lost      []uint64       // by process: the greatest slot of which a message may not have been kept
	asked     uint64         // decisions up to this slot were asked for
	more      bool           // somebody knows decisions of later slots
	answers   []answer       // by process: its last Answer
	snapshots [][]parley.Msg // by process: its last two Snapshots
	told      bool           // there is a new one since the last look
	looked    uint64         // the current slot at the last look
	stays     int            // how many looks in a row have seen this slot
}

func newCatchup(c Config) catchup {
	return catchup{
		n: c.N, m: c.M, at: make([]uint64, c.N), lost: make([]uint64, c.N), answers: make([]answer, c.N),
		snapshots: make([][]parley.Msg, c.N),
	}
}

// spoke notes that a process speaks in a slot, so that it has delivered all slots before. A request to repeat may come
// earlier.
func (c *catchup) spoke(from parley.ID, m parley.Msg) {
	if m.Kind != tetra.Wish || m.Value&1 == 0 {
		c.at[from] = max(c.at[from], m.Seq)
	}
}

// speakers returns how many processes have spoken in a slot or a later one.
func (c *catchup) speakers(slot uint64) (count int) {
	for _, at := range c.at {
		if at >= slot {
			count++
		}
	}
	return count
}

// isBehind reports whether m+1 processes speak in slots that this process does not follow.
func (c *catchup) isBehind(slot uint64) bool { return c.speakers(slot+2) > c.m }

// keepEarly keeps a message for the next slot, if there is room for it.
func (c *catchup) keepEarly(from parley.ID, m parley.Msg, slot uint64) {
	count := 0
	for _, x := range c.early {
		if x.from == from {
			if count++; x.m.Equal(m) {
				return
			}
		}
	}
	if m.Seq > slot+1 || count >= earlyPerPeer {
		c.lost[from] = max(c.lost[from], m.Seq)
		return
	}
	c.early = append(c.early, message{from, m})
}

// dueMessages takes out the messages of a slot that has become the current one.
func (c *catchup) dueMessages(slot uint64) []message {
	if len(c.early) == 0 || c.early[0].m.Seq > slot {
		return nil
	}
	due := c.early // all are of one slot
	c.early = nil
	if due[0].m.Seq < slot {
		return nil
	}
	return due
}

// shouldAsk reports whether this process is behind or somebody knows more, and it has not asked yet.
func (c *catchup) shouldAsk(slot uint64) bool { return (c.more || c.isBehind(slot)) && c.asked < slot }

// ask asks all others for decisions from a slot on.
func (c *catchup) ask(s *parley.Step, slot uint64) {
	c.more, c.asked = false, slot+mostAnswers-1
	s.SendAll(parley.Msg{Kind: Ask, Seq: slot})
}

// miss notes that messages of a slot, from all processes, may not have been kept.
func (c *catchup) miss(slot uint64) {
	for q := range c.lost {
		c.lost[q] = max(c.lost[q], slot)
	}
}

// restart asks again.
func (c *catchup) restart() { c.more, c.asked = true, 0 }

// takeAnswer keeps decisions until their slots are current.
func (c *catchup) takeAnswer(s *parley.Step, from parley.ID, m parley.Msg, slot uint64) {
	a := answer{first: m.Seq}
	for r := (parley.Reader{Rest: m.Body}); len(r.Rest) > 0; {
		body := r.Bytes()
		if len(body) == 0 {
			body = nil
		}
		if _, ok := readCut(body, c.n); r.Bad || body != nil && !ok || len(a.cuts) == mostAnswers {
			s.Refuse(from, "decisions that cannot be read")
			return
		}
		a.cuts = append(a.cuts, body)
	}
	end := a.first + uint64(len(a.cuts))
	if end < slot || a.first > c.asked {
		return // not what was asked for, or too late
	}
	c.answers[from] = a
	c.lost[from] = max(c.lost[from], end)
	c.more = c.more || end > c.asked
}

// decision returns what a process answered about a slot.
func (c *catchup) decision(from parley.ID, slot uint64) (body []byte, known bool) {
	a := &c.answers[from]
	if i := slot - a.first; i < uint64(len(a.cuts)) {
		return a.cuts[i], true
	}
	return nil, false
}

// takeSnapshot keeps a checkpoint of the current slot or a later one.
func (c *catchup) takeSnapshot(s *parley.Step, from parley.ID, m parley.Msg, slot uint64) {
	if len(m.Body) > mostBody*(c.n+1)*(c.n+1) {
		s.Refuse(from, "checkpoint that is too long")
		return
	}
	list := slices.DeleteFunc(c.snapshots[from], func(x parley.Msg) bool { return x.Seq == m.Seq || x.Seq < slot })
	if m.Seq >= slot {
		list = append(list, parley.Msg{Seq: m.Seq, Body: m.Body})
		c.told = true
	}
	c.snapshots[from] = list[max(0, len(list)-2):]
}

// common returns the first checkpoint, of a slot or a later one, that m+1 processes tell alike.
func (c *catchup) common(slot uint64) (first parley.Msg, ok bool) {
	for _, list := range c.snapshots {
		for _, x := range list {
			if x.Seq < slot {
				continue
			}
			count := 0
			for _, other := range c.snapshots {
				if slices.ContainsFunc(other, func(y parley.Msg) bool { return x.Equal(y) }) {
					count++
				}
			}
			if count > c.m && (!ok || x.Seq < first.Seq) {
				first, ok = x, true
			}
		}
	}
	return first, ok
}

func (c *catchup) state(v *parley.Vars, self parley.ID) {
	parley.Slice(v, "early", &c.early, func(_ int, x *message) {
		v.ID("from", &x.from)
		v.Msg("message", parley.Env{From: x.from, To: self}, &x.m)
	})
	parley.PerProcess(v, "spoke in slot", c.at, func(id parley.ID, x *uint64) {
		parley.Num(v, "slot", x)
		parley.Num(v, "lost", &c.lost[id])
	})
	parley.Num(v, "asked", &c.asked)
	v.Bool("more", &c.more)
	parley.PerProcess(v, "answer of", c.answers, func(id parley.ID, a *answer) {
		parley.Num(v, "first", &a.first)
		parley.Slice(v, "cuts", &a.cuts, func(_ int, b *[]byte) { v.Bytes("cut", b) })
	})
	parley.PerProcess(v, "snapshots of", c.snapshots, func(_ parley.ID, list *[]parley.Msg) {
		parley.Slice(v, "snapshot", list, func(_ int, m *parley.Msg) {
			parley.Num(v, "slot", &m.Seq)
			v.Bytes("checkpoint", &m.Body)
		})
	})
	v.Bool("told", &c.told)
	parley.Num(v, "slot at the last look", &c.looked)
	parley.Num(v, "looks in it", &c.stays)
}
