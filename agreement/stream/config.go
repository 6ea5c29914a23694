package stream

import (
	"parley"
	"parley/lockstep"
	"parley/mux"
)

// Config is one stream. All processes must have the same, except Name and DiskIntact.
type Config struct {
	Key
	N int
	// Window is how many slots may begin in the time that one may last.
	Window int
	// Name returns the name of a process, for Evidence; nil: its number.
	Name func(parley.ID) string
	// DiskIntact says of a process that starts again that its disk has not been lost. If it finds
	// no record there, it has taken part in no slot of this stream.
	DiskIntact bool
}

// New returns the protocol, with rounds of the given schedule, which must be on call. A
// configuration that makes no sense panics.
func New(c Config, when lockstep.Schedule) parley.Protocol {
	if err := c.Check(c.N); err != nil {
		panic("stream: " + err.Error())
	}
	if c.Name == nil {
		c.Name = parley.ID.String
	}
	rounds := c.Rounds(c.N)
	p := mux.Slots(inSlots(rounds, nil), when, c.Window)
	if p.Lies != nil {
		p.Lies = inSlotLies(p.Lies, rounds.Faults == parley.SignedByzantineFaults)
	}
	p.New = func(self parley.ID) parley.Machine {
		core := streamCore{Config: c, self: self, when: when, outOfTurn: !c.All()}
		if c.All() {
			return newVectorMachine(core)
		}
		return newSourceMachine(core)
	}
	return p
}
