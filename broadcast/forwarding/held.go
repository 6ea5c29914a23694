package forwarding

import (
	"cmp"
	"slices"

	"parley"
	"parley/broadcast/problem"
)

// cast is one broadcast that a process holds because it is not known to be complete.
type cast struct {
	seq     uint64
	body    []byte
	written parley.Set // the processes that this one has sent it to
	acked   parley.Set // the processes that have acknowledged: their subtrees are served
	failed  parley.Set // the processes suspected while this one holds it, or before
	owed    parley.Set // the processes that wait for this one's acknowledgement
	served  bool       // this process's own subtree is served
	tree    tree       // decoded from body
}

// newCast takes a body that read has accepted.
func newCast(seq uint64, body []byte, n int, gone parley.Set) *cast {
	c := &cast{seq: seq, body: body, failed: gone}
	_, c.tree, _, _ = read(body, n)
	return c
}

// Compare compares numbers.
func (c *cast) Compare(seq uint64) int { return cmp.Compare(c.seq, seq) }

func (c *cast) state(v *parley.Vars, n int) {
	parley.Num(v, "seq", &c.seq)
	v.Bytes("body", &c.body)
	v.Set("written", &c.written)
	v.Set("acked", &c.acked)
	v.Set("gone", &c.failed)
	v.Set("owed", &c.owed)
	v.Bool("served", &c.served)
	if v.Loading() {
		_, c.tree, _, _ = read(c.body, n)
	}
}

// life is what a process knows about the broadcasts of one incarnation of a sender.
type life struct {
	number uint64 // of the incarnation
	seen   problem.Numbers
	done   uint64                        // all broadcasts up to this one are complete
	held   problem.Sorted[uint64, *cast] // broadcasts that are not known to be complete, by number
}

// find returns a broadcast that is held, or nil.
func (l *life) find(seq uint64) *cast {
	if c := l.held.At(seq); c != nil {
		return *c
	}
	return nil
}

// complete releases all broadcasts up to a number. It returns the last of them that was held, or nil.
func (l *life) complete(upTo uint64) (last *cast) {
	l.done = max(l.done, upTo)
	for len(l.held) > 0 && l.held[0].seq <= l.done {
		last = l.held[0]
		l.held = slices.Delete(l.held, 0, 1)
	}
	return last
}

func (l *life) state(v *parley.Vars, n int) {
	parley.Num(v, "number", &l.number)
	l.seen.State(v, "seen")
	parley.Num(v, "done", &l.done)
	parley.Slice(v, "held", (*[]*cast)(&l.held), func(_ int, c **cast) {
		if v.Loading() {
			*c = new(cast)
		}
		(*c).state(v, n)
	})
}

// gaps bounds the gaps among the received numbers of one incarnation of a sender. Without false suspicions
// there are fewer gaps than a sender may have broadcasts in flight. With them, many later broadcasts that
// their sender considers complete may overtake a message.
const gaps = 1 << 10

// lifeOf returns what is known about an incarnation of a sender; nil if it is older than all that are
// remembered.
func (p *process) lifeOf(sender parley.ID, number uint64) *life {
	l := p.senders[sender].At(number)
	if l != nil {
		l.number = number
	}
	return l
}

// newest returns the newest known incarnation of a sender.
func (p *process) newest(sender parley.ID) (newest uint64) {
	for number := range p.senders[sender].All() {
		newest = number
	}
	return newest
}
