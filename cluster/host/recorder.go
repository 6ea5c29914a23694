package host

import (
	"cmp"
	"encoding/binary"
	"io"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/trace"
)

// Recorder keeps the last events of all machines of a node, in a fixed amount of memory: a flight recorder.
// It truncates long messages. Its methods are safe for concurrent use.
type Recorder struct {
	mu   sync.Mutex
	ring []byte // records, one after another; see add
	head int    // the oldest record
	tail int    // the place for the next record
	held int    // the number of records
	all  []*tape
}

// tape is what a recorder knows of one machine.
type tape struct {
	r      *Recorder
	number uint32 // its index in the recorder
	header trace.Header
	added  uint64 // events so far
}

// How much of a message is kept, and the maximum length of a record: the length of the rest, the tape, and
// the event.
const (
	mostBody   = 256
	mostRecord = 4 + 4 + 10*binary.MaxVarintLen64 + mostBody
	leastRing  = 16 * mostRecord
	wraps      = ^uint32(0) // instead of a length: the next record is at the beginning
)

// RecorderSize is the default memory of a recorder in bytes.
const RecorderSize = 4 << 20

// NewRecorder returns a recorder of size bytes, or of the smallest possible size if size is less.
func NewRecorder(size int) *Recorder {
	return &Recorder{ring: make([]byte, max(size, leastRing))}
}

// track begins to record another machine.
func (r *Recorder) track(h trace.Header) *tape {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &tape{r: r, number: uint32(len(r.all)), header: h}
	r.all = append(r.all, t)
	return t
}

// add puts an event into the ring, replacing the oldest ones.
func (t *tape) add(e *trace.Event) {
	r := t.r
	body := e.Msg.Body[:min(len(e.Msg.Body), mostBody)]
	r.mu.Lock()
	if r.tail+mostRecord > len(r.ring) {
		r.free(r.tail, len(r.ring))
		if r.tail+4 <= len(r.ring) {
			binary.LittleEndian.PutUint32(r.ring[r.tail:], wraps)
		}
		r.tail = 0
	}
	r.free(r.tail, r.tail+mostRecord)
	b := r.ring[r.tail : r.tail+8]
	binary.LittleEndian.PutUint32(b[4:], t.number)
	b = append(b, byte(e.Op))
	b = binary.AppendUvarint(b, uint64(e.At))
	b = binary.AppendUvarint(b, uint64(e.Peer))
	b = binary.AppendVarint(b, int64(e.Time))
	b = binary.AppendUvarint(b, uint64(e.Epoch))
	b = binary.AppendUvarint(b, uint64(e.Path))
	b = append(b, byte(e.Msg.Kind))
	b = binary.AppendUvarint(b, uint64(e.Msg.Origin))
	b = binary.AppendUvarint(b, e.Msg.Seq)
	b = binary.AppendUvarint(b, e.Msg.Value)
	b = binary.AppendUvarint(b, uint64(len(e.Msg.Body)-len(body)))
	b = append(b, body...)
	binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
	if r.held == 0 {
		r.head = r.tail
	}
	r.tail += len(b)
	r.held++
	t.added++
	r.mu.Unlock()
}

// free drops the oldest records, as far as they are between two places.
func (r *Recorder) free(from, to int) {
	for r.held > 0 && r.head >= from && r.head < to {
		r.head = r.after(r.head)
		r.held--
	}
}

// after returns the place of the record that follows the one at a place.
func (r *Recorder) after(at int) int {
	at += 4 + int(binary.LittleEndian.Uint32(r.ring[at:]))
	if at+4 > len(r.ring) || binary.LittleEndian.Uint32(r.ring[at:]) == wraps && r.held > 1 {
		return 0
	}
	return at
}

// events returns the recorded events, by tape.
func (r *Recorder) events() (list [][]trace.Event, all []tape) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list = make([][]trace.Event, len(r.all))
	for _, t := range r.all {
		all = append(all, *t)
	}
	at := r.head
	for left := r.held; left > 0; left-- {
		size := int(binary.LittleEndian.Uint32(r.ring[at:]))
		b := r.ring[at+4 : at+4+size]
		number := binary.LittleEndian.Uint32(b)
		list[number] = append(list[number], readEvent(b[4:]))
		if at += 4 + size; left > 1 && (at+4 > len(r.ring) || binary.LittleEndian.Uint32(r.ring[at:]) == wraps) {
			at = 0
		}
	}
	return list, all
}

// readEvent decodes what add wrote.
func readEvent(b []byte) (e trace.Event) {
	next := func() uint64 {
		x, n := binary.Uvarint(b)
		b = b[n:]
		return x
	}
	e.Op, b = trace.Op(b[0]), b[1:]
	e.At, e.Peer = parley.ID(next()), parley.ID(next())
	now, n := binary.Varint(b)
	e.Time, b = parley.Tick(now), b[n:]
	e.Epoch, e.Path = uint32(next()), parley.Path(next())
	e.Msg.Kind, b = parley.Kind(b[0]), b[1:]
	e.Msg.Origin, e.Msg.Seq, e.Msg.Value = parley.ID(next()), next(), next()
	e.Cut = uint32(next())
	if len(b) > 0 {
		e.Msg.Body = append([]byte(nil), b...)
	}
	return e
}

// Excerpt selects recorded events. The zero value selects all.
type Excerpt struct {
	Machine string        // the name of the only machine; empty: all
	Last    time.Duration // the maximum age of events; 0: no limit
	Most    int           // the maximum number of events of each machine, the latest ones; 0: no limit
}

// of returns the selected events of a machine, whose clock shows now.
func (x Excerpt) of(machine string, now parley.Tick, events []trace.Event) []trace.Event {
	if x.Machine != "" && x.Machine != machine {
		return nil
	}
	if x.Last > 0 {
		from := now - parley.Tick(x.Last)
		first, _ := slices.BinarySearchFunc(events, from, func(e trace.Event, t parley.Tick) int {
			return cmp.Compare(e.Time, t)
		})
		events = events[first:]
	}
	if x.Most > 0 {
		events = events[max(len(events)-x.Most, 0):]
	}
	return events
}

// Dump writes the recorded events that an excerpt selects: one trace for each machine that has any, one after another,
// with the number of dropped events. The machines continue meanwhile.
func (r *Recorder) Dump(w io.Writer, x Excerpt) error {
	list, all := r.events()
	for i, events := range list {
		now := parley.Tick(time.Now().UnixNano() - all[i].header.Node.Began)
		events = x.of(all[i].header.Node.Machine, now, events)
		if len(events) == 0 {
			continue
		}
		log := &trace.Log{Keep: true, Until: now}
		if forgotten := all[i].added - uint64(len(events)); forgotten > 0 {
			log.Gaps = []trace.Gap{{Events: forgotten}}
		}
		for _, e := range events {
			log.Add(e)
		}
		if err := trace.Write(w, all[i].header, log); err != nil {
			return err
		}
	}
	return nil
}
