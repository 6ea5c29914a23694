package rsm

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"

	"parley"
)

// The names of the properties.
const (
	Consistency = "replica consistency"
	OneMachine  = "as one machine"
	Once        = "applied once"
	Completion  = "completion"
	Answers     = "answers"
)

func (c Config) properties() []parley.Property {
	return []parley.Property{
		{
			Name: Consistency, Mode: parley.Always,
			Says:  "correct replicas give the same client the same answer at the same position",
			Check: consistent, Vacuous: alone,
		},
		{
			Name: OneMachine, Mode: parley.Always,
			Says: "the processes answer like one machine that applies all commands in the order of their " +
				"positions; no two commands have the same position; a command that is sent after an answer " +
				"has a later position than the answer",
			Check: func(h *parley.History) error { return asOne(h, c) }, Vacuous: unheard,
		},
		{
			Name: Once, Mode: parley.Always,
			Says:  "while a replica remembers a client, it applies each command of this client at most once",
			Check: c.once, Vacuous: unheard,
		},
		{
			Name: Completion, Mode: parley.Eventually,
			Says: "a correct process eventually answers every command that it is asked to apply, unless the " +
				"client has sent another command since then",
			Check: complete, Vacuous: unasked,
		},
		{
			Name: Answers, Mode: parley.Sometimes,
			Says: "some command is answered",
			Check: func(h *parley.History) error {
				for range answersIn(h) {
					return nil
				}
				return errors.New("nothing was answered")
			},
		},
	}
}

// answersIn iterates over the answers of a run.
func answersIn(h *parley.History) iter.Seq[*parley.ExternalEvent] {
	return func(yield func(*parley.ExternalEvent) bool) {
		for i := range h.Deliveries {
			if d := &h.Deliveries[i]; d.Msg.Kind == Answer && !yield(d) {
				return
			}
		}
	}
}

// consistent compares the answers at each position.
func consistent(h *parley.History) error {
	seen := make(map[uint64]*parley.ExternalEvent)
	for d := range answersIn(h) {
		f := seen[d.Msg.Seq]
		switch {
		case !h.Correct(d.At):
		case f == nil:
			seen[d.Msg.Seq] = d
		case f.Msg.Value != d.Msg.Value || !bytes.Equal(f.Msg.Body, d.Msg.Body):
			return fmt.Errorf("at position %d %s answers %s to %s and %s answers %s to %s", d.Msg.Seq,
				h.Name(f.At), parley.Printable(f.Msg.Body), named(h, f.Msg.Value),
				h.Name(d.At), parley.Printable(d.Msg.Body), named(h, d.Msg.Value))
		}
	}
	return nil
}

// unheard returns why there is no answer to judge, or "".
func unheard(h *parley.History) string {
	for range answersIn(h) {
		return ""
	}
	return "no command is answered"
}

// alone returns why there are no two answers to compare, or "".
func alone(h *parley.History) string {
	first := make(map[uint64]parley.ID) // by position
	for d := range answersIn(h) {
		if !h.Correct(d.At) {
			continue
		}
		if at, again := first[d.Msg.Seq]; again && at != d.At {
			return ""
		}
		first[d.Msg.Seq] = d.At
	}
	return "no two correct replicas answer at the same position"
}

// unasked returns why no answer is owed, or "".
func unasked(h *parley.History) string {
	if changes(h) {
		return "the setup changes, and a replica that becomes a spare answers nothing"
	}
	for i := range h.Requests {
		if _, _, ok := asker(&h.Requests[i]); ok && h.Correct(h.Requests[i].At) {
			return ""
		}
	}
	return "no correct process receives a command"
}

// changes reports whether a request changes the setup.
func changes(h *parley.History) bool {
	return slices.ContainsFunc(h.Requests, func(r parley.ExternalEvent) bool { return r.Msg.Kind == Configure })
}

// asker returns the client and the number of a request, as far as a history shows them: all incarnations of a
// process are one client.
func asker(r *parley.ExternalEvent) (client, number uint64, ok bool) {
	switch {
	case r.Msg.Kind == parley.Carried:
		return processes | uint64(r.At), r.Order, true
	case r.Msg.Kind == Command && r.Msg.Value < opened && numbered(r.Msg.Seq):
		return r.Msg.Value, r.Msg.Seq, true
	}
	return 0, 0, false
}

// answered returns the client of an answer, in the numbering of asker.
func answered(d *parley.ExternalEvent) uint64 {
	if d.Msg.Value >= processes {
		return processes | uint64(ownerOf(d.Msg.Value))
	}
	return d.Msg.Value
}

// named returns a readable name of a client.
func named(h *parley.History, client uint64) string {
	if client >= processes {
		return h.Name(ownerOf(client))
	}
	return fmt.Sprintf("client %d", client)
}

// once checks that no replica applies commands of a client at more positions than the client has commands.
func (c Config) once(h *parley.History) error {
	numbers := make(map[uint64]map[uint64]bool) // by client
	for i := range h.Requests {
		if client, number, ok := asker(&h.Requests[i]); ok {
			if numbers[client] == nil {
				numbers[client] = make(map[uint64]bool)
			}
			numbers[client][number] = true
		}
	}
	if len(numbers)+len(h.Restarts) > c.Sessions {
		return nil // a client may have been forgotten
	}
	type copied struct {
		at     parley.ID
		client uint64
	}
	positions := make(map[copied]map[uint64]bool)
	for d := range answersIn(h) {
		x := copied{d.At, answered(d)}
		if positions[x] == nil {
			positions[x] = make(map[uint64]bool)
		}
		positions[x][d.Msg.Seq] = true
		if applied, asked := len(positions[x]), len(numbers[x.client]); applied > asked {
			return fmt.Errorf("%s applied %d commands of %s, which asked for %d", h.Name(d.At), applied,
				named(h, d.Msg.Value), asked)
		}
	}
	return nil
}

// complete looks for a command at a correct process that was never answered. It counts a process's own
// commands, and checks the last command of each client.
func complete(h *parley.History) error {
	if !h.Over || changes(h) {
		return nil // a replica that becomes a spare answers nothing
	}
	last := make(map[uint64]uint64) // by client: its highest number
	for i := range h.Requests {
		if client, number, ok := asker(&h.Requests[i]); ok {
			last[client] = max(last[client], number)
		}
	}
	own := make([]int, h.N) // requested and not answered
	for i := range h.Requests {
		r := &h.Requests[i]
		client, number, ok := asker(r)
		switch {
		case !ok || !h.Correct(r.At):
		case r.Msg.Kind == parley.Carried:
			own[r.At] = min(own[r.At]+1, Queue) // more may have been refused
		case number == last[client] && !slices.ContainsFunc(h.Deliveries, func(d parley.ExternalEvent) bool {
			return d.Msg.Kind == Answer && d.At == r.At && d.From == r.At && d.Order > r.Order && d.Msg.Value == client
		}):
			return fmt.Errorf("%s was asked command %d of client %d and did not answer", h.Name(r.At), number, client)
		}
	}
	for d := range answersIn(h) {
		if d.At == d.From && d.Msg.Value >= processes {
			own[d.At]--
		}
	}
	for id, left := range own {
		if left > 0 {
			return fmt.Errorf("%s did not answer %d commands of its own", h.Name(parley.ID(id)), left)
		}
	}
	return nil
}
