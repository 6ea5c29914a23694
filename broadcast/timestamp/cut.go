package timestamp

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"parley"
	"parley/broadcast/problem"
	"parley/broadcast/views"
	"parley/membership/group"
)

// try: while the head m of pending, sequence k of sender s, has ack[q][s] >= k for every q in the view, or is
// known to be delivered somewhere: remove it; last := its key; deliver. Then there may be room for own
// messages that wait.
func (l *layer) try(s *parley.Step) {
	for sent := true; sent; sent = l.send(s) {
		k := 0
		for k < len(l.pending) && (l.heldByAll(l.pending[k]) || !l.pending[k].after(l.known)) {
			l.deliver(s, l.pending[k])
			k++
		}
		l.pending = slices.Delete(l.pending, 0, k)
	}
}

func (l *layer) heldByAll(h held) bool {
	for q := range l.View.Members.All() {
		if l.Acks[q][h.sender] < h.seq {
			return false
		}
	}
	return true
}

func (l *layer) deliver(s *parley.Step, h held) {
	l.last, l.done[h.sender] = h.key, h.seq
	s.Deliver(h.sender, parley.Msg{Kind: parley.Carried, Origin: h.sender, Body: h.body})
}

// Waiting reports whether a message is not yet delivered: what is missing for it may have been the last
// message of a link that broke.
func (l *layer) Waiting() bool { return len(l.pending)+len(l.queue) > 0 }

// Report: pending with bodies, last.
func (l *layer) Report() []byte { return appendHeld(appendKey(nil, l.last), l.pending) }

// Cut: union of the pending lists, sorted by key. A malformed report counts as empty.
func (l *layer) Cut(reports [][]byte) []byte {
	var union []held
	for _, report := range reports {
		r := parley.Reader{Rest: report}
		readKey(&r, l.n)
		if list, ok := readHeld(r, l.n); ok {
			union = append(union, list...)
		}
	}
	slices.SortFunc(union, compare)
	return appendHeld(nil, slices.CompactFunc(union, func(a, b held) bool { return a.key == b.key }))
}

// Reads reports whether bytes are a cut.
func (l *layer) Reads(cut []byte) bool {
	_, ok := readHeld(parley.Reader{Rest: cut}, l.n)
	return ok
}

// Install delivers those of the cut with key > last, in key order. What this member holds is in the cut,
// except what it had delivered before it restarted from its log; that is delivered again. Then all counters
// of the view are 0.
func (l *layer) Install(s *parley.Step, cut []byte, next group.View) {
	list, ok := readHeld(parley.Reader{Rest: cut}, l.n)
	if !ok && cut != nil {
		panic("timestamp: the cut of the view cannot be read")
	}
	if l.c.Durable && cut != nil {
		list = append(list, l.pending...)
		slices.SortFunc(list, compare)
	}
	for _, h := range list {
		if h.after(l.last) {
			l.deliver(s, h)
		}
	}
	l.Begin(next)
	l.clock, l.last, l.known, l.pending = 0, key{}, key{}, nil
	clear(l.recv)
	clear(l.done)
	l.try(s)
}

// Snapshot returns the key of the last delivery.
func (l *layer) Snapshot() []byte { return appendKey(nil, l.last) }

// Restore sets the state of a joiner to that of its sponsor.
func (l *layer) Restore(snapshot []byte) bool {
	r := parley.Reader{Rest: snapshot}
	last := readKey(&r, l.n)
	if r.Done() {
		l.last = last
	}
	return r.Done()
}

// Replay restores a message that this member held before a crash.
func (l *layer) Replay(rec []byte) bool {
	list, ok := readHeld(parley.Reader{Rest: rec}, l.n)
	if !ok || len(list) != 1 {
		return false
	}
	h := list[0]
	l.clock, l.recv[h.sender] = max(l.clock, h.time), h.seq
	l.pending.insert(h)
	return true
}

// record encodes a message for the log.
func record(h held) []byte { return appendHeld(nil, []held{h}) }

func compare(a, b held) int {
	return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.sender, b.sender))
}

func appendKey(b []byte, k key) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, k.time), uint64(k.sender))
}

func readKey(r *parley.Reader, n int) key { return key{r.Number(views.Limit), r.ID(n)} }

// appendHeld appends the number of messages, and each with its key, its count and its payload.
func appendHeld(b []byte, list []held) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, h := range list {
		b = binary.AppendUvarint(appendKey(b, h.key), h.seq)
		b = parley.AppendBytes(b, h.body)
	}
	return b
}

// readHeld decodes what appendHeld encoded, among n processes, up to the end.
func readHeld(r parley.Reader, n int) (list []held, ok bool) {
	for i := r.Count(); i > 0; i-- {
		h := held{readKey(&r, n), r.Number(views.Limit), r.Bytes()}
		if r.Bad || h.time == 0 || h.seq == 0 {
			return nil, false
		}
		list = append(list, h)
	}
	return list, r.Done()
}

// show shows the messages that wait with what they wait for.
func (l *layer) show(shown *parley.Shown) {
	for i := range l.pending {
		h := &l.pending[i]
		x := problem.Held(h.sender, h.seq, h.body, "a message with a smaller key")
		x.Place = fmt.Sprintf("time %d of %s", h.time, shown.Called(h.sender))
		if missing := l.unacknowledged(h); missing != (parley.Set{}) {
			x.Waits = "acknowledgements of " + shown.List(missing)
		}
		shown.Derive(x)
	}
}

// unacknowledged returns the members that are not known to hold a message.
func (l *layer) unacknowledged(h *held) (out parley.Set) {
	for q := range l.View.Members.All() {
		if l.Acks[q][h.sender] < h.seq {
			out.Add(q)
		}
	}
	return out
}

// State visits every variable. In durable mode undelivered messages are durable.
func (l *layer) State(v *parley.Vars) {
	if shown := v.Shown(); shown != nil {
		l.show(shown)
	}
	l.Member.State(v, l.c.Durable, func() {
		parley.Num(v, "clock", &l.clock)
		views.Counts(v, "received", l.recv)
		parley.Slice(v, "pending", (*[]held)(&l.pending), func(_ int, h *held) {
			parley.Num(v, "time", &h.time)
			v.ID("sender", &h.sender)
			parley.Num(v, "count", &h.seq)
			v.Bytes("body", &h.body)
		})
		parley.Num(v, "last time", &l.last.time)
		v.ID("last sender", &l.last.sender)
	})
	views.Counts(v, "delivered", l.done)
	parley.Num(v, "known time", &l.known.time)
	v.ID("known sender", &l.known.sender)
	parley.Slice(v, "queue", &l.queue, func(_ int, b *[]byte) { v.Bytes("body", b) })
}
