package group

import (
	"encoding/binary"

	"parley"
)

// readList reads n byte strings.
func readList(r *parley.Reader, n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = r.Bytes()
	}
	return out
}

// maxIncarnation is the largest number of an incarnation or a disk: the number of an incarnation may be the
// time at which it began, in nanoseconds. With liars, a number from another process is believed only up to
// likelyIncarnation, or up to incarnationMargin above the known one, so that there is always room for greater
// numbers.
const (
	maxIncarnation    = 1 << 62
	likelyIncarnation = 1 << 61
	incarnationMargin = 1 << 24
)

// joinCandidate is a process that asks to join.
type joinCandidate struct {
	id   parley.ID
	disk uint64
	life uint64
}

// after reports whether c asked later than o, another incarnation of the same process.
func (c joinCandidate) after(o joinCandidate) bool {
	return c.disk > o.disk || c.disk == o.disk && c.life > o.life
}

// report is what a member reports about a view that is to end. A process that is not in the view votes with
// an empty report.
type report struct {
	from     parley.ID       // not encoded: the link names the sender
	life     uint64          // its own incarnation
	leaving  bool            // asks to be removed
	exclude  parley.Set      // members that it wants removed
	learners []joinCandidate // that have caught up with this member
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
	b = parley.AppendSet(b, r.exclude)
	for _, layer := range r.layers {
		b = parley.AppendBytes(b, layer)
	}
	return b
}

func readReport(b []byte, n, layers int) (out report, ok bool) {
	r := parley.Reader{Rest: b}
	out.life = r.Number(maxIncarnation)
	out.leaving = r.Number(1) == 1
	for range r.Number(uint64(n)) {
		out.learners = append(out.learners,
			joinCandidate{r.ID(n), r.Number(maxIncarnation), r.Number(maxIncarnation)})
	}
	out.exclude = r.Set(n)
	out.layers = readList(&r, layers)
	return out, r.Done()
}

// decision ends a view: the members of the next one, and what is delivered before it.
type decision struct {
	next     roster
	excluded parley.Set // on request of a member
	cuts     [][]byte   // by layer
}

func (d decision) encode() []byte {
	b := binary.AppendUvarint(nil, d.next.view.Number)
	b = parley.AppendSet(b, d.next.view.Members)
	for id := range d.next.view.Members.All() {
		b = binary.AppendUvarint(b, d.next.lives[id])
	}
	for _, disk := range d.next.disks {
		b = binary.AppendUvarint(b, disk)
	}
	b = parley.AppendSet(b, d.excluded)
	for _, cut := range d.cuts {
		b = parley.AppendBytes(b, cut)
	}
	return b
}

func readDecision(b []byte, n, layers int) (d decision, ok bool) {
	r := parley.Reader{Rest: b}
	d.next.view.Number = r.Number(1 << 31)
	d.next.view.Members = r.Set(n)
	d.next.lives = make([]uint64, n)
	for id := range d.next.view.Members.All() {
		d.next.lives[id] = r.Number(maxIncarnation)
	}
	d.next.disks = make([]uint64, n)
	for id := range d.next.disks {
		d.next.disks[id] = r.Number(maxIncarnation)
	}
	d.excluded = r.Set(n)
	d.cuts = readList(&r, layers)
	return d, r.Done()
}
