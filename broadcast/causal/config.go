package causal

import (
	"cmp"
	"flag"
	"fmt"
	"iter"
	"math"
	"slices"

	"parley"
	"parley/broadcast/diffusion"
	"parley/broadcast/fifo"
	"parley/broadcast/problem"
	"parley/stack"
)

// Most is the default of Config.Most.
const Most = 1024

// Config must be identical on all processes.
type Config struct {
	N    int
	Form Form
	// Most is how many messages prevDlvs may have before the process broadcasts them without a new message. 0 means
	// the constant Most, and -1 means never, as in the lecture.
	Most int
	// Window bounds, for vector clocks, how many messages of one incarnation of a sender are held back, and how far
	// ahead a vector may be. 0 means diffusion.Window.
	Window int
	// Beneath is the Promises function of the broadcast below, for validity, agreement and integrity. nil means
	// diffusion in which all processes are neighbors.
	Beneath func(parley.RunConditions) []parley.Promise
	// Uniform declares that the broadcast below is uniform. Then this broadcast is also uniform.
	Uniform bool
}

// New returns the protocol as a layer that receives messages only through the broadcast below: for
// Piggyback that must be FIFO broadcast. It panics if c is invalid.
func New(c Config) parley.Protocol {
	if c.N < 1 || c.N > parley.MaxProcesses || c.Most < -1 || c.Window < 0 || c.Form > Vector {
		panic(fmt.Sprintf("causal: %d processes, form %d, most %d, window %d", c.N, c.Form, c.Most, c.Window))
	}
	c.Window, c.Most = cmp.Or(c.Window, diffusion.Window), cmp.Or(c.Most, Most)
	if c.Most == -1 {
		c.Most = math.MaxInt
	}
	if c.Beneath == nil {
		c.Beneath = diffusion.New(diffusion.Config{N: c.N}).Promises
	}
	p := parley.Protocol{
		Name:   "causal",
		Title:  "causal broadcast with what precedes a message piggybacked",
		Paper:  "lecture, causal broadcast using FIFO broadcast",
		Faults: parley.OmissionFaults, Kinds: []string{"", "BUNDLE", "STAMPED"}, N: c.N, M: max(c.N-1, 0),
		Serves: true, Hears: parley.HearsBeneath,
		New: func(parley.ID) parley.Machine {
			return &process{c: c, sender: make([]problem.Lives[stream], c.N)}
		},
		Properties: problem.Of(problem.Validity, problem.Agreement, problem.Integrity, problem.FIFOOrder,
			problem.CausalOrder, problem.Delivery),
		Promises: c.promises,
		Explain:  explain(c.N),
	}
	if c.Form == Vector {
		p.Title, p.Paper = "causal broadcast with vector clocks", "Birman, Schiper, Stephenson 1991"
	}
	if c.Uniform {
		p.Properties = append(p.Properties, problem.Of(problem.UniformAgreement)...)
	}
	return p
}

// promises adds the order to the promises of the broadcast below.
func (c Config) promises(a parley.RunConditions) []parley.Promise {
	because := "all messages that precede a message travel with it, or came earlier from the same sender (lecture)"
	if c.Form == Vector {
		because = "a message waits until all messages that its vector counts are delivered (Birman, Schiper, Stephenson 1991)"
	}
	var out []parley.Promise
	for _, p := range c.Beneath(a) {
		if p.Property != problem.FIFOOrder {
			out = append(out, p)
		}
	}
	return parley.Proved(append(out, problem.Promise(a, problem.FIFOOrder, "causal order includes FIFO order"),
		problem.Promise(a, problem.CausalOrder, because)), c.proofs())
}

// explain shows a bundle as its messages, each with sender, number and payload, and the sender's incarnation
// if it is not the first: 1#1 article, 2#1 response. It shows a stamped message as its number and payload,
// and the last message of each sender that it follows: #1 response after 1#1.
func explain(n int) func(parley.Env, parley.Msg, func(parley.ID) string) iter.Seq[string] {
	return func(_ parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
		var rows []string
		var err error
		if m.Kind == Bundle {
			var all []Message
			all, err = Unpack(m.Body, n)
			for _, one := range all {
				rows = append(rows, problem.Number(name(one.Sender), one.Life, one.Seq)+" "+parley.Printable(one.Body))
			}
		} else {
			var vector []Count
			var payload []byte
			vector, payload, err = ReadStamp(m.Body, n)
			row, link := fmt.Sprintf("#%d %s", m.Seq, parley.Printable(payload)), " after "
			for _, c := range vector {
				row, link = row+link+problem.Number(name(c.Sender), c.Life, c.Seq), ", "
			}
			rows = []string{row}
		}
		if err != nil {
			rows = []string{err.Error()}
		}
		return slices.Values(rows)
	}
}

// tower holds the values of the flags of Tower.
type tower struct {
	diffusion.Config
	form Form
}

// Tower returns causal broadcast on top of FIFO broadcast on top of diffusion: a complete protocol.
func Tower(form Form, c diffusion.Config) parley.Protocol {
	beneath := diffusion.New(c)
	order := fifo.New(fifo.Config{N: c.N, Window: c.Window, Beneath: beneath.Promises, Uniform: c.Uniform})
	p := stack.New(beneath, order,
		New(Config{N: c.N, Form: form, Window: c.Window, Beneath: beneath.Promises, Uniform: c.Uniform}))
	p.Flags = parley.Flags(tower{c, form}, func(fs *flag.FlagSet, t *tower) func(*tower, parley.Naming) error {
		config := diffusion.Flags(fs, &t.Config)
		how := fs.String("form", form.String(), "how a message carries its causal dependencies: "+
			"`piggyback|vector`; piggyback: as copies of earlier messages; vector: as a vector clock")
		return func(t *tower, naming parley.Naming) error {
			if t.form = Vector; *how == Piggyback.String() {
				t.form = Piggyback
			} else if *how != Vector.String() {
				return parley.FlagErrorf("form", "%q: allowed are piggyback and vector", *how)
			}
			return config(&t.Config, naming)
		}
	}, func(t tower) parley.Protocol { return Tower(t.form, t.Config) })
	return p
}
