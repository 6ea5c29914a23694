package timestamp

import (
	"encoding/binary"
	"slices"

	"parley"
	"parley/membership/group"
)

// try: while the head m of pending, sequence k of sender s, has ack[q][s] >= k for
// every q in the view, or somebody is known to have delivered it: remove it; last :=
// its key; deliver. Then there may be room for own messages that wait.
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
	for q := range l.view.Members.All() {
		if l.ack[q][h.sender] < h.seq {
			return false
		}
	}
	return true
}

func (l *layer) deliver(s *parley.Step, h held) {
	l.last, l.done[h.sender] = h.key, h.seq
	s.Deliver(h.sender, parley.Msg{Kind: parley.Carried, Origin: h.sender, Body: h.body})
}

// Waiting tells whether anything is not yet delivered: what is missing for that may
// have been the last message of a link that broke.
func (l *layer) Waiting() bool { return len(l.pending)+len(l.queue) > 0 }

// Report: pending with bodies, last.
func (l *layer) Report() []byte { return appendHeld(appendKey(nil, l.last), l.pending) }

// Cut: union of the pending lists, sorted by key. One that cannot be read is none of
// ours and has nothing.
func (l *layer) Cut(reports [][]byte) []byte {
	var union []held
	for _, report := range reports {
		_, rest, ok := readKey(report, l.n)
		if !ok {
			continue
		}
		list, ok := readHeld(rest, l.n)
		if !ok {
			continue
		}
		union = append(union, list...)
	}
	slices.SortFunc(union, compare)
	return appendHeld(nil, slices.CompactFunc(union, func(a, b held) bool { return a.key == b.key }))
}

// Reads tells whether bytes are a cut.
func (l *layer) Reads(cut []byte) bool {
	_, ok := readHeld(cut, l.n)
	return ok
}

// Install delivers those of the cut with key > last, in key order. What this member
// holds is in the cut, but for what it had delivered before it came back from its
// log, which is delivered again. Then all counters of the view are 0.
func (l *layer) Install(s *parley.Step, cut []byte, next group.View) {
	list, ok := readHeld(cut, l.n)
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
	l.view = next
	l.clock, l.last, l.known, l.pending, l.owe = 0, key{}, key{}, nil, false
	clear(l.recv)
	clear(l.done)
	for _, row := range l.ack {
		clear(row)
	}
	l.try(s)
}

// Snapshot is the key of the last delivery.
func (l *layer) Snapshot() []byte { return appendKey(nil, l.last) }

// Restore takes a joiner to where its sponsor stands.
func (l *layer) Restore(snapshot []byte) bool {
	last, rest, ok := readKey(snapshot, l.n)
	if ok && len(rest) == 0 {
		l.last = last
	}
	return ok && len(rest) == 0
}

// Replay takes a message that this member held before a crash.
func (l *layer) Replay(rec []byte) bool {
	list, ok := readHeld(rec, l.n)
	if !ok || len(list) != 1 {
		return false
	}
	h := list[0]
	l.clock, l.recv[h.sender] = max(l.clock, h.time), h.seq
	l.pending.insert(h)
	return true
}

// record is what the log keeps of a message.
func record(h held) []byte { return appendHeld(nil, []held{h}) }

func compare(a, b held) int {
	switch {
	case a.after(b.key):
		return 1
	case b.after(a.key):
		return -1
	}
	return 0
}

func appendKey(b []byte, k key) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, k.time), uint64(k.sender))
}

func readKey(b []byte, n int) (k key, rest []byte, ok bool) {
	time, b, err := parley.ReadUvarint(b, limit)
	if err != nil {
		return key{}, nil, false
	}
	sender, b, err := parley.ReadUvarint(b, uint64(n-1))
	return key{time, parley.ID(sender)}, b, err == nil
}

// appendHeld appends how many there are, and each with its key, its count and its
// payload.
func appendHeld(b []byte, list []held) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, h := range list {
		b = appendKey(b, h.key)
		b = binary.AppendUvarint(b, h.seq)
		b = binary.AppendUvarint(b, uint64(len(h.body)))
		b = append(b, h.body...)
	}
	return b
}

// readHeld reads what appendHeld wrote, of n processes, which takes up all of b.
func readHeld(b []byte, n int) (list []held, ok bool) {
	count, b, err := parley.ReadUvarint(b, uint64(len(b)))
	if err != nil {
		return nil, false
	}
	for range count {
		var h held
		var size uint64
		if h.key, b, ok = readKey(b, n); !ok || h.time == 0 {
			return nil, false
		}
		if h.seq, b, err = parley.ReadUvarint(b, limit); err != nil || h.seq == 0 {
			return nil, false
		}
		if size, b, err = parley.ReadUvarint(b, uint64(len(b))); err != nil || size > uint64(len(b)) {
			return nil, false
		}
		h.body, b = b[:size:size], b[size:]
		list = append(list, h)
	}
	return list, len(b) == 0
}

// vector is how much this member has received from each, in the order of ids.
func (l *layer) vector() []byte {
	b := make([]byte, 0, 1+3*l.n)
	b = binary.AppendUvarint(b, uint64(l.view.Members.Len()))
	for id := range l.view.Members.All() {
		b = binary.AppendUvarint(b, l.recv[id])
	}
	return b
}

// readVector reads one behind vec, and returns what stands behind it.
func readVector(vec []uint64, b []byte) (out []uint64, rest []byte, ok bool) {
	count, b, err := parley.ReadUvarint(b, parley.MaxProcesses)
	for i := uint64(0); i < count && err == nil; i++ {
		var x uint64
		x, b, err = parley.ReadUvarint(b, limit)
		vec = append(vec, x)
	}
	return vec, b, err == nil
}

// State visits every variable. In durable mode what is not delivered is durable.
func (l *layer) State(v *parley.Vars) {
	visit := func() {
		parley.Num(v, "view", &l.view.Number)
		v.Set("members", &l.view.Members)
		parley.Num(v, "clock", &l.clock)
		parley.PerProcess(v, "received", l.recv, func(_ parley.ID, x *uint64) { parley.Num(v, "count", x) })
		parley.Slice(v, "pending", (*[]held)(&l.pending), func(_ int, h *held) {
			parley.Num(v, "time", &h.time)
			v.ID("sender", &h.sender)
			parley.Num(v, "count", &h.seq)
			v.Bytes("body", &h.body)
		})
		parley.Num(v, "last time", &l.last.time)
		v.ID("last sender", &l.last.sender)
	}
	if l.c.Durable {
		v.Durable(visit)
	} else {
		visit()
	}
	parley.PerProcess(v, "acknowledged", l.ack, func(_ parley.ID, row *[]uint64) {
		parley.PerProcess(v, "by", *row, func(_ parley.ID, x *uint64) { parley.Num(v, "count", x) })
	})
	parley.PerProcess(v, "delivered", l.done, func(_ parley.ID, x *uint64) { parley.Num(v, "count", x) })
	parley.Num(v, "known time", &l.known.time)
	v.ID("known sender", &l.known.sender)
	v.Bool("owe", &l.owe)
	parley.Slice(v, "queue", &l.queue, func(_ int, b *[]byte) { v.Bytes("body", b) })
}
