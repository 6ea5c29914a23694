package group

import (
	"encoding/binary"

	"parley"
	"parley/broadcast/problem"
)

// Bodies are numbers, sets and byte strings with their length in front, one after
// another: one encoding of each value.

func appendBytes(b, s []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// reader reads a body from its beginning. After what does not fit it is bad.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) number(limit uint64) uint64 {
	if r.bad {
		return 0
	}
	x, rest, err := parley.ReadUvarint(r.b, limit)
	r.b, r.bad = rest, err != nil
	return x
}

func (r *reader) bytes() []byte {
	size := r.number(uint64(len(r.b)))
	if r.bad || size > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	s := r.b[:size:size]
	r.b = r.b[size:]
	return s
}

func (r *reader) set(n int) parley.Set {
	if r.bad {
		return parley.Set{}
	}
	set, rest, err := problem.ReadSet(r.b, n)
	r.b, r.bad = rest, err != nil
	return set
}

// list reads so many byte strings.
func (r *reader) list(n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = r.bytes()
	}
	return out
}

// done tells whether all was read, and fitted.
func (r *reader) done() bool { return !r.bad && len(r.b) == 0 }

// maxIncarnation is the largest number of an incarnation, or a disk: a life may be numbered by the time at which it
// began, in nanoseconds. With liars others are believed up to likely, or more than what all go by, so
// that there is always one above theirs.
const (
	maxIncarnation = 1 << 62
	likely         = 1 << 61
	more           = 1 << 24
)

// joinCandidate is a process that asks to join.
type joinCandidate struct {
	id   parley.ID
	disk uint64
	life uint64
}

// after tells whether the candidate has asked later than another one of its name.
func (c joinCandidate) after(o joinCandidate) bool {
	return c.disk > o.disk || c.disk == o.disk && c.life > o.life
}

// report is what a member has to say of a view when it is to end. A process that is not in
// the view votes and has nothing to say: its report is empty.
type report struct {
	from     parley.ID       // not encoded: the link tells
	life     uint64          // its own incarnation
	leaving  bool            // it asks to be left out
	exclude  parley.Set      // and others to be
	learners []joinCandidate // that have caught up with it
	layers   [][]byte
}

func (r report) encode() []byte {
	b := binary.AppendUvarint(nil, r.life)
	flag := uint64(0)
	if r.leaving {
		flag = 1
	}
	b = binary.AppendUvarint(b, flag)
	b = binary.AppendUvarint(b, uint64(len(r.learners)))
	for _, c := range r.learners {
		b = binary.AppendUvarint(b, uint64(c.id))
		b = binary.AppendUvarint(b, c.disk)
		b = binary.AppendUvarint(b, c.life)
	}
	b = problem.AppendSet(b, r.exclude)
	for _, layer := range r.layers {
		b = appendBytes(b, layer)
	}
	return b
}

func readReport(b []byte, n, layers int) (out report, ok bool) {
	r := reader{b: b}
	out.life = r.number(maxIncarnation)
	out.leaving = r.number(1) == 1
	for range r.number(uint64(n)) {
		out.learners = append(out.learners,
			joinCandidate{parley.ID(r.number(uint64(n - 1))), r.number(maxIncarnation), r.number(maxIncarnation)})
	}
	out.exclude = r.set(n)
	out.layers = r.list(layers)
	return out, r.done()
}

// decision is what ends a view: who is in the next one, and what is delivered before it.
type decision struct {
	next     roster
	excluded parley.Set // on request of a member
	cuts     [][]byte   // by layer
}

func (d decision) encode() []byte {
	b := binary.AppendUvarint(nil, d.next.view.Number)
	b = problem.AppendSet(b, d.next.view.Members)
	for id := range d.next.view.Members.All() {
		b = binary.AppendUvarint(b, d.next.lives[id])
	}
	for _, disk := range d.next.disks {
		b = binary.AppendUvarint(b, disk)
	}
	b = problem.AppendSet(b, d.excluded)
	for _, cut := range d.cuts {
		b = appendBytes(b, cut)
	}
	return b
}

func readDecision(b []byte, n, layers int) (d decision, ok bool) {
	r := reader{b: b}
	d.next.view.Number = r.number(1 << 31)
	d.next.view.Members = r.set(n)
	d.next.lives = make([]uint64, n)
	for id := range d.next.view.Members.All() {
		d.next.lives[id] = r.number(maxIncarnation)
	}
	d.next.disks = make([]uint64, n)
	for id := range d.next.disks {
		d.next.disks[id] = r.number(maxIncarnation)
	}
	d.excluded = r.set(n)
	d.cuts = r.list(layers)
	return d, r.done()
}
