package envelope

import (
	"encoding/json"

	"parley"
	broadcast "parley/broadcast/problem"
)

// The names at the two ends of a line that are no processes.
const (
	client = "c1"     // it hands in values and payloads
	host   = "parley" // it has the clock, and takes decisions and deliveries
)

// line is a line in either direction.
type line struct {
	Src  string `json:"src,omitempty"`
	Dest string `json:"dest"`
	Body any    `json:"body"`
}

// Writer writes the lines to one process. It numbers the requests.
type Writer struct {
	Self parley.ID
	last uint64
}

func (w *Writer) line(src string, body any) []byte {
	b, err := json.Marshal(line{src, Name(w.Self), body})
	if err != nil {
		panic(err) // no body that this package makes
	}
	return append(b, '\n')
}

func (w *Writer) next() uint64 {
	w.last++
	return w.last
}

// Init returns the first line. settings are the flags of the protocol.
func (w *Writer) Init(s *parley.Step, p parley.Protocol, settings map[string]string) []byte {
	body := struct {
		Type      string            `json:"type"`
		ID        uint64            `json:"msg_id"`
		Node      string            `json:"node_id"`
		Nodes     []string          `json:"node_ids"`
		M         int               `json:"m"`
		Proposers []string          `json:"proposers"`
		Settings  map[string]string `json:"settings"`
		Restart   bool              `json:"restart,omitempty"`
		Records   []json.RawMessage `json:"records,omitempty"`
	}{
		"init", w.next(), Name(w.Self), Names(parley.Everyone(s.N).All()), p.M, Names(p.Proposers.All()), settings,
		s.Restart, nil,
	}
	for _, r := range s.Log {
		body.Records = append(body.Records, r.Body)
	}
	return w.line(client, body)
}

// Request returns the line of a request, or nil if it is none that lines have.
func (w *Writer) Request(m parley.Msg, n int) []byte {
	if m.Kind == parley.Propose {
		return w.line(client, struct {
			Type  string `json:"type"`
			ID    uint64 `json:"msg_id"`
			Value string `json:"value"`
		}{"propose", w.next(), string(m.Body)})
	}
	to, payload, err := broadcast.Decode(m, n)
	if err != nil {
		return nil
	}
	body := struct {
		Type    string   `json:"type"`
		ID      uint64   `json:"msg_id"`
		Message string   `json:"message"`
		To      []string `json:"to,omitempty"`
	}{"broadcast", w.next(), string(payload), nil}
	if m.Kind == broadcast.CarryTo {
		body.To = Names(to.All())
	}
	return w.line(client, body)
}

// Receive returns the line of a message of another process, or of a suspicion. It is nil if the message is neither.
func (w *Writer) Receive(from parley.ID, m parley.Msg) []byte {
	switch {
	case m.Kind == parley.Suspect:
		return w.line(host, struct {
			Type string `json:"type"`
			Node string `json:"node"`
		}{"suspect", Name(m.Origin)})
	case m.Kind == Message && json.Valid(m.Body):
		return w.line(Name(from), json.RawMessage(m.Body))
	}
	return nil
}

// Timeout returns the line of a timer that expires.
func (w *Writer) Timeout(t parley.Timer) []byte {
	return w.line(host, struct {
		Type  string       `json:"type"`
		Timer parley.Timer `json:"timer"`
	}{"timeout", t})
}
