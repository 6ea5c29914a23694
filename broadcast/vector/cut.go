package vector

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/broadcast/problem"
	"parley/broadcast/views"
	"parley/membership/group"
)

// The records of durable mode begin with one of these.
const (
	holds    = 1 // a message that was received
	delivers = 2 // the name of one that was delivered
)

// message is a message and its name.
type message struct {
	name
	held
}

// Report returns all that this member holds.
func (l *layer) Report() []byte {
	var list []message
	for q := range l.streams {
		ln := &l.streams[q]
		for i, h := range ln.held {
			list = append(list, message{name{parley.ID(q), ln.gone + uint64(i) + 1}, h})
		}
	}
	return appendMessages(nil, list)
}

// Cut: the union of the reports. A malformed report counts as empty.
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

// Reads reports whether bytes are a cut.
func (l *layer) Reads(cut []byte) bool {
	_, ok := readMessages(cut, l.n)
	return ok
}

// Install delivers the messages of the cut that this member has not delivered, each at its level. A message
// that cannot be delivered then depends on one that no continuing member has, and none of them delivers it.
// Then all counters of the view are 0.
func (l *layer) Install(s *parley.Step, cut []byte, next group.View) {
	list, ok := readMessages(cut, l.n)
	if !ok && cut != nil {
		panic("vector: the cut of the view cannot be read")
	}
	for _, id := range l.again {
		ln := &l.streams[id.sender]
		s.Deliver(id.sender, parley.Msg{Kind: parley.Carried, Origin: id.sender, Body: ln.at(id.seq).body})
	}
	for _, m := range list {
		l.streams[m.sender].fill(m)
	}
	if cut != nil {
		l.release(s, true)
	}
	l.Begin(next)
	l.again = nil
	clear(l.streams)
	if len(l.queue) > 0 { // their own deliveries belong to the next view
		s.SetTimer(opening, 1)
	}
}

// Snapshot returns what was delivered in this view: for each process up to which number, and which numbers
// beyond. What a restarted member will deliver again is missing there: the deliveries that a joiner is given along with
// the snapshot do not have it, so the joiner must deliver it by the cut.
func (l *layer) Snapshot() []byte {
	var b []byte
	for q := range l.streams {
		ln := &l.streams[q]
		done, again := ln.done, make(map[uint64]bool)
		for _, id := range l.again {
			if id.sender == parley.ID(q) {
				done, again[id.seq] = min(done, id.seq-1), true
			}
		}
		var beyond []uint64
		for i := done - ln.gone; i < uint64(len(ln.held)); i++ {
			if seq := ln.gone + i + 1; ln.held[i].delivered && !again[seq] {
				beyond = append(beyond, seq-done)
			}
		}
		b = binary.AppendUvarint(b, done)
		b = binary.AppendUvarint(b, uint64(len(beyond)))
		for _, distance := range beyond {
			b = binary.AppendUvarint(b, distance)
		}
	}
	return b
}

// Restore sets the state of a joiner to that of its sponsor. Of the messages delivered beyond the first
// undelivered one, and of that one, the joiner has only the place.
func (l *layer) Restore(snapshot []byte) bool {
	lines, r := make([]stream, l.n), parley.Reader{Rest: snapshot}
	for q := range lines {
		ln := &lines[q]
		ln.done = r.Number(views.Limit)
		ln.gone, ln.top = ln.done, ln.done
		for i := r.Count(); i > 0; i-- {
			seq := ln.done + r.Number(maxWindow)
			if r.Bad || seq <= ln.received()+1 {
				return false
			}
			ln.held = append(ln.held, make([]held, seq-ln.received())...)
			ln.held[len(ln.held)-1].delivered = true
			ln.top = seq
		}
	}
	if r.Done() {
		l.streams = lines
	}
	return r.Done()
}

// Replay restores a record from before a crash: a message that this member held, or the name of one that it
// had delivered.
func (l *layer) Replay(rec []byte) bool {
	r := parley.Reader{Rest: rec}
	switch r.Number(delivers) {
	case holds:
		m := readMessage(&r, l.n)
		if ln := &l.streams[m.sender]; r.Done() && m.seq == ln.received()+1 {
			ln.held = append(ln.held, m.held)
			return true
		}
	case delivers:
		id := readName(&r, l.n)
		if ln := &l.streams[id.sender]; r.Done() && id.seq > ln.gone && id.seq <= ln.received() {
			ln.deliver(id.seq)
			l.again = append(l.again, id)
			return true
		}
	}
	return false
}

func appendName(b []byte, id name) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(id.sender)), id.seq)
}

func readName(r *parley.Reader, n int) name {
	id := name{r.ID(n), r.Number(views.Limit)}
	r.Bad = r.Bad || id.seq == 0
	return id
}

// appendMessages appends the number of messages, and each of them.
func appendMessages(b []byte, list []message) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, m := range list {
		b = appendMessage(b, m)
	}
	return b
}

// appendMessage appends a message: its name, its level, for level Causal how many messages of each process
// precede it, and its payload with the length.
func appendMessage(b []byte, m message) []byte {
	b = append(appendName(b, m.name), byte(m.level))
	if m.level == Causal {
		for _, count := range m.need {
			b = binary.AppendUvarint(b, count)
		}
	}
	return parley.AppendBytes(b, m.body)
}

// readMessages decodes what appendMessages encoded, among n processes, which must be all of b.
func readMessages(b []byte, n int) (list []message, ok bool) {
	r := parley.Reader{Rest: b}
	for i := r.Count(); i > 0 && !r.Bad; i-- {
		list = append(list, readMessage(&r, n))
	}
	return list, r.Done()
}

func readMessage(r *parley.Reader, n int) message {
	m := message{name: readName(r, n)}
	m.level = Level(r.Number(uint64(Causal)))
	for q := 0; m.level == Causal && q < n; q++ {
		m.need = append(m.need, r.Number(views.Limit))
	}
	m.body = r.Bytes()
	r.Bad = r.Bad || m.level == 0
	return m
}

// show shows how many messages of each process were delivered in the view, and the messages that wait.
func (l *layer) show(shown *parley.Shown) {
	done := make([]string, len(l.streams))
	for q := range l.streams {
		done[q] = strconv.FormatUint(l.streams[q].done, 10)
	}
	shown.Derive(parley.Variable{Name: "vector clock", Kind: parley.CountVector, Value: strings.Join(done, " ")})
	for q := range l.streams {
		ln := &l.streams[q]
		for i := range ln.held {
			if h := &ln.held[i]; !h.delivered && ln.gone+uint64(i) >= ln.done {
				id := name{parley.ID(q), ln.gone + uint64(i) + 1}
				shown.Derive(problem.Held(id.sender, id.seq, h.body, l.missing(shown, id, h)))
			}
		}
	}
}

// missing says what a message waits for.
func (l *layer) missing(shown *parley.Shown, id name, h *held) string {
	if h.level == Uniform {
		return "notice that all members hold it"
	}
	waits := []string{problem.Missing(shown.Called(id.sender), l.streams[id.sender].done, id.seq-1)}
	for q, count := range h.need {
		if parley.ID(q) != id.sender {
			waits = append(waits, problem.Missing(shown.Called(parley.ID(q)), l.streams[q].done, count))
		}
	}
	waits = slices.DeleteFunc(waits, func(text string) bool { return text == "" })
	return strings.Join(waits, ", ")
}

// State visits every variable. In durable mode the received messages, and which of them were delivered, are
// durable.
func (l *layer) State(v *parley.Vars) {
	if shown := v.Shown(); shown != nil {
		l.show(shown)
	}
	l.Member.State(v, l.c.Durable, func() {
		parley.PerProcess(v, "from", l.streams, func(_ parley.ID, ln *stream) { ln.state(v, l.n) })
		parley.Slice(v, "again", &l.again, func(_ int, id *name) {
			v.ID("sender", &id.sender)
			parley.Num(v, "count", &id.seq)
		})
	})
	parley.Slice(v, "queue", &l.queue, func(_ int, r *request) {
		parley.Num(v, "level", &r.level)
		v.Bytes("body", &r.body)
	})
}
