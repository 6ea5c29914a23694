package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"parley"
	commit "parley/commit/problem"
)

// MaxLine is the length of the longest line that a program may write, in bytes.
const MaxLine = 1 << 20

// most is the largest number of a timer, and mostAfter the longest time until it expires, in ticks.
const (
	most      = 9999
	mostAfter = 1 << 40
)

// Line is a line that a program wrote.
type Line struct {
	InitOK bool // it answers init
	Done   bool // the answer to the last line is complete
	// Do requests the effect of the line. It is nil if the line has none.
	Do func(s *parley.Step)
}

// body holds the keys of all lines to parley.
type body struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Value   json.RawMessage `json:"value"`
	Message json.RawMessage `json:"message"`
	Record  json.RawMessage `json:"record"`
	Origin  string          `json:"origin"`
	Node    string          `json:"node"`
	Timer   *int64          `json:"timer"`
	After   *int64          `json:"after"`
}

// Read reads a line of a process of p. An error says what is wrong with the line, and what is allowed.
func Read(text []byte, self parley.ID, p parley.Protocol) (Line, error) {
	var l struct {
		Src  *string         `json:"src"`
		Dest string          `json:"dest"`
		Body json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return Line{}, errors.New(`it is not a JSON object with the keys "src", "dest" and "body"; log to the ` +
			`standard error`)
	}
	if l.Src != nil && *l.Src != Name(self) {
		return Line{}, fmt.Errorf("src is %q, but the node is %s", *l.Src, Name(self))
	}
	if !bytes.HasPrefix(bytes.TrimSpace(l.Body), []byte("{")) {
		return Line{}, errors.New("body is missing, or is not a JSON object")
	}
	to, isNode := parse(l.Dest, p.N)
	switch {
	case isNode && to == self:
		return Line{}, errors.New("a node sends to itself: handle the message without sending it")
	case isNode:
		return sends(to, l.Body, p), nil
	}
	var b body
	if err := json.Unmarshal(l.Body, &b); err != nil {
		return Line{}, fmt.Errorf("body: %w", notType(err))
	}
	switch {
	case b.Type == "parley_done" && (l.Dest == host || l.Dest == ""):
		return Line{Done: true}, nil
	case l.Dest == host:
		do, err := b.effect(p)
		return Line{Do: do}, err
	case strings.HasPrefix(l.Dest, "c"):
		return b.reply()
	}
	return Line{}, fmt.Errorf("there is no %q: allowed are the nodes n1 to %s, parley, and the client that asked", l.Dest,
		Name(parley.ID(p.N-1)))
}

// notType puts the error of a key with a wrong type into words.
func notType(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("the key %q is a %s: another type is needed", wrong.Field, wrong.Value)
	}
	return err
}

// sends returns a message to another process.
func sends(to parley.ID, raw json.RawMessage, p parley.Protocol) Line {
	var b bytes.Buffer
	_ = json.Compact(&b, raw) // it is valid: it was read
	return Line{Do: func(s *parley.Step) {
		m := parley.Msg{Kind: Message, Body: b.Bytes()}
		if p.Timing == parley.Synchronous {
			m.Seq = uint64(s.Now / RoundTicks)
		}
		s.Send(to, m)
	}}
}

// reply is an answer to a client.
func (b *body) reply() (Line, error) {
	switch b.Type {
	case "init_ok":
		return Line{InitOK: true}, nil
	case "error":
		return Line{Do: func(s *parley.Step) { s.Refuse(s.Self, "error to a client") }}, nil
	}
	return Line{}, nil // such as broadcast_ok
}

// effect is what a line asks of parley.
func (b *body) effect(p parley.Protocol) (func(s *parley.Step), error) {
	switch b.Type {
	case "decide":
		if b.Value == nil {
			return nil, errors.New(`the key "value" is missing`)
		}
		value := bytesOf(b.Value)
		return func(s *parley.Step) {
			m := parley.Msg{Kind: parley.Decide, Body: value}
			from := s.Self
			if p.Proposers.Len() == 1 {
				for from = range p.Proposers.All() {
					m.Origin = from
				}
			}
			s.Deliver(from, m)
		}, nil
	case "deliver":
		from, ok := parse(b.Origin, p.N)
		if !ok || b.Message == nil {
			return nil, fmt.Errorf(`the keys "origin", from n1 to %s, and "message" are needed`, Name(parley.ID(p.N-1)))
		}
		payload := bytesOf(b.Message)
		return func(s *parley.Step) {
			s.Deliver(from, parley.Msg{Kind: parley.Carried, Origin: from, Body: payload})
		}, nil
	case "suspect":
		of, ok := parse(b.Node, p.N)
		if !ok {
			return nil, fmt.Errorf(`the key "node" is needed, from n1 to %s`, Name(parley.ID(p.N-1)))
		}
		return func(s *parley.Step) { s.Indicate(parley.Msg{Kind: parley.Suspect, Origin: of}) }, nil
	case "blocked":
		return func(s *parley.Step) { s.Indicate(parley.Msg{Kind: commit.Blocked}) }, nil
	case "append":
		if b.Record == nil {
			return nil, errors.New(`the key "record" is missing`)
		}
		var rec bytes.Buffer
		_ = json.Compact(&rec, b.Record)
		return func(s *parley.Step) { s.Append(rec.Bytes()) }, nil
	case "set_timer", "stop_timer":
		return b.timer()
	}
	return nil, fmt.Errorf("parley takes no %q: allowed are decide, deliver, suspect, blocked, append, set_timer, "+
		"stop_timer, and parley_done", b.Type)
}

func (b *body) timer() (func(s *parley.Step), error) {
	if b.Timer == nil || *b.Timer < 0 || *b.Timer > most {
		return nil, fmt.Errorf(`the key "timer" is needed, from 0 to %d`, most)
	}
	timer := parley.Timer(*b.Timer)
	if b.Type == "stop_timer" {
		return func(s *parley.Step) { s.StopTimer(timer) }, nil
	}
	if b.After == nil || *b.After < 0 || *b.After > mostAfter {
		return nil, fmt.Errorf(`the key "after" is needed, in ticks, from 0 to %d`, int64(mostAfter))
	}
	after := parley.Tick(*b.After)
	return func(s *parley.Step) { s.SetTimer(timer, after) }, nil
}
