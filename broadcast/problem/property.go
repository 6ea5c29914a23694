package problem

import (
	"errors"
	"fmt"
	"slices"

	"parley"
)

// Of returns the properties with the given names. It panics if a name is unknown.
func Of(names ...string) []parley.Property {
	out := make([]parley.Property, len(names))
	for i, name := range names {
		at := slices.IndexFunc(properties, func(p parley.Property) bool { return p.Name == name })
		if at < 0 {
			panic("broadcast: no property " + name)
		}
		out[i] = properties[at]
	}
	return out
}

// properties holds all properties of broadcast.
var properties = []parley.Property{
	{
		Name: Validity, Mode: parley.Eventually,
		Says:    "if a correct process broadcasts a message, every correct process delivers it",
		Check:   func(h *parley.History) error { return everywhere(h, senders) },
		Vacuous: none(senders),
	},
	{
		Name: Agreement, Mode: parley.Eventually,
		Says:    "if a correct process delivers a message, every correct process delivers this message",
		Check:   func(h *parley.History) error { return everywhere(h, correct) },
		Vacuous: none(correct),
	},
	{
		Name: UniformAgreement, Mode: parley.Eventually,
		Says: "if any process delivers a message, even a process that fails, every correct process " +
			"delivers this message",
		Check:   func(h *parley.History) error { return everywhere(h, anyone) },
		Vacuous: none(anyone),
	},
	{
		Name: Integrity, Mode: parley.Always,
		Says:    "a correct process delivers a message at most once, and only if the message was broadcast",
		Check:   func(h *parley.History) error { return integrity(h, anyone) },
		Vacuous: none(correct),
	},
	{
		Name: SenderIntegrity, Mode: parley.Always,
		Says: "a correct process delivers a message at most once, and delivers from a correct sender only " +
			"messages that this sender broadcast",
		Check:   func(h *parley.History) error { return integrity(h, correct) },
		Vacuous: none(correct),
	},
	{
		Name: FIFOOrder, Mode: parley.Always,
		Says:  "a correct process delivers the messages of each sender in the order of their broadcasts, without a gap",
		Check: fifoOrder, Vacuous: unrelated(false),
	},
	{
		Name: CausalOrder, Mode: parley.Always,
		Says: "if the broadcast of a message may depend on an earlier message, every correct process " +
			"delivers the earlier message first",
		Check: causalOrder, Vacuous: unrelated(true),
	},
	{
		Name: TotalOrder, Mode: parley.Always,
		Says: "if two correct processes deliver the same two messages, they deliver these messages in " +
			"the same order",
		Check:   func(h *parley.History) error { return pairs(h, correct, sameOrder) },
		Vacuous: apart(correct, 2),
	},
	{
		Name: UniformTotalOrder, Mode: parley.Always,
		Says: "if two processes, even processes that fail, deliver the same two messages, they deliver " +
			"these messages in the same order",
		Check:   func(h *parley.History) error { return pairs(h, anyone, sameOrder) },
		Vacuous: apart(anyone, 2),
	},
	{
		Name: UniformPrefix, Mode: parley.Always,
		Says: "for any two processes, even if they fail, and the messages addressed to both: the deliveries " +
			"of one process are a prefix of the deliveries of the other process",
		Check:   func(h *parley.History) error { return pairs(h, anyone, prefix) },
		Vacuous: apart(anyone, 1),
	},
	{
		Name: Delivery, Mode: parley.Sometimes,
		Says: "a process other than the sender delivers a message",
		Check: func(h *parley.History) error {
			for i := range h.Deliveries {
				if _, _, ok := Delivered(&h.Deliveries[i]); ok && h.Deliveries[i].From != h.Deliveries[i].At {
					return nil
				}
			}
			return errors.New("nothing is delivered")
		},
	},
}

// whose selects the processes that a property covers.
type whose uint8

const (
	anyone  whose = iota // correct or not
	correct              // correct processes
	senders              // correct processes, which have broadcast rather than delivered
)

func (w whose) among(h *parley.History, id parley.ID) bool { return w == anyone || h.Correct(id) }

// everywhere demands that every correct addressee delivers what one of the given processes delivered or, for
// senders, what a correct process broadcast.
func everywhere(h *parley.History, by whose) error {
	if !h.Over {
		return nil
	}
	r := read(h)
	for c := range r.casts {
		cast := &r.casts[c]
		first := cast.from
		if by == senders {
			if cast.invented || !h.Correct(cast.from) {
				continue
			}
		} else if first = r.deliverer(c, by); first == parley.All {
			continue
		}
		for id := range parley.ID(h.N) {
			if !h.Correct(id) || !cast.to.Has(id) || r.has(id, c) {
				continue
			}
			what := fmt.Sprintf("%s delivered", h.Name(first))
			if by == senders {
				what = "the correct sender broadcast"
			}
			return fmt.Errorf("%s did not deliver %s, which %s", h.Name(id), r.name(c), what)
		}
	}
	return nil
}

// integrity checks each delivery of a correct process.
func integrity(h *parley.History, of whose) error {
	r := read(h)
	for _, d := range r.deliveries {
		if !h.Correct(d.at) {
			continue
		}
		cast := &r.casts[d.cast]
		switch lies := !of.among(h, cast.from); {
		case d.again:
			return fmt.Errorf("%s delivered %s more often than it was broadcast", h.Name(d.at), r.name(d.cast))
		case cast.invented && !lies:
			return fmt.Errorf("%s delivered %s, which was not broadcast", h.Name(d.at), r.name(d.cast))
		case !cast.invented && cast.order > d.order && !lies:
			return fmt.Errorf("%s delivered %s before it was broadcast", h.Name(d.at), r.name(d.cast))
		case !cast.to.Has(d.at):
			return fmt.Errorf("%s delivered %s, which was not addressed to it", h.Name(d.at), r.name(d.cast))
		}
	}
	return nil
}

// fifoOrder demands, for each delivery, that all earlier messages of the same incarnation of the sender have
// been delivered.
func fifoOrder(h *parley.History) error {
	r := read(h)
	p := r.progress()
	for _, d := range r.deliveries {
		cast := &r.casts[d.cast]
		if d.again || cast.invented {
			continue // covered by integrity
		}
		if h.Correct(d.at) {
			if missed := p.missing(d.at, cast.chain, cast.place); missed >= 0 {
				return fmt.Errorf("%s delivered %s, but had not delivered %s, which the sender broadcast before",
					h.Name(d.at), r.name(d.cast), r.name(missed))
			}
		}
		p.deliver(d.at, d.cast)
	}
	return nil
}

// causalOrder walks through the run in time order. Each incarnation of a process is a chain of its
// broadcasts. What a broadcast may depend on is then a prefix of each chain, given by its length: a vector
// clock derived from the history alone.
func causalOrder(h *parley.History) error {
	r := read(h)
	p := r.progress()
	clocks := make([][]int32, h.N) // of the current incarnation of each process
	begin := func(id parley.ID) { clocks[id] = make([]int32, len(r.chains)) }
	for id := range parley.ID(h.N) {
		begin(id)
	}
	past := make([][]int32, len(r.casts))
	for _, e := range r.inTime() {
		c := e.cast
		switch {
		case c < 0:
			begin(e.at)
		case !e.delivery:
			past[c] = slices.Clone(clocks[e.at])
			clocks[e.at][r.casts[c].chain] = r.casts[c].place + 1
		case e.again || past[c] == nil:
			continue // invented, or delivered before it was broadcast
		default:
			for chain, length := range past[c] {
				missed := p.missing(e.at, int32(chain), length)
				if missed >= 0 && h.Correct(e.at) {
					return fmt.Errorf("%s delivered %s, but had not delivered %s, on which it may depend",
						h.Name(e.at), r.name(c), r.name(missed))
				}
				clocks[e.at][chain] = max(clocks[e.at][chain], length)
			}
			p.deliver(e.at, c)
			clocks[e.at][r.casts[c].chain] = max(clocks[e.at][r.casts[c].chain], r.casts[c].place+1)
		}
	}
	return nil
}
