package bracha

import (
	"bytes"
	"fmt"

	"parley"
)

// The names of the properties that identify a broadcast by its sender and number, because a faulty sender may
// send different values.
const (
	Consistency = "consistency"
	Totality    = "totality"
)

var consistency = parley.Property{
	Name: Consistency, Mode: parley.Always,
	Says: "no two correct processes deliver different messages as the same broadcast, and no correct " +
		"process delivers a broadcast twice",
	Check: func(h *parley.History) error {
		_, err := delivered(h)
		return err
	},
}

var totality = parley.Property{
	Name: Totality, Mode: parley.Eventually,
	Says: "if a correct process delivers a message for a broadcast, all correct processes deliver a message " +
		"for this broadcast",
	Check: func(h *parley.History) error {
		if !h.Over {
			return nil
		}
		casts, _ := delivered(h)
		for _, c := range casts {
			for id := range parley.Everyone(h.N).Minus(h.Faulty).Minus(c.by).All() {
				return fmt.Errorf("%s delivered nothing as broadcast %d of %s, and %s did",
					h.Name(id), c.seq, h.Name(c.sender), h.Name(c.first))
			}
		}
		return nil
	},
}

// known is a broadcast that was delivered.
type known struct {
	sender, first parley.ID
	seq           uint64
	value         []byte
	by            parley.Set
}

// delivered returns the broadcasts that correct processes delivered, in the order of their first deliveries,
// and the first inconsistency.
func delivered(h *parley.History) (casts []*known, err error) {
	type key struct {
		sender parley.ID
		seq    uint64
	}
	byKey := make(map[key]*known)
	for i := range h.Deliveries {
		d := &h.Deliveries[i]
		if !h.Correct(d.At) || d.Msg.Kind != parley.Carried {
			continue
		}
		k := key{d.From, d.Msg.Seq}
		c := byKey[k]
		if c == nil {
			c = &known{sender: d.From, first: d.At, seq: d.Msg.Seq, value: d.Msg.Body}
			byKey[k] = c
			casts = append(casts, c)
		}
		switch fresh := c.by.Add(d.At); {
		case err != nil:
		case !fresh:
			err = fmt.Errorf("%s delivered broadcast %d of %s twice", h.Name(d.At), c.seq, h.Name(c.sender))
		case !bytes.Equal(c.value, d.Msg.Body):
			err = fmt.Errorf("%s delivered %s as broadcast %d of %s, and %s delivered %s", h.Name(d.At),
				parley.Printable(d.Msg.Body), c.seq, h.Name(c.sender), h.Name(c.first), parley.Printable(c.value))
		}
	}
	return casts, err
}
