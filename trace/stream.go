package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Stream writes a trace while the run happens. Add does not wait. A goroutine writes the events soon afterwards. If
// the buffer has no room for an event, the stream drops and counts the event. The trace has a gap line in place of
// dropped events, and their total number in the footer. So a reader knows that the trace is incomplete.
type Stream struct {
	w io.Writer
	o StreamOptions

	mu      sync.Mutex
	queue   []queuedEvent
	bytes   int    // approximate size of the queue
	missing uint64 // dropped since the last event in the queue
	dropped uint64 // total
	closed  bool
	wake    chan struct{}
	hurry   chan struct{}
	done    chan struct{}

	// Used only by the writing goroutine:
	log     Log
	head    string // hash of the header
	began   int64  // Unix time of tick 0; 0: unknown
	buf     []byte
	written int64
	spare   []queuedEvent
	err     error
}

// queuedEvent is an event in the queue, and the number of missing events before it.
type queuedEvent struct {
	Event
	missing uint64
}

// StreamOptions configure a stream.
type StreamOptions struct {
	// Buffer is the largest memory for events that wait to be written, in bytes. 0 means 8 MiB.
	Buffer int
	// Limit is the largest size of the trace, in bytes. Further events count as dropped. 0 means no limit.
	Limit int64
	// AtOnce writes every event before Add returns, so that nothing is lost if the process is killed. Add then
	// waits for the writer.
	AtOnce bool
}

// NewStream writes the header and starts the writing goroutine. Close ends it.
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

// headOf returns the first line of a trace, and its hash.
func headOf(h Header) (line []byte, sum string, err error) {
	h.Version = Version
	if line, err = json.Marshal(h); err != nil {
		return nil, "", err
	}
	var read Header // as it will be read: invalid UTF-8 is replaced
	if err := strict(line, &read); err != nil {
		return nil, "", err
	}
	sum, err = read.hash()
	return append(line, '\n'), sum, err
}

// eventBytes is the approximate size of an event in memory, without its body.
const eventBytes = 112

// Add queues the next event. The event gets its number when it is written. Add does not wait, unless AtOnce is set.
// The event's body must not change afterwards. Add may be called concurrently.
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
	s.queue = append(s.queue, queuedEvent{e, s.missing})
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

// Dropped returns the number of events dropped so far.
func (s *Stream) Dropped() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// Close writes the queued events and the footer, and returns the first error of writing. It does not close the
// writer.
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

// flushInterval is the longest time that an event waits in memory. It is lost if the process is killed.
const flushInterval = 20 * time.Millisecond

// run writes queued events until the stream is closed.
func (s *Stream) run() {
	defer close(s.done)
	timer := time.NewTimer(flushInterval)
	defer timer.Stop()
	for open := true; open; {
		if _, open = <-s.wake; open {
			timer.Reset(flushInterval)
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

// drain writes the queued events.
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

// drop counts events that can no longer be written, and makes Add drop all others.
func (s *Stream) drop(rest []queuedEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range [][]queuedEvent{rest, s.queue} {
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

// end writes the footer.
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
