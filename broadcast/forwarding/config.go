package forwarding

import (
	"flag"
	"iter"

	"parley"
	"parley/broadcast/problem"
)

// Config must be identical on all processes.
type Config struct {
	N int
	// Tree has for each process its children in the broadcasts of Root. In the broadcasts of another process, this
	// process and Root exchange their places. nil means a heap, in which process i has the children k*i+1 to k*i+k,
	// and Root is 0.
	Tree [][]parley.ID
	Root parley.ID
	// Fanout is the k of the heap. The default is 2. 1 makes a chain, and n-1 a star.
	Fanout int
	// Window is how many of its own broadcasts a process may have in flight, by default 64. Further broadcasts wait.
	// With Window 1, as in the lecture, the next broadcast shows that the last broadcast is complete. Window bounds
	// how many messages the others must hold.
	Window int
	// Notice makes the root report by a separate message that a broadcast is complete. Without Notice, the next
	// broadcast reports this.
	Notice bool
}

// check returns the tree of Root, or an error if the configuration is invalid.
func (c Config) check() (tree, error) {
	switch {
	case c.N < 1 || c.N > parley.MaxProcesses:
		return nil, parley.CheckN(c.N, 1)
	case c.Window < 1:
		return nil, parley.FlagErrorf("window", "%d broadcasts: allowed is at least 1", c.Window)
	case c.Fanout < 1:
		return nil, parley.FlagErrorf("fanout", "%d children: allowed is at least 1", c.Fanout)
	case int(c.Root) >= c.N || c.Tree == nil && c.Root != 0:
		return nil, parley.FlagErrorf("root", "process %d is not the root of the tree", c.Root)
	case c.Tree != nil:
		return ofChildren(c.N, c.Root, c.Tree)
	}
	return heap(c.N, c.Fanout), nil
}

// flags declares the flags of the protocol; their defaults are the fields of c.
func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	n, fanout := c.N, c.Fanout
	fs.IntVar(&c.N, "n", c.N, "number of `processes`")
	fs.IntVar(&c.Fanout, "fanout", c.Fanout, "`number` of children of each process in the tree, 1 or more")
	fs.IntVar(&c.Window, "window", c.Window, "maximum `number` of unfinished broadcasts of a process, 1 or more")
	fs.BoolVar(&c.Notice, "notice", c.Notice, "announce the end of a broadcast in a separate message, not "+
		"in the next broadcast")
	return func(c *Config, _ parley.Naming) error {
		if c.N != n || c.Fanout != fanout {
			c.Tree, c.Root = nil, 0
		}
		_, err := c.check()
		return err
	}
}

// cost counts one broadcast without faults: every process but the root gets the message, acknowledges it, and
// with Notice gets the notice.
func cost(c Config, n int) parley.Cost {
	each := parley.Traffic{Messages: 2}
	if c.Notice {
		each.Messages++
	}
	return parley.Cost{PerRound: []parley.Traffic{each.Times(uint64(max(n-1, 0)))}}
}

// promises returns which properties hold under the conditions of a run.
func promises(a parley.RunConditions) []parley.Promise {
	return []parley.Promise{
		problem.Promise(a, problem.Validity, "the root takes over from crashed processes below it"),
		problem.Promise(a, problem.Agreement, "a process that holds a message takes over from crashed neighbors"),
		problem.Promise(a, problem.Integrity, "a second copy is recognized by its sender, incarnation and number"),
		problem.Promise(a, problem.Delivery, ""),
	}
}

// explain shows which broadcast a message is about: its sender, the sender's incarnation if it is not the
// first, and its number; 2#7, or 2.3#1.
func explain(c Config) func(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
	return func(_ parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
		return func(yield func(string) bool) {
			which := problem.Number(name(m.Origin), m.Value, m.Seq)
			switch m.Kind {
			case Data:
				if _, _, payload, ok := read(m.Body, c.N); ok {
					yield(which + " " + parley.Printable(payload))
				}
			case Ack:
				yield(which + " has reached all below me")
			case Done:
				yield(which + " is complete, and all before it")
			case Hello:
				yield(problem.InLife(name(m.Origin), m.Value) + " is back")
			}
		}
	}
}
