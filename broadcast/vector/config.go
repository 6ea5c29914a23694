package vector

import (
	"cmp"
	"flag"
	"fmt"
	"slices"

	"parley"
	"parley/broadcast/problem"
	"parley/broadcast/views"
	"parley/membership/group"
)

// Config must be identical on all members, see group.Config.
type Config struct {
	group.Config
	// Level is the level of a message if its request names no level. The default is Causal. Level also selects the
	// properties that are promised for a run.
	Level Level
	// Window is how many of its own messages a member may have in flight, by default 64. A message is in flight until
	// its sender knows that all members hold it. Up to Queue further messages wait in the sender. The sender refuses
	// more messages.
	Window int
	// Hold is how long, in ticks, an acknowledgement may wait for more messages to acknowledge; 0: no wait.
	Hold parley.Tick
}

var names = []string{"", "reliable", "uniform", "fifo", "causal"}

func (l Level) String() string {
	if int(l) < len(names) {
		return names[l]
	}
	return fmt.Sprintf("Level(%d)", uint8(l))
}

// New returns the protocol. A problem.Request at a member of the view broadcasts to all members. The Value of the
// request may name the level. A delivery has the sender of the message and, as Seq, its position among the deliveries
// of the process. New panics if c is invalid.
func New(c Config) parley.Protocol {
	c, err := c.checked()
	if err != nil {
		panic("vector: " + err.Error())
	}
	p := group.New(c.Config, LayerSpec(c))
	p.Name = "vector"
	p.Title = "reliable, FIFO and causal broadcast by vector clocks in views"
	p.Paper = "Birman, Schiper and Stephenson 1991"
	for i := range p.Properties {
		if p.Properties[i].Name == group.ViewSynchrony {
			p.Properties[i] = group.Synchrony()
		}
	}
	views.Complete(&p, c.Config, problem.Of(c.properties()...), c.promises)
	p.Cost = views.Cost
	p.Flags = parley.Flags(c, flags, New)
	return p
}

func (c Config) checked() (Config, error) {
	c.Level, c.Window = cmp.Or(c.Level, Causal), cmp.Or(c.Window, 64)
	switch {
	case c.Level > Causal:
		return c, parley.FlagErrorf("level", "there is no level %d", c.Level)
	case c.Window < 0 || c.Window > maxWindow:
		return c, parley.FlagErrorf("window", "%d messages: allowed are 1 to %d", c.Window, maxWindow)
	case c.Hold < 0:
		return c, parley.FlagErrorf("hold", "%d ticks: allowed are times from 0", c.Hold)
	}
	err := c.Config.Check()
	c.Config = c.Config.WithDefaults()
	return c, err
}

func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	ofViews := group.Flags(fs, &c.Config)
	level := fs.String("level", c.Level.String(), "`level` of each broadcast: reliable|uniform|fifo|causal")
	fs.IntVar(&c.Window, "window", c.Window, "maximum `number` of a process's own messages that not all "+
		"processes have acknowledged")
	fs.Int64Var((*int64)(&c.Hold), "hold", int64(c.Hold), "how long a process delays an "+
		"acknowledgement so that it can acknowledge several messages together, in `ticks`, 0 or more")
	return func(c *Config, naming parley.Naming) error {
		at := slices.Index(names, *level)
		if at < 1 {
			return parley.FlagErrorf("level", "%q: allowed are reliable, uniform, fifo, causal", *level)
		}
		if c.Level = Level(at); c.Window == 0 { // 0 would mean the default
			return parley.FlagErrorf("window", "0 messages: allowed are 1 to %d", maxWindow)
		}
		if err := ofViews(&c.Config, naming); err != nil {
			return err
		}
		_, err := c.checked()
		return err
	}
}

// LayerSpec describes the broadcast as a layer of a group.
func LayerSpec(c Config) group.LayerSpec {
	layer := func(self parley.ID, n int) group.Layer { return newLayer(c, self, n) }
	return views.LayerSpec("vector", layer, func(m parley.Msg, payload []byte) (string, []byte) {
		after := ""
		if Level(m.Value) == Causal {
			need, behind, ok := views.ReadVector(nil, payload)
			if !ok {
				return "", nil
			}
			after, payload = fmt.Sprintf(" after %d", need), behind
		}
		return fmt.Sprintf("%s message %d%s", Level(min(m.Value, 255)), m.Seq, after), payload
	})
}

// properties returns the names of the properties that the level of the Config promises.
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

// promises returns which properties hold under the conditions of a run.
func (c Config) promises(a parley.RunConditions) []parley.Promise {
	return parley.Proved(views.Promises(c.Config, a, "before a view ends, each process that continues reports what it "+
		"received, and links deliver everything that was sent before the report",
		[]string{problem.Integrity}, []string{problem.FIFOOrder, problem.CausalOrder},
		[]string{problem.Validity, problem.Agreement, problem.UniformAgreement}), proofs)
}
