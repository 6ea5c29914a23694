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

// Read reads a trace whole and checks its hashes. Errors name the line.
func Read(r io.Reader) (Header, *Log, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	var h Header
	if !lines.Scan() {
		if err := lines.Err(); err != nil {
			return h, nil, fmt.Errorf("line 1: %w", err)
		}
		return h, nil, errors.New("line 1: the trace is empty: a header was expected")
	}
	if err := strict(lines.Bytes(), &h); err != nil {
		return h, nil, fmt.Errorf("line 1: not the header of a trace: %w", err)
	}
	if h.Version != Version {
		return h, nil, fmt.Errorf("line 1: trace of version %d: this program reads version %d", h.Version, Version)
	}
	if h.N < 1 || h.N > parley.MaxProcesses {
		return h, nil, fmt.Errorf("line 1: n is %d: allowed are 1 to %d", h.N, parley.MaxProcesses)
	}
	log := &Log{Keep: true}
	for n := 2; lines.Scan(); n++ {
		b := lines.Bytes()
		if bytes.HasPrefix(b, []byte(`{"end":`)) {
			return h, log, end(b, n, h, log, lines)
		}
		e, err := event(b, h.N)
		switch {
		case err != nil:
		case e.ID != log.count+1:
			err = fmt.Errorf("event %d follows event %d", e.ID, log.count)
		case e.Cause >= e.ID:
			err = fmt.Errorf("event %d is the cause of event %d", e.Cause, e.ID)
		}
		if err != nil {
			return h, nil, fmt.Errorf("line %d: %w", n, err)
		}
		log.Add(e)
	}
	n := log.count + 2 // the header is line 1
	if err := lines.Err(); err != nil {
		return h, nil, fmt.Errorf("line %d: %w", n, err)
	}
	return h, nil, fmt.Errorf("line %d: the trace ends after event %d: its last line is missing", n, log.count)
}

func end(b []byte, n int, h Header, log *Log, lines *bufio.Scanner) error {
	var f footer
	if err := strict(b, &f); err != nil {
		return fmt.Errorf("line %d: not the end of a trace: %w", n, err)
	}
	if f.End != log.count || f.Hash != log.Hash() {
		return fmt.Errorf("line %d: the trace was changed: it ends with %d events and hash %s, but holds %d with hash %s",
			n, f.End, f.Hash, log.count, log.Hash())
	}
	if sum, err := h.hash(); err != nil || f.Header != sum {
		return fmt.Errorf("line 1: the header was changed: line %d says that its hash is %s, and it is %s", n, f.Header, sum)
	}
	if lines.Scan() {
		return fmt.Errorf("line %d: the trace goes on after its end", n+1)
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
