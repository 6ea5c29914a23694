package service

import (
	"bytes"
	"errors"
	"fmt"

	"parley"
	"parley/broadcast/problem"
)

// The names of the properties.
const (
	Consistency = "replica consistency"
	Once        = "applied once"
	Completion  = "completion"
	Answers     = "answers"
)

func properties() []parley.Property {
	return []parley.Property{
		{
			Name: Consistency, Mode: parley.Always,
			Says:  "correct copies give the same answer at the same position",
			Check: consistent,
		},
		{
			Name: Once, Mode: parley.Always,
			Says:  "no copy applies a command of a client at two positions",
			Check: once,
		},
		{
			Name: Completion, Mode: parley.Eventually,
			Says:  "what a correct process is asked to apply it answers in the end",
			Check: complete,
		},
		{
			Name: Answers, Mode: parley.Sometimes,
			Says: "something is answered",
			Check: func(h *parley.History) error {
				for i := range h.Deliveries {
					if h.Deliveries[i].Msg.Kind == Answer {
						return nil
					}
				}
				return errors.New("nothing was answered")
			},
		},
	}
}

// consistent compares the answers at each position.
func consistent(h *parley.History) error {
	type first struct {
		at   parley.ID
		body []byte
	}
	seen := make(map[uint64]first)
	for i := range h.Deliveries {
		d := &h.Deliveries[i]
		if d.Msg.Kind != Answer || !h.Correct(d.At) {
			continue
		}
		f, known := seen[d.Msg.Seq]
		if !known {
			seen[d.Msg.Seq] = first{d.At, d.Msg.Body}
		} else if !bytes.Equal(f.body, d.Msg.Body) {
			return fmt.Errorf("at position %d %s answers %s and %s answers %s", d.Msg.Seq, h.Name(f.at),
				parley.Printable(f.body), h.Name(d.At), parley.Printable(d.Msg.Body))
		}
	}
	return nil
}

// once looks for an answer to one command at two positions: the k-th new position at
// a process is that of its k-th command.
func once(h *parley.History) error {
	type command struct {
		at     parley.ID
		client uint64
		body   string
	}
	asked := make(map[command]int)
	for i := range h.Requests {
		r := &h.Requests[i]
		if r.Msg.Kind == Command {
			asked[command{0, r.Msg.Value, fmt.Sprint(r.Msg.Seq)}]++
		}
	}
	applied := make(map[parley.ID]map[uint64]map[uint64]bool) // process, client, positions
	for i := range h.Deliveries {
		d := &h.Deliveries[i]
		if d.Msg.Kind != Answer {
			continue
		}
		if applied[d.At] == nil {
			applied[d.At] = make(map[uint64]map[uint64]bool)
		}
		if applied[d.At][d.Msg.Value] == nil {
			applied[d.At][d.Msg.Value] = make(map[uint64]bool)
		}
		applied[d.At][d.Msg.Value][d.Msg.Seq] = true
	}
	distinct := make(map[uint64]map[uint64]bool) // client, numbers
	for i := range h.Requests {
		r := &h.Requests[i]
		client, seq := r.Msg.Value, r.Msg.Seq
		if r.Msg.Kind == parley.Carried {
			client, seq = uint64(r.At), r.Order
		} else if r.Msg.Kind != Command {
			continue
		}
		if distinct[client] == nil {
			distinct[client] = make(map[uint64]bool)
		}
		distinct[client][seq] = true
	}
	// order: any breach will do
	for id, clients := range applied {
		for client, positions := range clients { // order: any breach will do
			if len(positions) > len(distinct[client]) {
				return fmt.Errorf("%s applied %d commands of client %d, which asked for %d", h.Name(id),
					len(positions), client, len(distinct[client]))
			}
		}
	}
	return nil
}

// complete looks for a request of a correct process that it never answered.
func complete(h *parley.History) error {
	if !h.Over {
		return nil
	}
	answered := make(map[parley.ID]map[uint64]int)
	for i := range h.Deliveries {
		d := &h.Deliveries[i]
		if d.Msg.Kind == Answer && d.From == d.At {
			if answered[d.At] == nil {
				answered[d.At] = make(map[uint64]int)
			}
			answered[d.At][d.Msg.Value]++
		}
	}
	asked := make(map[parley.ID]map[uint64]int)
	for i := range h.Requests {
		r := &h.Requests[i]
		client := r.Msg.Value
		if r.Msg.Kind == parley.Carried {
			client = uint64(r.At)
		} else if r.Msg.Kind != Command {
			continue
		}
		if asked[r.At] == nil {
			asked[r.At] = make(map[uint64]int)
		}
		asked[r.At][client]++
	}
	for id := range parley.ID(h.N) {
		if !h.Correct(id) {
			continue
		}
		// order: any breach will do
		for client, n := range asked[id] {
			if got := answered[id][client]; got < n {
				return fmt.Errorf("%s was asked %d commands of client %d and answered %d", h.Name(id), n, client, got)
			}
		}
	}
	return nil
}

// promises says what holds of a run: what the broadcast beneath promises of its order
// and of what becomes of a message, and what a restart leaves of that.
func (c Config) promises(a parley.Assumptions) []parley.Promise {
	out := []parley.Promise{
		{Property: Consistency, Holds: true, Because: "the state is a function of the commands (Schneider 1990)"},
		{Property: Once, Holds: true, Because: "the state holds the last number of each client"},
		{Property: Completion, Holds: true, Because: "what is broadcast is delivered, applied and answered"},
		{Property: Answers, Because: "one run need not show it"},
	}
	void := func(p *parley.Promise, because string) {
		if p.Holds {
			p.Holds, p.Because = false, because
		}
	}
	if (a.Processes.Restarted || a.Processes.LostDisk) && !c.Transfer {
		void(&out[0], "a copy that comes back has lost its state, and nobody gives it another")
		void(&out[1], "a copy that comes back has lost its state, and nobody gives it another")
	}
	if a.Processes.Restarted || a.Processes.LostDisk {
		void(&out[2], "what a process was asked before it crashed it need not answer")
	}
	if a.Processes.Suspected || a.Processes.Paused || a.Processes.Minority || a.Network.Late {
		void(&out[2], "a process that was excluded answers nothing")
	}
	if c.Beneath == nil {
		if a.Network.Lost || a.Network.Cut || a.Network.Disconnected {
			void(&out[2], "a command may not reach everybody")
		}
		return out
	}
	for _, p := range c.Beneath(a) {
		switch {
		case p.Holds:
		case p.Property == c.Order || p.Property == problem.Integrity:
			void(&out[0], "the broadcast beneath: "+p.Because)
		case p.Property == problem.Validity:
			void(&out[2], "the broadcast beneath: "+p.Because)
		}
	}
	return out
}
