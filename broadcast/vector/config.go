package vector

import (
	"flag"
	"fmt"
	"iter"
	"slices"

	"parley"
	"parley/agreement/ballot"
	"parley/broadcast/problem"
	"parley/membership/group"
)

// Config is one system.
type Config struct {
	group.Config
	// Level is the level of messages of which nothing else is said; by default Causal. It is also
	// what is promised of a run.
	Level Level
	// Window is how many own messages of a member may not be known to be with all; up to
	// Queue more wait in the sender, and what is beyond that is refused. By default 64.
	Window int
	// Hold is how long, in ticks, an acknowledgement may wait for more to acknowledge
	// with it; 0: not at all.
	Hold parley.Tick
}

var names = []string{"", "reliable", "uniform", "fifo", "causal"}

func (l Level) String() string {
	if int(l) < len(names) {
		return names[l]
	}
	return fmt.Sprintf("Level(%d)", uint8(l))
}

// New returns the protocol. It carries what it is asked to by problem.Request, or with a
// level for the request's Value, from the members of the view to all of them, and delivers
// it with its sender and, as Seq, its position among the deliveries of the process.
func New(c Config) parley.Protocol {
	c, err := c.checked()
	if err != nil {
		panic("vector: " + err.Error())
	}
	p := group.New(c.Config, Service(c))
	p.Name = "vector"
	p.Title = "reliable, FIFO and causal broadcast by vector clocks in views"
	p.Paper = "Birman, Schiper and Stephenson 1991"
	for i := range p.Properties {
		if p.Properties[i].Name == group.ViewSynchrony {
			p.Properties[i] = group.Synchrony()
		}
	}
	p.Properties = append(p.Properties, group.InLives(c.Config, problem.Of(c.properties()...))...)
	views := p.Promises
	p.Promises = func(a parley.Assumptions) []parley.Promise { return append(views(a), c.promises(a)...) }
	p.Cost = Cost
	p.Flags = parley.Flags(c, flags, New)
	return p
}

func (c Config) checked() (Config, error) {
	if c.Level == 0 {
		c.Level = Causal
	}
	if c.Window == 0 {
		c.Window = 64
	}
	switch {
	case c.Level > Causal:
		return c, parley.FlagErrorf("level", "there is no level %d", c.Level)
	case c.Window < 0 || c.Window > most:
		return c, parley.FlagErrorf("window", "%d messages: allowed are 1 to %d", c.Window, most)
	case c.Hold < 0:
		return c, parley.FlagErrorf("hold", "%d ticks: a time is not negative", c.Hold)
	}
	err := c.Config.Check()
	c.Config = c.Config.WithDefaults()
	return c, err
}

func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	views := group.Flags(fs, &c.Config)
	level := fs.String("level", c.Level.String(), "`what` is promised of messages: reliable, uniform, fifo or causal")
	fs.IntVar(&c.Window, "window", c.Window, "how many own `messages` may not be known to be with all")
	fs.Int64Var((*int64)(&c.Hold), "hold", int64(c.Hold), "`ticks` that an acknowledgement may wait for more")
	return func(c *Config, naming parley.Naming) error {
		at := slices.Index(names, *level)
		if at < 1 {
			return parley.FlagErrorf("level", "%q: allowed are reliable, uniform, fifo, causal", *level)
		}
		if c.Level = Level(at); c.Window == 0 {
			c.Window = -1 // no default stands for it here
		}
		if err := views(&c.Config, naming); err != nil {
			return err
		}
		_, err := c.checked()
		return err
	}
}

// Service is the broadcast as a layer of a group.
func Service(c Config) group.Service {
	return group.Service{
		Name:     "vector",
		Kinds:    []string{"", "DATA", "ACK"},
		Requests: []parley.Kind{parley.Carried},
		New:      func(self parley.ID, n int) group.Layer { return newLayer(c, self, n) },
		Explain: func(_ parley.Env, m parley.Msg, _ func(parley.ID) string) iter.Seq[string] {
			return func(yield func(string) bool) { yield(explain(m)) }
		},
	}
}

func explain(m parley.Msg) string {
	vec, payload, ok := readVector(nil, m.Body)
	after := ""
	if ok && m.Kind == Data && Level(m.Value) == Causal {
		var need []uint64
		need, payload, ok = readVector(nil, payload)
		after = fmt.Sprintf(" after %d", need)
	}
	switch {
	case m.Kind != Data && m.Kind != Ack:
		return "a message of no kind"
	case !ok:
		return "a message that cannot be read"
	case m.Kind == Data:
		return fmt.Sprintf("%s message %d%s, holds %d: %s", Level(min(m.Value, 255)), m.Seq, after, vec,
			parley.Printable(payload))
	}
	return fmt.Sprintf("holds %d", vec)
}

// Cost counts one broadcast when nobody else sends: to n-1 others, and from each of
// them an acknowledgement to n-1.
func Cost(n, _ int) parley.Cost {
	others := uint64(n - 1)
	return parley.Cost{Rounds: 2, PerRound: []parley.Traffic{{Messages: others}, {Messages: others * others}}}
}

// properties returns what the level of the Config promises, and what views do.
func (c Config) properties() []string {
	all := []string{problem.Validity, problem.Agreement, problem.Integrity, problem.Delivery}
	switch c.Level {
	case Uniform:
		all = append(all, problem.UniformAgreement)
	case FIFO:
		all = append(all, problem.FIFOOrder)
	case Causal:
		all = append(all, problem.FIFOOrder, problem.CausalOrder)
	}
	return all
}

// promises says what theory promises of them.
func (c Config) promises(a parley.Assumptions) []parley.Promise {
	safe, because := true, "a link brings all that was sent before, and who goes on reports what came"
	if a.Network.Doubled || a.Network.Reordered {
		safe, because = false, "a link doubled messages or changed their order"
	}
	excluded := a.Processes.Suspected || a.Network.Lost || a.Network.Cut || a.Processes.Paused || a.Network.Late
	whole, why := safe, because
	switch {
	case !safe:
	case a.Processes.Restarted || a.Processes.LostDisk || c.Return && excluded || c.Initial != parley.Everyone(c.N):
		whole, why = false, "a process that joins gets its sponsor's state, and goes on from there"
	}
	live, when := whole, why
	switch err := ballot.Bound(a.N, a.Faulty); {
	case !whole:
	case excluded:
		live, when = false, "a process that lives may be excluded, and is then told nothing more"
	case err != nil || a.Processes.Minority || a.Network.Disconnected:
		live, when = false, "a majority of the view is needed to go on"
	}
	var out []parley.Promise
	for _, property := range c.properties() {
		p := parley.Promise{Property: property, Holds: live, Because: when}
		switch property {
		case problem.Integrity:
			p.Holds, p.Because = safe, because
		case problem.FIFOOrder, problem.CausalOrder:
			p.Holds, p.Because = whole, why
		case problem.Delivery:
			p.Holds, p.Because = false, "one run need not show it"
		}
		out = append(out, p)
	}
	return out
}
