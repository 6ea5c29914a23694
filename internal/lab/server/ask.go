package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"parley/internal/lab/engine"
)

// Limits of the questions.
const (
	Answers = 4  // questions that are answered at the same time
	Waiting = 64 // questions that are received, or wait until they are answered
	Uploads = 4  // trace files that are received, or wait until they are read

	// LongestWait is how long a question waits until it is answered.
	LongestWait = 60 * time.Second
	// Patience is how long the server waits for a client that does not send or receive.
	Patience = 30 * time.Second
)

// queue is where questions wait. Its channels hold an element for each question: the first for all, the second for
// those that are answered. The third has one for each trace file.
type queue struct{ here, answered, uploads chan struct{} }

func newQueue() queue {
	return queue{make(chan struct{}, Answers+Waiting), make(chan struct{}, Answers), make(chan struct{}, Uploads)}
}

// enter lets a question in. Unless it refuses, leave must be called afterwards.
func (q queue) enter() *refusal {
	select {
	case q.here <- struct{}{}:
		return nil
	default:
		return refuse(http.StatusServiceUnavailable, "Refused: %d questions are waiting already: ask again later.", Waiting)
	}
}

func (q queue) leave() { <-q.here }

// begin waits until a question may be answered. Unless it refuses, end must be called afterwards.
func (q queue) begin(ctx context.Context) *refusal {
	longest := time.NewTimer(LongestWait)
	defer longest.Stop()
	select {
	case q.answered <- struct{}{}:
		return nil
	case <-ctx.Done():
		return refuse(http.StatusServiceUnavailable, "Refused: the request or the server has ended.")
	case <-longest.C:
		return refuse(http.StatusServiceUnavailable,
			"Refused: %d other questions have been in progress for %.0f s: stop one of them, or ask again later.",
			Answers, LongestWait.Seconds())
	}
}

func (q queue) end() { <-q.answered }

// impatient ends the request's reads and then its writes if the client does not send or receive. It also ends the reads
// of net/http, which discards the body of a refused request before it responds.
func impatient(w http.ResponseWriter) {
	conn, now := http.NewResponseController(w), time.Now()
	supported(conn.SetReadDeadline(now.Add(Patience)))
	supported(conn.SetWriteDeadline(now.Add(2 * Patience)))
}

// supported demands that a connection has deadlines. Other errors mean that it has ended, which the next read or write
// reports.
func supported(err error) {
	if errors.Is(err, http.ErrNotSupported) {
		panic("server: the connection has no deadlines")
	}
}

// body reads the body of a request.
func body(w http.ResponseWriter, r *http.Request, most int64) ([]byte, *refusal) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, refuse(http.StatusRequestEntityTooLarge, "Refused: the request has more than %d bytes.", most)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, refuse(http.StatusRequestTimeout, "Refused: the request was not complete after %.0f s.",
			Patience.Seconds())
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "Refused: the request is incomplete.")
	}
	return b, nil
}

// ask answers a question: a line for each report of progress, and a line with the answer.
func (s *server) ask(w http.ResponseWriter, r *http.Request) *refusal {
	if err := s.queue.enter(); err != nil {
		return err
	}
	defer s.queue.leave()
	question, err := body(w, r, engine.MaxQuestion)
	if err != nil {
		return err
	}
	conn := http.NewResponseController(w)
	supported(conn.SetReadDeadline(time.Time{})) // otherwise the deadlines would end the request
	supported(conn.SetWriteDeadline(time.Time{}))
	if err := s.queue.begin(r.Context()); err != nil {
		return err
	}
	defer s.queue.end()
	ctx, end := context.WithCancel(r.Context())
	defer end()
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := lines{w: w, conn: conn, end: end}
	answer := s.Answer(ctx, question, func(progress []byte) {
		out.write("progress", progress)
		supported(conn.SetWriteDeadline(time.Time{}))
	})
	out.write("answer", answer)
	return nil
}

// keep keeps the run of a trace file. It receives the whole file first: a client that stalls must not keep the engine
// from answering others. Files are large, so few are received at the same time.
func (s *server) keep(w http.ResponseWriter, r *http.Request) *refusal {
	select {
	case s.queue.uploads <- struct{}{}:
		defer func() { <-s.queue.uploads }()
	default:
		return refuse(http.StatusServiceUnavailable,
			"Refused: %d other traces are being received: send the trace again later.", Uploads)
	}
	file, err := body(w, r, engine.MaxTrace)
	if err != nil {
		if err.status == http.StatusRequestEntityTooLarge {
			return refuse(err.status, "Refused: the trace has more than %d MB.", engine.MaxTrace>>20)
		}
		return err
	}
	conn := http.NewResponseController(w)
	supported(conn.SetReadDeadline(time.Time{})) // otherwise the deadlines would end the request
	supported(conn.SetWriteDeadline(time.Time{}))
	if err := s.queue.begin(r.Context()); err != nil {
		return err
	}
	defer s.queue.end()
	answer := s.Keep(bytes.NewReader(file))
	supported(conn.SetWriteDeadline(time.Now().Add(Patience)))
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // fails only if the client has gone
	return nil
}

// lines writes the lines of an answer.
type lines struct {
	w      io.Writer
	conn   *http.ResponseController
	end    context.CancelFunc // ends the answer if nobody receives it
	failed bool
}

func (l *lines) write(key string, value []byte) {
	if l.failed {
		return
	}
	supported(l.conn.SetWriteDeadline(time.Now().Add(Patience)))
	line := make([]byte, 0, len(value)+20)
	line = append(line, `{"`+key+`":`...)
	line = append(append(line, value...), '}', '\n')
	_, err := l.w.Write(line)
	if err == nil {
		err = l.conn.Flush()
	}
	if err != nil {
		l.failed = true
		l.end()
	}
}
