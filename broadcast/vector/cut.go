package vector

import (
	"cmp"
	"encoding/binary"
	"slices"

	"parley"
	"parley/membership/group"
)

// The records of durable mode begin with one of these.
const (
	holds    = 1 // a message that was received
	delivers = 2 // the name of one that was delivered
)

// message is one with its name.
type message struct {
	name
	held
}

// Report: all that this member holds.
func (l *layer) Report() []byte {
	var list []message
	for q := range l.lines {
		ln := &l.lines[q]
		for i, h := range ln.held {
			list = append(list, message{name{parley.ID(q), ln.gone + uint64(i) + 1}, h})
		}
	}
	return appendMessages(nil, list)
}

// Cut: the union of the reports. One that cannot be read is none of ours and has nothing.
func (l *layer) Cut(reports [][]byte) []byte {
	var union []message
	for _, report := range reports {
		if list, ok := readMessages(report, l.n); ok {
			union = append(union, list...)
		}
	}
	slices.SortStableFunc(union, compare)
	return appendMessages(nil, slices.CompactFunc(union, func(a, b message) bool { return a.name == b.name }))
}

func compare(a, b message) int {
	return cmp.Or(cmp.Compare(a.sender, b.sender), cmp.Compare(a.seq, b.seq))
}

// Reads tells whether bytes are a cut.
func (l *layer) Reads(cut []byte) bool {
	_, ok := readMessages(cut, l.n)
	return ok
}

// Install delivers what of the cut this member has not, each message at its level. What
// then cannot be delivered depends on what nobody has who goes on, and is not delivered
// by any of them. Then all counters of the view are 0.
func (l *layer) Install(s *parley.Step, cut []byte, next group.View) {
	list, ok := readMessages(cut, l.n)
	if !ok && cut != nil {
		panic("vector: the cut of the view cannot be read")
	}
	for _, id := range l.again {
		ln := &l.lines[id.sender]
		s.Deliver(id.sender, parley.Msg{Kind: parley.Carried, Origin: id.sender, Body: ln.at(id.seq).body})
	}
	for _, m := range list {
		l.lines[m.sender].fill(m)
	}
	if cut != nil {
		l.release(s, true)
	}
	l.view = next
	l.again, l.owe = nil, false
	clear(l.lines)
	for _, row := range l.ack {
		clear(row)
	}
	if len(l.queue) > 0 { // what it delivers of that it delivers in the next view
		s.SetTimer(opening, 1)
	}
}

// Snapshot is what was delivered in this view: of each process up to where, and what
// beyond.
func (l *layer) Snapshot() []byte {
	var b []byte
	for q := range l.lines {
		ln := &l.lines[q]
		var beyond []uint64
		for i := ln.done - ln.gone; i < uint64(len(ln.held)); i++ {
			if ln.held[i].delivered {
				beyond = append(beyond, ln.gone+i+1-ln.done)
			}
		}
		b = binary.AppendUvarint(b, ln.done)
		b = binary.AppendUvarint(b, uint64(len(beyond)))
		for _, distance := range beyond {
			b = binary.AppendUvarint(b, distance)
		}
	}
	return b
}

// Restore takes a joiner to where its sponsor stands. Of what was delivered beyond the first
// message that was not, and of that, it has no more than the place.
func (l *layer) Restore(snapshot []byte) bool {
	lines := make([]line, l.n)
	for q := range lines {
		ln := &lines[q]
		var count uint64
		var err error
		if ln.done, snapshot, err = parley.ReadUvarint(snapshot, limit); err != nil {
			return false
		}
		if count, snapshot, err = parley.ReadUvarint(snapshot, uint64(len(snapshot))); err != nil {
			return false
		}
		ln.gone, ln.top = ln.done, ln.done
		for range count {
			var distance uint64
			if distance, snapshot, err = parley.ReadUvarint(snapshot, most); err != nil || ln.done+distance <= ln.received()+1 {
				return false
			}
			ln.held = append(ln.held, make([]held, ln.done+distance-ln.received())...)
			ln.held[len(ln.held)-1].delivered = true
			ln.top = ln.received()
		}
	}
	if len(snapshot) > 0 {
		return false
	}
	l.lines = lines
	return true
}

// Replay takes a record of before a crash: a message that this member held, or the name of
// one that it had delivered.
func (l *layer) Replay(rec []byte) bool {
	switch {
	case len(rec) == 0:
		return false
	case rec[0] == holds:
		list, ok := readMessages(append([]byte{1}, rec[1:]...), l.n)
		if !ok || list[0].seq != l.lines[list[0].sender].received()+1 {
			return false
		}
		ln := &l.lines[list[0].sender]
		ln.held = append(ln.held, list[0].held)
		return true
	case rec[0] == delivers:
		id, rest, ok := readName(rec[1:], l.n)
		if ln := &l.lines[id.sender]; !ok || len(rest) > 0 || id.seq <= ln.gone || id.seq > ln.received() {
			return false
		}
		l.lines[id.sender].deliver(id.seq)
		l.again = append(l.again, id)
		return true
	}
	return false
}

func appendName(b []byte, id name) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(id.sender)), id.seq)
}

func readName(b []byte, n int) (id name, rest []byte, ok bool) {
	sender, b, err := parley.ReadUvarint(b, uint64(n-1))
	if err != nil {
		return name{}, nil, false
	}
	seq, b, err := parley.ReadUvarint(b, limit)
	return name{parley.ID(sender), seq}, b, err == nil && seq > 0
}

// appendMessages appends how many there are, and each.
func appendMessages(b []byte, list []message) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, m := range list {
		b = appendMessage(b, m)
	}
	return b
}

// appendMessage appends a message: its name, its level, for level Causal how many
// messages of each process come before it, and its payload with the length.
func appendMessage(b []byte, m message) []byte {
	b = append(appendName(b, m.name), byte(m.level))
	if m.level == Causal {
		for _, count := range m.need {
			b = binary.AppendUvarint(b, count)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(m.body)))
	return append(b, m.body...)
}

// readMessages reads what appendMessages wrote, of n processes, which takes up all of b.
func readMessages(b []byte, n int) (list []message, ok bool) {
	count, b, err := parley.ReadUvarint(b, uint64(len(b)))
	if err != nil {
		return nil, false
	}
	for range count {
		var m message
		if m.name, b, ok = readName(b, n); !ok || len(b) == 0 || b[0] == 0 || b[0] > byte(Causal) {
			return nil, false
		}
		m.level, b = Level(b[0]), b[1:]
		for q := 0; m.level == Causal && q < n; q++ {
			var before uint64
			if before, b, err = parley.ReadUvarint(b, limit); err != nil {
				return nil, false
			}
			m.need = append(m.need, before)
		}
		var size uint64
		if size, b, err = parley.ReadUvarint(b, uint64(len(b))); err != nil || size > uint64(len(b)) {
			return nil, false
		}
		m.body, b = b[:size:size], b[size:]
		list = append(list, m)
	}
	return list, len(b) == 0
}

// vector is how much of each member somebody says, in the order of ids.
type vector []uint64

// vector is something of each member, with room for what stands behind it.
func (l *layer) vector(room int, of func(parley.ID) uint64) []byte {
	return appendVector(make([]byte, 0, 1+3*l.n+room), l.view.Members, of)
}

func appendVector(b []byte, members parley.Set, of func(parley.ID) uint64) []byte {
	b = binary.AppendUvarint(b, uint64(members.Len()))
	for id := range members.All() {
		b = binary.AppendUvarint(b, of(id))
	}
	return b
}

// of is how much a vector of the members says of one of them.
func (vec vector) of(id parley.ID, members parley.Set) uint64 {
	rank := 0
	for member := range members.All() {
		if member == id {
			break
		}
		rank++
	}
	return vec[rank]
}

// readVector reads one behind vec, and returns what stands behind it.
func readVector(vec vector, b []byte) (out vector, rest []byte, ok bool) {
	count, b, err := parley.ReadUvarint(b, parley.MaxProcesses)
	for i := uint64(0); i < count && err == nil; i++ {
		var x uint64
		x, b, err = parley.ReadUvarint(b, limit)
		vec = append(vec, x)
	}
	return vec, b, err == nil
}

// State visits every variable. In durable mode what came and what was delivered of it is
// durable.
func (l *layer) State(v *parley.Vars) {
	visit := func() {
		parley.Num(v, "view", &l.view.Number)
		v.Set("members", &l.view.Members)
		parley.PerProcess(v, "from", l.lines, func(_ parley.ID, ln *line) { ln.state(v, l.n) })
		parley.Slice(v, "again", &l.again, func(_ int, id *name) {
			v.ID("sender", &id.sender)
			parley.Num(v, "count", &id.seq)
		})
	}
	if l.c.Durable {
		v.Durable(visit)
	} else {
		visit()
	}
	parley.PerProcess(v, "acknowledged", l.ack, func(_ parley.ID, row *[]uint64) {
		parley.PerProcess(v, "by", *row, func(_ parley.ID, x *uint64) { parley.Num(v, "count", x) })
	})
	v.Bool("owe", &l.owe)
	parley.Slice(v, "queue", &l.queue, func(_ int, r *request) {
		parley.Num(v, "level", &r.level)
		v.Bytes("body", &r.body)
	})
}
