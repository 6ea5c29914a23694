package rsm

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"parley"
)

// answerLog is what the property OneMachine knows of a run so far: which answer belongs to which command. A process
// sends its commands one after the other, so the k-th answer that it gives to itself in an incarnation is to
// the k-th command of that incarnation.
type answerLog struct {
	h       *parley.History
	c       Config
	clients []uint64                   // by process: its client number in this incarnation; 0: not known yet
	held    [][]request                // by process: commands of this incarnation until its client number is known
	asked   map[uint64][]request       // by client: commands without an answer
	at      map[uint64]answeredCommand // by position
	last    uint64                     // highest position answered so far
}

// request is a command, and the highest position answered before the request.
type request struct {
	command []byte
	after   uint64
}

// answeredCommand is the command and the answer at a position.
type answeredCommand struct {
	client          uint64
	command, answer []byte
}

// asOne assigns answers to commands, and applies the commands in the order of their positions, up to the first
// unknown position.
func asOne(h *parley.History, c Config) error {
	if c.Setup.Checked || c.Setup.Active != parley.Everyone(c.N) || changes(h) {
		return nil // not everything is answered, and the k-th answer may be to another command
	}
	x := answerLog{
		h: h, c: c, clients: make([]uint64, h.N), held: make([][]request, h.N),
		asked: make(map[uint64][]request), at: make(map[uint64]answeredCommand),
	}
	lives, began := make([]uint64, h.N), make([]parley.Tick, h.N)
	for id := range h.N {
		x.begin(parley.ID(id), &lives[id])
	}
	for _, e := range events(h) {
		switch {
		case e.kind == asks && e.Msg.Kind == parley.Carried:
			x.ask(e.At, e.Msg.Body)
		case e.kind == returns:
			x.begin(e.At, &lives[e.At])
			began[e.At] = e.When
		case e.kind == indicates && e.Msg.Kind == parley.View && x.clients[e.At] == 0 &&
			(!c.Durable || lives[e.At] == 1 || e.When > began[e.At]): // and does not come from its log
			x.know(e.At, e.Msg.Seq)
		case e.kind == delivers && e.Msg.Kind == Answer:
			if err := x.answer(e.ExternalEvent); err != nil {
				return err
			}
			x.last = max(x.last, e.Msg.Seq)
		}
	}
	machine := c.New()
	for position := uint64(1); ; position++ {
		x, known := x.at[position]
		if !known {
			return nil
		}
		if answer := machine.Apply(x.command); !bytes.Equal(answer, x.answer) {
			return fmt.Errorf("%s at position %d is answered with %s, but one machine would answer %s",
				parley.Printable(x.command), position, parley.Printable(x.answer), parley.Printable(answer))
		}
	}
}

// begin starts an incarnation.
func (x *answerLog) begin(id parley.ID, lives *uint64) {
	*lives++
	x.clients[id], x.held[id] = 0, nil
	if !x.c.Transfer {
		x.know(id, *lives)
	}
}

// know sets the client number of a process in this incarnation.
func (x *answerLog) know(id parley.ID, life uint64) {
	x.clients[id] = client(id, life)
	x.asked[x.clients[id]], x.held[id] = x.held[id], nil
}

// ask records a command, unless Queue commands wait already: then it is refused.
func (x *answerLog) ask(id parley.ID, command []byte) {
	waiting, known := x.held[id], x.clients[id] != 0
	if known {
		waiting = x.asked[x.clients[id]]
	}
	if len(waiting) >= Queue {
		return
	}
	waiting = append(waiting, request{command, x.last})
	if known {
		x.asked[x.clients[id]] = waiting
	} else {
		x.held[id] = waiting
	}
}

// answer checks the answer of a process to itself. A restarted process may get answers to commands of an
// earlier incarnation, some a second time.
func (x *answerLog) answer(d *parley.ExternalEvent) error {
	client, position := d.Msg.Value, d.Msg.Seq
	if d.At != d.From || client < processes {
		return nil
	}
	before, twice := x.at[position]
	switch {
	case twice && before.client == client && client != x.clients[d.At]:
		return nil
	case twice:
		return fmt.Errorf("position %d has two commands: %s is answered %s, and %s is answered %s", position,
			named(x.h, before.client), parley.Printable(before.answer), named(x.h, client), parley.Printable(d.Msg.Body))
	case len(x.asked[client]) == 0:
		return fmt.Errorf("%s answers %s at position %d, but received no such command", x.h.Name(d.At),
			parley.Printable(d.Msg.Body), position)
	}
	asked := x.asked[client][0]
	x.asked[client] = x.asked[client][1:]
	x.at[position] = answeredCommand{client, asked.command, d.Msg.Body}
	if position <= asked.after {
		return fmt.Errorf("%s was asked for %s when position %d was answered, and applies it at position %d",
			x.h.Name(d.At), parley.Printable(asked.command), asked.after, position)
	}
	return nil
}

// event is an event of any list of a history.
type event struct {
	kind
	*parley.ExternalEvent
}

type kind uint8

const (
	asks kind = iota
	returns
	indicates
	delivers
)

// events returns all events of a run in order.
func events(h *parley.History) []event {
	var out []event
	for k, list := range [][]parley.ExternalEvent{h.Requests, h.Restarts, h.Indications, h.Deliveries} {
		for i := range list {
			out = append(out, event{kind(k), &list[i]})
		}
	}
	slices.SortFunc(out, func(a, b event) int { return cmp.Compare(a.Order, b.Order) })
	return out
}
