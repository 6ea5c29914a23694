package fifo

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"parley"
	"parley/broadcast/diffusion"
	"parley/broadcast/problem"
	"parley/stack"
)

// Config must be identical on all processes.
type Config struct {
	N int
	// Window is how far ahead of its last delivery a process accepts the messages of one incarnation of a sender, in
	// messages. 0 means diffusion.Window.
	Window int
	// Beneath is the Promises function of the broadcast below, for validity, agreement and integrity. nil means
	// diffusion in which all processes are neighbors.
	Beneath func(parley.RunConditions) []parley.Promise
	// Uniform declares that the broadcast below is uniform. Then this broadcast is also uniform.
	Uniform bool
}

// New returns the protocol as a layer that receives messages only through the broadcast below. It panics if
// c is invalid.
func New(c Config) parley.Protocol {
	if c.N < 1 || c.N > parley.MaxProcesses || c.Window < 0 {
		panic(fmt.Sprintf("fifo: %d processes and a window of %d", c.N, c.Window))
	}
	c.Window = cmp.Or(c.Window, diffusion.Window)
	if c.Beneath == nil {
		c.Beneath = diffusion.New(diffusion.Config{N: c.N}).Promises
	}
	p := parley.Protocol{
		Name:   "fifo",
		Title:  "FIFO broadcast by sequence numbers",
		Paper:  "lecture, FIFO broadcast using reliable broadcast",
		Faults: parley.OmissionFaults, Kinds: []string{"", "DATA"}, N: c.N, M: max(c.N-1, 0),
		Serves: true, Hears: parley.HearsBeneath,
		New: func(parley.ID) parley.Machine {
			return &process{c: c, sender: make([]problem.Lives[stream], c.N)}
		},
		Properties: problem.Of(problem.Validity, problem.Agreement, problem.Integrity, problem.FIFOOrder,
			problem.Delivery),
		Promises: c.promises,
		Explain:  explain,
		Rename:   func(_ parley.Env, m parley.Msg, _ []parley.ID) parley.Msg { return m },
	}
	if c.Uniform {
		p.Properties = append(p.Properties, problem.Of(problem.UniformAgreement)...)
	}
	return p
}

// promises adds FIFO order to the promises of the broadcast below.
func (c Config) promises(a parley.RunConditions) []parley.Promise {
	return parley.Proved(append(c.Beneath(a),
		problem.Promise(a, problem.FIFOOrder, "only the message with the next number is delivered (lecture)")), proofs)
}

// explain shows a message as its number and payload, and the sender's incarnation if it is not the first: #7
// hello, or 3#1 again.
func explain(_ parley.Env, m parley.Msg, _ func(parley.ID) string) iter.Seq[string] {
	life := ""
	if m.Value != 1 {
		life = fmt.Sprint(m.Value)
	}
	return slices.Values([]string{fmt.Sprintf("%s#%d %s", life, m.Seq, parley.Printable(m.Body))})
}

// Tower returns FIFO broadcast on top of diffusion: a complete protocol.
func Tower(c diffusion.Config) parley.Protocol {
	beneath := diffusion.New(c)
	p := stack.New(beneath, New(Config{N: c.N, Window: c.Window, Beneath: beneath.Promises, Uniform: c.Uniform}))
	p.Flags = parley.Flags(c, diffusion.Flags, Tower)
	return p
}
