package trace

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"parley"
)

// Version is the version of the file format. Version 1 had no facts.
const Version = 2

// maxLine is the longest line a reader accepts.
const maxLine = 512 << 20

// line is an event as it is written. Body is base64.
type line struct {
	ID    uint64 `json:"id"`
	Cause uint64 `json:"cause,omitempty"`
	Time  int64  `json:"t"`
	Op    string `json:"op"`
	At    uint16 `json:"at"`
	Peer  uint16 `json:"peer,omitempty"`
	Epoch uint32 `json:"epoch,omitempty"`
	Path  uint64 `json:"path,omitempty"`
	Kind  uint8  `json:"kind,omitempty"`
	About uint16 `json:"origin,omitempty"`
	Seq   uint64 `json:"seq,omitempty"`
	Value uint64 `json:"value,omitempty"`
	Body  []byte `json:"body,omitempty"`
}

// footer has the number of events, their hash, and that of the header.
type footer struct {
	End    uint64 `json:"end"`
	Hash   string `json:"hash"`
	Header string `json:"header"`
}

// hash is that of a header which was read: it covers every field, and not how they
// are written down.
func (h Header) hash() (string, error) {
	b, err := json.Marshal(h)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]), err
}

// Write writes the trace of a log that kept its events.
func Write(w io.Writer, h Header, l *Log) error {
	h.Version = Version
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	var read Header // as it will be: text that is no text is read as something else
	if err := strict(head, &read); err != nil {
		return err
	}
	sum, err := read.hash()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	if err := enc.Encode(h); err != nil {
		return err
	}
	for _, e := range l.Events {
		err := enc.Encode(line{
			ID: e.ID, Cause: e.Cause, Time: int64(e.Time), Op: e.Op.String(), At: uint16(e.At),
			Peer: uint16(e.Peer), Epoch: e.Epoch, Path: uint64(e.Path), Kind: uint8(e.Msg.Kind), About: uint16(e.Msg.Origin),
			Seq: e.Msg.Seq, Value: e.Msg.Value, Body: e.Msg.Body,
		})
		if err != nil {
			return err
		}
	}
	if err := enc.Encode(footer{l.count, l.Hash(), sum}); err != nil {
		return err
	}
	return out.Flush()
}

// ReadError tells what is wrong with a trace file, and where.
type ReadError struct {
	Line   int   // from 1
	Offset int64 // of the byte, from 0: where the line begins, or where its text makes no sense
	Err    error
}

func (e *ReadError) Error() string {
	return fmt.Sprintf("line %d: %v (at byte %d)", e.Line, e.Err, e.Offset)
}

// Unwrap returns the error without the place.
func (e *ReadError) Unwrap() error { return e.Err }

// Read reads a trace whole and checks its hashes. What is wrong with the file is told
// by a [ReadError].
func Read(from io.Reader) (Header, *Log, error) {
	r := newReader(from)
	var h Header
	if !r.scan() {
		return h, nil, r.missing(errors.New("the trace is empty: a header was expected"))
	}
	if err := strict(r.line(), &h); err != nil {
		return h, nil, r.wrong(fmt.Errorf("not the header of a trace: %w", err))
	}
	if h.Version != Version {
		return h, nil, r.wrong(fmt.Errorf("trace of version %d: this program reads version %d", h.Version, Version))
	}
	if h.N < 1 || h.N > parley.MaxProcesses {
		return h, nil, r.wrong(fmt.Errorf("n is %d: allowed are 1 to %d", h.N, parley.MaxProcesses))
	}
	log := &Log{Keep: true}
	for r.scan() {
		if bytes.HasPrefix(r.line(), []byte(`{"end":`)) {
			return h, log, r.end(h, log)
		}
		e, err := event(r.line(), h.N)
		switch {
		case err != nil:
		case e.ID != log.count+1:
			err = fmt.Errorf("event %d follows event %d", e.ID, log.count)
		case e.Cause >= e.ID:
			err = fmt.Errorf("event %d is the cause of event %d", e.Cause, e.ID)
		}
		if err != nil {
			return h, nil, r.wrong(err)
		}
		log.Add(e)
	}
	return h, nil, r.missing(fmt.Errorf("the trace ends after event %d: its last line is missing", log.count))
}

// reader reads lines and knows where they are.
type reader struct {
	lines    *bufio.Scanner
	n        int   // the number of the line
	at, next int64 // where it begins, and where the next one does
}

func newReader(from io.Reader) *reader {
	r := &reader{lines: bufio.NewScanner(from)}
	r.lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	r.lines.Split(func(data []byte, last bool) (int, []byte, error) {
		advance, token, err := bufio.ScanLines(data, last)
		r.next += int64(advance)
		return advance, token, err
	})
	return r
}

func (r *reader) scan() bool {
	r.n, r.at = r.n+1, r.next
	return r.lines.Scan()
}

func (r *reader) line() []byte { return r.lines.Bytes() }

// wrong is an error about the line that was read, or a place in it.
func (r *reader) wrong(err error) error {
	out := &ReadError{Line: r.n, Offset: r.at, Err: err}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		out.Offset += max(syntax.Offset-1, 0) // it counts the bytes read
	case errors.As(err, &kind):
		out.Offset += max(kind.Offset-1, 0)
	case errors.Is(err, io.ErrUnexpectedEOF):
		out.Offset += int64(len(r.line()))
	}
	return out
}

// missing is the error that a line is not there, or cannot be read.
func (r *reader) missing(why error) error {
	if err := r.lines.Err(); err != nil {
		why = err
	}
	return &ReadError{Line: r.n, Offset: r.at, Err: why}
}

// end reads the last line and holds what came before against it.
func (r *reader) end(h Header, log *Log) error {
	var f footer
	if err := strict(r.line(), &f); err != nil {
		return r.wrong(fmt.Errorf("not the end of a trace: %w", err))
	}
	if f.End != log.count || f.Hash != log.Hash() {
		return r.wrong(fmt.Errorf("the trace was changed: it ends with %d events and hash %s, but holds %d with hash %s",
			f.End, f.Hash, log.count, log.Hash()))
	}
	if sum, err := h.hash(); err != nil || f.Header != sum {
		return &ReadError{Line: 1, Err: fmt.Errorf("the header was changed: line %d says that its hash is %s, and it is %s",
			r.n, f.Header, sum)}
	}
	if r.scan() {
		return r.wrong(errors.New("the trace goes on after its end"))
	}
	return nil
}

func event(b []byte, n int) (Event, error) {
	var l line
	if err := strict(b, &l); err != nil {
		return Event{}, fmt.Errorf("not an event: %w", err)
	}
	op := slices.Index(opNames[1:], l.Op) + 1
	if op == 0 {
		return Event{}, fmt.Errorf("unknown op %q", l.Op)
	}
	if int(l.At) >= n || int(l.Peer) >= n && parley.ID(l.Peer) != parley.All {
		return Event{}, fmt.Errorf("event of process %d with %d: there are %d processes", l.At, l.Peer, n)
	}
	return Event{
		ID: l.ID, Cause: l.Cause, Time: parley.Tick(l.Time), Op: Op(op), At: parley.ID(l.At), Peer: parley.ID(l.Peer),
		Epoch: l.Epoch, Path: parley.Path(l.Path),
		Msg: parley.Msg{
			Kind: parley.Kind(l.Kind), Origin: parley.ID(l.About), Seq: l.Seq, Value: l.Value, Body: l.Body,
		},
	}, nil
}

// strict decodes one JSON value with no unknown fields and nothing behind it.
func strict(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("something follows the value")
	}
	return nil
}
