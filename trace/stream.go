package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Stream writes a trace while it happens. Events are taken in without waiting and written
// by a goroutine of its own, soon. What there is no room for is dropped, counted, and said
// in the place where it is missing and in the last line: a reader knows that the trace is
// not complete.
type Stream struct {
	w io.Writer
	o StreamOptions

	mu      sync.Mutex
	queue   []taken
	bytes   int    // in the queue, about
	missing uint64 // dropped since the last event in the queue
	dropped uint64 // in all
	closed  bool
	wake    chan struct{}
	hurry   chan struct{}
	done    chan struct{}

	// of the goroutine that writes
	log     Log
	head    string // the hash of the header
	began   int64  // Unix time of tick 0, 0 if nobody knows
	buf     []byte
	written int64
	spare   []taken
	err     error
}

// taken is an event that is to be written, and how many are missing before it.
type taken struct {
	Event
	missing uint64
}

// StreamOptions say how a stream is written.
type StreamOptions struct {
	// Buffer is how much may wait to be written, in bytes; by default 8 MiB.
	Buffer int
	// Limit is how much is written at most, in bytes; by default there is no limit. What is
	// over it counts as dropped.
	Limit int64
	// AtOnce has every event written before Add returns, so that nothing is lost if the
	// process is killed. Add then waits for the writer.
	AtOnce bool
}

// NewStream writes the header, and then begins.
func NewStream(w io.Writer, h Header, o StreamOptions) (*Stream, error) {
	if o.Buffer == 0 {
		o.Buffer = 8 << 20
	}
	s := &Stream{
		w: w, o: o, wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1), done: make(chan struct{}),
	}
	head, sum, err := headOf(h)
	if err != nil {
		return nil, err
	}
	if s.head = sum; h.Node != nil {
		s.began = h.Node.Began
	}
	if err := s.write(head); err != nil {
		return nil, err
	}
	go s.run()
	return s, nil
}

// headOf is the first line of a trace, and its hash.
func headOf(h Header) (line []byte, sum string, err error) {
	h.Version = Version
	if line, err = json.Marshal(h); err != nil {
		return nil, "", err
	}
	var read Header // as it will be: text that is no text is read as something else
	if err := strict(line, &read); err != nil {
		return nil, "", err
	}
	sum, err = read.hash()
	return append(line, '\n'), sum, err
}

// eventBytes is about what an event takes up in memory, beside its body.
const eventBytes = 112

// Add takes in the next event, and gives it its number when it is written. It does not
// wait. The event's body must not change any more.
func (s *Stream) Add(e Event) {
	s.mu.Lock()
	size := eventBytes + len(e.Msg.Body)
	if s.closed || s.bytes+size > s.o.Buffer {
		s.missing++
		s.dropped++
		s.mu.Unlock()
		return
	}
	if s.o.AtOnce {
		e.ID = s.log.Add(e)
		s.buf = appendEvent(s.buf[:0], &e)
		s.flush()
		s.mu.Unlock()
		return
	}
	first := len(s.queue) == 0
	s.queue = append(s.queue, taken{e, s.missing})
	s.missing = 0
	much := s.bytes < s.o.Buffer/4 && s.bytes+size >= s.o.Buffer/4
	s.bytes += size
	s.mu.Unlock()
	if first {
		poke(s.wake)
	}
	if much {
		poke(s.hurry)
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Dropped is how many events are missing so far.
func (s *Stream) Dropped() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// Close writes what waits, and the last line. It does not close the writer.
func (s *Stream) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if !again {
		close(s.wake)
	}
	<-s.done
	if again {
		return nil
	}
	if s.err != nil {
		return fmt.Errorf("trace: %w", s.err)
	}
	return nil
}

// every is how long what happens may wait in memory. It is lost if the process is killed.
const every = 20 * time.Millisecond

// run writes what comes, until the stream is closed.
func (s *Stream) run() {
	defer close(s.done)
	timer := time.NewTimer(every)
	defer timer.Stop()
	for open := true; open; {
		if _, open = <-s.wake; open {
			timer.Reset(every)
			select {
			case <-timer.C:
			case <-s.hurry:
			case _, open = <-s.wake:
			}
		}
		s.drain()
	}
	s.end()
}

// drain writes what has gathered.
func (s *Stream) drain() {
	s.mu.Lock()
	queue := s.queue
	s.queue, s.bytes = s.spare[:0], 0
	s.mu.Unlock()
	s.buf = s.buf[:0]
	for i := range queue {
		e := &queue[i]
		if s.err != nil || s.o.Limit > 0 && s.written+int64(len(s.buf)) >= s.o.Limit {
			s.drop(queue[i:])
			break
		}
		if e.missing > 0 {
			s.gap(e.missing)
		}
		e.ID = s.log.Add(e.Event)
		s.buf = appendEvent(s.buf, &e.Event)
		if len(s.buf) > 1<<20 {
			s.flush()
		}
	}
	s.flush()
	clear(queue)
	s.spare = queue
}

// drop counts events that can not be written any more, and takes in no others.
func (s *Stream) drop(rest []taken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range [][]taken{rest, s.queue} {
		for i := range list {
			s.dropped++
			s.missing += 1 + list[i].missing
		}
	}
	clear(s.queue)
	s.queue = s.queue[:0]
	s.o.Buffer, s.bytes = 0, 0
}

func (s *Stream) gap(events uint64) { s.buf = fmt.Appendf(s.buf, "{\"dropped\":%d}\n", events) }

func (s *Stream) flush() {
	if s.err == nil && len(s.buf) > 0 {
		s.err = s.write(s.buf)
	}
	s.buf = s.buf[:0]
}

func (s *Stream) write(b []byte) error {
	n, err := s.w.Write(b)
	s.written += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// end writes the last line.
func (s *Stream) end() {
	s.mu.Lock()
	missing, dropped := s.missing, s.dropped
	s.mu.Unlock()
	if missing > 0 {
		s.gap(missing)
	}
	end := footer{End: s.log.count, Hash: s.log.Hash(), Header: s.head, Dropped: dropped}
	if s.began != 0 {
		end.Until = time.Now().UnixNano() - s.began
	}
	last, err := json.Marshal(end)
	if err != nil {
		s.err = errors.Join(s.err, err)
		return
	}
	s.buf = append(append(s.buf, last...), '\n')
	s.flush()
}
