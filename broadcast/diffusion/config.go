package diffusion

import (
	"cmp"
	"flag"
	"fmt"
	"iter"
	"slices"

	"parley"
	"parley/broadcast/problem"
)

// Window is the default of Config.Window.
const Window = 1 << 16

// Config must be identical on all processes of one broadcast.
type Config struct {
	N int
	// M is how many processes may crash. 0 means as many as the theorem allows: n-1, or (n-1)/2 with Uniform. With a
	// Graph, M is how many processes may crash without disconnecting the others, whichever processes crash, and 0
	// means none. In a run with a Graph, more processes may crash as long as the others stay connected.
	M int
	// Graph has the neighbors of each process. If it is empty, all processes are neighbors. Links go both ways.
	Graph []parley.Set
	// Uniform makes a process deliver a message only when a majority holds it.
	Uniform bool
	// Window is how far beyond the first gap a process accepts the messages of one sender, in messages. 0 means the
	// constant Window.
	Window int
}

// checked returns c with defaults in place of zero fields, or an error.
func (c Config) checked() (Config, error) {
	wrong := func(flag, form string, args ...any) (Config, error) {
		return c, parley.FlagErrorf(flag, form, args...)
	}
	if err := parley.CheckN(c.N, 1); err != nil {
		return c, err
	}
	if c.M < 0 || c.M >= c.N && c.M > 0 {
		return wrong("m", "%d crashes of %d processes: allowed are 0 to n-1 = %d", c.M, c.N, c.N-1)
	}
	if c.Window < 0 {
		return wrong("window", "%d messages: a window has at least one", c.Window)
	}
	c.Window = cmp.Or(c.Window, Window)
	switch {
	case len(c.Graph) == 0 && c.M == 0:
		if c.M = c.N - 1; c.Uniform {
			c.M = (c.N - 1) / 2
		}
	case len(c.Graph) == 0:
	case c.Uniform:
		return wrong("uniform", "a majority can be heard of on a complete graph alone")
	case len(c.Graph) != c.N:
		return wrong("graph", "it has %d processes and not %d", len(c.Graph), c.N)
	}
	for id, neighbours := range c.Graph {
		for other := range neighbours.All() {
			if int(other) >= c.N || int(other) == id || !c.Graph[other].Has(parley.ID(id)) {
				return wrong("graph", "process %d has neighbour %d, and that not the other way round", id, other)
			}
		}
	}
	return c, nil
}

// New returns the protocol. It panics if c is invalid.
func New(c Config) parley.Protocol {
	given := c
	c, err := c.checked()
	if err != nil {
		panic("diffusion: " + err.Error())
	}
	p := parley.Protocol{
		Name:   "diffusion",
		Title:  "reliable broadcast by message diffusion",
		Paper:  "lecture, reliable broadcast by message diffusion",
		Faults: parley.OmissionFaults, Kinds: []string{"", "DATA"}, N: c.N, M: c.M, Serves: true,
		Relays:     !c.Uniform,
		Graph:      c.Graph,
		New:        func(parley.ID) parley.Machine { return newProcess(c) },
		Properties: problem.Of(problem.Validity, problem.Agreement, problem.Integrity, problem.Delivery),
		Promises:   c.promises,
		Cost:       c.cost,
		Size:       func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1} },
		Explain:    explain,
		Flags:      parley.Flags(given, Flags, New),
	}
	if len(c.Graph) == 0 {
		p.Rename = problem.RenameOrigin
	}
	if c.Uniform {
		p.Title, p.Bound = "uniform "+p.Title, Bound
		p.Properties = append(p.Properties, problem.Of(problem.UniformAgreement)...)
	}
	return p
}

// promises returns what holds in a run, by the argument in the package comment.
func (c Config) promises(a parley.RunConditions) []parley.Promise {
	because := "each process on a path of correct processes relays a message before it delivers the message (lecture)"
	names := []string{problem.Validity, problem.Agreement, problem.Integrity, problem.Delivery}
	if c.Uniform {
		because = "a majority holds each delivered message, and a correct process of this majority has " +
			"sent the message to all"
		names = append(names, problem.UniformAgreement)
	}
	var out []parley.Promise
	for _, name := range names {
		p := problem.Promise(a, name, because)
		switch {
		case name == problem.Integrity:
			p.Because = "sender, incarnation and number identify a message, and a process delivers each " +
				"message once"
		case p.Holds && len(c.Graph) == 0 && a.Faulty > c.M:
			p.Holds, p.Because = false, fmt.Sprintf("%d processes failed, and m = %d", a.Faulty, c.M)
		case p.Holds && c.Uniform && (a.Processes.Minority || Bound(a.N, a.Faulty) != nil):
			p.Holds, p.Because = false, "no majority is correct and connected, so no majority can hold "+
				"a message"
		}
		out = append(out, p)
	}
	return parley.Proved(out, c.proofs())
}

// Bound returns nil if the uniform form has a majority of correct processes, that is, if n > 2m.
func Bound(n, m int) error {
	if n > 2*m {
		return nil
	}
	return fmt.Errorf("uniform broadcast needs a correct majority: %d processes tolerate at most m = %d crashes, not %d",
		n, (n-1)/2, m)
}

// cost is the lecture's count for one broadcast: the sender sends to its neighbors and itself, each other
// process once to its neighbors. On a complete graph: n(n-1)+1 messages.
func (c Config) cost(n, _ int) parley.Cost {
	links := uint64(n) * uint64(n-1)
	if len(c.Graph) > 0 {
		links = 0
		for _, neighbours := range c.Graph {
			links += uint64(neighbours.Len())
		}
	}
	return parley.Cost{Rounds: 1, PerRound: []parley.Traffic{{Messages: links + 1}}}
}

// explain shows a message as its sender, the sender's incarnation if it is not the first, its sequence number
// and the payload: 2#7 hello, or 2.3#1 again.
func explain(_ parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
	return slices.Values([]string{problem.Number(name(m.Origin), m.Value, m.Seq) + " " + parley.Printable(m.Body)})
}

// Flags declares the flags of diffusion, and of every stack on top of it.
func Flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	fs.IntVar(&c.N, "n", c.N, "number of `processes`")
	fs.IntVar(&c.M, "m", 0, "`crashes` to tolerate (0: as many as the theorem allows)")
	fs.BoolVar(&c.Uniform, "uniform", c.Uniform, "deliver a message only when a majority holds it")
	return func(c *Config, _ parley.Naming) (err error) {
		c.Graph = nil
		*c, err = c.checked()
		return err
	}
}
