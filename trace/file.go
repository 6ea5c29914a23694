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
	"strings"

	"parley"
)

// Version is the version of the file format. Version 1 had no facts.
const Version = 2

// maxLine is the longest line, in bytes, that a reader accepts.
const maxLine = 512 << 20

// line is an event in a file. Body is base64.
type line struct {
	ID    uint64 `json:"id"`               // number of the event, from 1
	Cause uint64 `json:"cause,omitempty"`  // number of the event on another process that caused this event
	Time  int64  `json:"t"`                // time of the event, in ticks
	Op    string `json:"op"`               // kind of the event, such as send or crash
	At    uint16 `json:"at"`               // process at which the event happened, counted from 0
	Peer  uint16 `json:"peer,omitempty"`   // the sender or the receiver, counted from 0; 65535 means all others
	Epoch uint32 `json:"epoch,omitempty"`  // view or incarnation to which the message belongs
	Path  uint64 `json:"path,omitempty"`   // part of a composed machine that the event concerns
	Kind  uint8  `json:"kind,omitempty"`   // kind of the message, which its protocol defines
	About uint16 `json:"origin,omitempty"` // process that the message is about, counted from 0
	Seq   uint64 `json:"seq,omitempty"`    // a round or a sequence number in the message
	Value uint64 `json:"value,omitempty"`  // a number in the message, such as a vote; the timer in a timeout
	Body  []byte `json:"body,omitempty"`   // payload of the message or log record, in base64
	Cut   uint32 `json:"cut,omitempty"`    // number of bytes at the end of the body that a recorder left out
}

// footer holds the number of events, their hash, and the hash of the header.
type footer struct {
	End     uint64 `json:"end"`               // number of events
	Hash    string `json:"hash"`              // hash of the events: 16 bytes of SHA-256, in hexadecimal
	Header  string `json:"header"`            // hash of the header, in the same form
	Dropped uint64 `json:"dropped,omitempty"` // number of missing events
	Until   int64  `json:"until,omitempty"`   // when the writer ended, in ticks, if this is known
}

// gap is the line at a place with missing events.
type gap struct {
	Dropped uint64 `json:"dropped"` // number of events that are missing here
}

// Lines returns a value of each kind of line of a file: a header, an event, a gap, and a footer. It is for programs
// that describe the format.
func Lines() []any { return []any{Header{}, line{}, gap{}, footer{}} }

// hash returns the hash of a header that was read. It covers every field, not its encoding.
func (h Header) hash() (string, error) {
	b, err := json.Marshal(h)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]), err
}

// Write writes the trace of a log that kept its events. A Broken log gets no footer.
func Write(w io.Writer, h Header, l *Log) error {
	head, sum, err := headOf(h)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	if _, err := out.Write(head); err != nil {
		return err
	}
	var b []byte
	gaps := l.Gaps
	for i := range l.Events {
		b = b[:0]
		for len(gaps) > 0 && gaps[0].After < l.Events[i].ID {
			b = fmt.Appendf(b, "{\"dropped\":%d}\n", gaps[0].Events)
			gaps = gaps[1:]
		}
		if _, err := out.Write(appendEvent(b, &l.Events[i])); err != nil {
			return err
		}
	}
	for _, g := range gaps {
		fmt.Fprintf(out, "{\"dropped\":%d}\n", g.Events)
	}
	if l.Broken { // as it was read
		return out.Flush()
	}
	end := footer{End: l.count, Hash: l.Hash(), Header: sum, Dropped: l.Dropped(), Until: int64(l.Until)}
	if err := json.NewEncoder(out).Encode(end); err != nil {
		return err
	}
	return out.Flush()
}

// ReadError is an error in a trace file, with its place.
type ReadError struct {
	Line   int   // from 1
	Offset int64 // byte, from 0: start of the line, or the invalid text in it
	Err    error
}

func (e *ReadError) Error() string {
	return fmt.Sprintf("line %d: %v (at byte %d)", e.Line, e.Err, e.Offset)
}

// Unwrap returns the error without its place.
func (e *ReadError) Unwrap() error { return e.Err }

// Trace is the content of a file, or of a part of it.
type Trace struct {
	Name   string // of the file
	Line   int    // of the header in the file, from 1; 0 means unknown
	Header Header
	Log    *Log
}

// Place returns the file of the trace, and the line of its header if that is known.
func (t *Trace) Place() string {
	if t.Line == 0 {
		return t.Name
	}
	return fmt.Sprintf("%s:%d", t.Name, t.Line)
}

// Read reads a complete trace and checks its hashes. It reports an error in the file as a [ReadError].
func Read(from io.Reader) (Header, *Log, error) {
	r := newReader(from)
	h, log, err := r.trace(false)
	if err == nil && r.scan() {
		err = r.wrong(errors.New("the trace continues after its end: delete what follows"))
	}
	return h, log, err
}

// ErrEmpty is the error of a trace without a header.
var ErrEmpty = errors.New("the trace is empty: the first line must be a header, as run --trace writes it")

// ReadAll reads consecutive traces, as a recorder writes them. If the last trace has no footer, because its writer
// was killed, ReadAll takes its complete lines and sets Broken in its Log. So it does for a trace that ends where the
// header of the next one begins. The argument name becomes the Name of the
// traces.
func ReadAll(name string, from io.Reader) ([]Trace, error) {
	r := newReader(from)
	var all []Trace
	for {
		line := r.n + 1
		if r.again {
			line = r.n
		}
		h, log, err := r.trace(true)
		if err != nil {
			return all, err
		}
		all = append(all, Trace{name, line, h, log})
		if r.torn || !r.more() {
			return all, nil
		}
	}
}

// trace reads one trace. torn permits a trace without a footer.
func (r *reader) trace(torn bool) (Header, *Log, error) {
	var h Header
	if !r.scan() {
		return h, nil, r.missing(ErrEmpty)
	}
	first := r.n
	if err := strict(r.line(), &h); err != nil {
		return h, nil, r.wrong(fmt.Errorf("not the header of a trace: %w; name a file that run --trace or a node wrote", err))
	}
	if h.Version != Version {
		return h, nil, r.wrong(fmt.Errorf("the trace has version %d: allowed is %d, so record it again with "+
			"this program", h.Version, Version))
	}
	if h.N < 1 || h.N > parley.MaxProcesses {
		return h, nil, r.wrong(fmt.Errorf("n is %d: allowed are 1 to %d", h.N, parley.MaxProcesses))
	}
	log := &Log{Keep: true}
	for r.scan() {
		if torn && r.torn {
			break
		}
		if torn && bytes.HasPrefix(r.line(), []byte(`{"parley":`)) {
			log.Broken, r.again = true, true
			return h, log, nil
		}
		if bytes.HasPrefix(r.line(), []byte(`{"end":`)) {
			return h, log, r.end(first, h, log)
		}
		if err := r.take(h, log); err != nil {
			return h, nil, r.wrong(err)
		}
	}
	if torn && r.lines.Err() == nil {
		log.Broken = true
		return h, log, nil
	}
	return h, nil, r.missing(fmt.Errorf("the trace ends after event %d, and its last line is missing: record it "+
		"again", log.count))
}

// take reads a line between the header and the footer.
func (r *reader) take(h Header, log *Log) error {
	if bytes.HasPrefix(r.line(), []byte(`{"dropped":`)) {
		var g gap
		err := strict(r.line(), &g)
		if err == nil && g.Dropped == 0 {
			err = errors.New("a gap of 0 events: at least 1 is allowed")
		}
		log.Gaps = append(log.Gaps, Gap{log.count, g.Dropped})
		return err
	}
	e, err := event(r.line(), h.N)
	switch {
	case err != nil:
	case e.ID != log.count+1:
		err = fmt.Errorf("event %d follows event %d: lines are missing or changed, so record the trace again",
			e.ID, log.count)
	case e.Cause >= e.ID && (h.Node == nil || !h.Node.Numbered || e.Op != Receive):
		err = fmt.Errorf("event %d is the cause of event %d", e.Cause, e.ID)
	default:
		log.Add(e)
	}
	return err
}

// reader reads lines and knows their places.
type reader struct {
	lines    *bufio.Scanner
	n        int   // line number, from 1
	at, next int64 // offset of the line, and of the next one
	torn     bool  // the line has no line feed
	again    bool  // more has read the line; scan returns it again
}

func newReader(from io.Reader) *reader {
	r := &reader{lines: bufio.NewScanner(from)}
	r.lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	r.lines.Split(func(data []byte, last bool) (int, []byte, error) {
		advance, token, err := bufio.ScanLines(data, last)
		if advance > 0 {
			r.torn = data[advance-1] != '\n'
		}
		r.next += int64(advance)
		return advance, token, err
	})
	return r
}

// more reports whether there is another line.
func (r *reader) more() bool {
	r.again = r.scan()
	return r.again
}

func (r *reader) scan() bool {
	if r.again {
		r.again = false
		return true
	}
	r.n, r.at = r.n+1, r.next
	return r.lines.Scan()
}

func (r *reader) line() []byte { return r.lines.Bytes() }

// wrong returns an error about the current line, or a place in it.
func (r *reader) wrong(err error) error {
	out := &ReadError{Line: r.n, Offset: r.at, Err: err}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		out.Offset += max(syntax.Offset-1, 0) // Offset counts the bytes read
	case errors.As(err, &kind):
		out.Offset += max(kind.Offset-1, 0)
	case errors.Is(err, io.ErrUnexpectedEOF):
		out.Offset += int64(len(r.line()))
	}
	return out
}

// missing returns the error that a line is missing or cannot be read.
func (r *reader) missing(why error) error {
	if err := r.lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		why = fmt.Errorf("the line is too long: at most %d bytes are allowed", maxLine)
	} else if err != nil {
		why = err
	}
	return &ReadError{Line: r.n, Offset: r.at, Err: why}
}

// end reads the footer and checks the trace against it.
func (r *reader) end(first int, h Header, log *Log) error {
	var f footer
	if err := strict(r.line(), &f); err != nil {
		return r.wrong(fmt.Errorf("not the last line of a trace: %w; record the trace again", err))
	}
	if f.End != log.count || f.Hash != log.Hash() {
		return r.wrong(fmt.Errorf("the trace was changed, so record it again: its last line says %d events and "+
			"hash %s, but it holds %d with hash %s",
			f.End, f.Hash, log.count, log.Hash()))
	}
	if sum, err := h.hash(); err != nil || f.Header != sum {
		return &ReadError{Line: first, Err: fmt.Errorf(
			"the header was changed, so record the trace again: line %d says that its hash is %s, but it is %s",
			r.n, f.Header, sum)}
	}
	log.Until = parley.Tick(f.Until)
	if f.Dropped != log.Dropped() {
		return r.wrong(fmt.Errorf("the trace was changed, so record it again: its last line says that %d events "+
			"are missing, but its gaps have %d",
			f.Dropped, log.Dropped()))
	}
	return nil
}

func event(b []byte, n int) (Event, error) {
	l, ok := scanEvent(b)
	if !ok {
		l = line{}
		if err := strict(b, &l); err != nil {
			return Event{}, fmt.Errorf("not an event: %w; record the trace again", err)
		}
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
		Cut: l.Cut,
	}, nil
}

// notJSON is an error of the JSON decoder in words of the format.
type notJSON struct{ error }

func (e notJSON) Error() string {
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](e.error); ok && kind.Field != "" {
		return fmt.Sprintf("the key %q has a value of the wrong type", kind.Field)
	}
	if key, unknown := strings.CutPrefix(e.error.Error(), "json: unknown field "); unknown {
		return "unknown key " + key
	}
	return "the line is not a JSON object"
}

// Unwrap returns the error of the decoder.
func (e notJSON) Unwrap() error { return e.error }

// strict decodes one JSON value without unknown fields and with nothing after it.
func strict(b []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return notJSON{err}
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("text follows the JSON object")
	}
	return nil
}
