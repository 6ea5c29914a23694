package catalog

import (
	"flag"
	"fmt"
	"strconv"
	"strings"

	"parley"
	"parley/broadcast/diffusion"
	"parley/broadcast/fifo"
	"parley/broadcast/guard"
	"parley/membership/detector"
	"parley/membership/group"
	"parley/stack"
)

// detectorSpan is the length of a run with a detector, in ticks, because its heartbeats never end.
const detectorSpan parley.Tick = 15_000

// named returns a protocol under a short name, which it keeps when its flags change it.
func named(name, title string, p parley.Protocol) parley.Protocol {
	return remade(p, func(made parley.Protocol) parley.Protocol {
		made.Name, made.Title = name, title
		return made
	})
}

// remade applies a change to a protocol and to every protocol that its flags make of it.
func remade(p parley.Protocol, change func(parley.Protocol) parley.Protocol) parley.Protocol {
	flags := p.Flags
	p = change(p)
	if flags == nil {
		return p
	}
	p.Flags = func(fs *flag.FlagSet) func(parley.Naming) (parley.Protocol, error) {
		build := flags(fs)
		return func(naming parley.Naming) (parley.Protocol, error) {
			made, err := build(naming)
			if err != nil {
				return parley.Protocol{}, err
			}
			return remade(made, change), nil
		}
	}
	return p
}

// heartbeats returns a detector as the lowest layer. Its heartbeats come by the clock, and are not part of the cost
// of a broadcast.
func heartbeats(n int) parley.Protocol {
	p := detector.New(detector.Config{N: n})
	p.Size = func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{} }
	return p
}

// detecting puts a layer above a detector. It has the flags of the layer, and the detector gets the same
// number of processes.
func detecting(layer parley.Protocol) parley.Protocol {
	return remade(layer, func(layer parley.Protocol) parley.Protocol {
		p := stack.New(heartbeats(layer.N), layer)
		p.Name, p.Title, p.Paper = layer.Name, layer.Title, layer.Paper
		p.Span, p.Cost, p.Bare = detectorSpan, layer.Cost, &layer
		return worded(p, ofDetector)
	})
}

// costing gives a tower on diffusion the cost of diffusion: one broadcast of the tower is one of diffusion.
func costing(p parley.Protocol) parley.Protocol {
	return remade(p, func(made parley.Protocol) parley.Protocol {
		made.Cost = diffusion.New(diffusion.Config{N: made.N}).Cost
		return made
	})
}

// guardTower excludes processes that missed a delivery, above FIFO broadcast by diffusion. On a complete graph
// diffusion and FIFO order also tolerate omissions, because their promises to correct processes need only
// links between correct processes.
func guardTower(n int) parley.Protocol {
	return remade(guard.New(guard.Config{N: n}), func(layer parley.Protocol) parley.Protocol {
		p := stack.New(diffusion.New(diffusion.Config{N: layer.N}), fifo.New(fifo.Config{N: layer.N}), layer)
		p.Name, p.Title, p.Paper, p.Faults = layer.Name, layer.Title, layer.Paper, layer.Faults
		return p
	})
}

// inViews tells hosts that the links of a broadcast in views must be FIFO.
func inViews(p parley.Protocol) parley.Protocol {
	return worded(remade(p, func(made parley.Protocol) parley.Protocol {
		made.Relies.FIFO = true
		return made
	}), ofViews)
}

// views returns agreed views with no broadcast above them.
func views(c group.Config) parley.Protocol {
	p := inViews(group.New(c))
	p.Flags = parley.Flags(c, viewFlags, views)
	return p
}

// viewFlags declares the flags of views.
func viewFlags(fs *flag.FlagSet, c *group.Config) func(*group.Config, parley.Naming) error {
	complete := group.Flags(fs, c)
	initial := fs.String("initial", "", "`members` of view 1, as in 1,2,3; the other processes ask to join (default: all)")
	return func(c *group.Config, naming parley.Naming) (err error) {
		c.Initial = parley.Set{}
		if err := complete(c, naming); err != nil {
			return err
		}
		if c.Initial, err = processes("initial", *initial, naming); err != nil {
			return err
		}
		return c.Check()
	}
}

// processes reads a list of processes. An empty text means an empty set.
func processes(name, text string, naming parley.Naming) (parley.Set, error) {
	var all parley.Set
	if text == "" {
		return all, nil
	}
	for _, one := range strings.Split(text, ",") {
		id, err := naming(one)
		if err == nil && !all.Add(id) {
			err = fmt.Errorf("%s is named twice", one)
		}
		if err != nil {
			return all, &parley.FlagError{Flag: name, Err: err}
		}
	}
	return all, nil
}

// meshed returns diffusion on a network that its flags describe.
func meshed(c diffusion.Config) parley.Protocol {
	p := diffusion.New(c)
	p.Flags = parley.Flags(c, func(fs *flag.FlagSet, c *diffusion.Config) func(*diffusion.Config, parley.Naming) error {
		complete := diffusion.Flags(fs, c)
		edges := fs.String("edges", "", "`edges` between neighbors, as in 1-2,2-3,3-1 (default: between all "+
			"processes)")
		return func(c *diffusion.Config, naming parley.Naming) error {
			if err := complete(c, naming); err != nil || *edges == "" {
				return err
			}
			var err error
			if c.Graph, err = graph(*edges, c.N, naming); err != nil {
				return &parley.FlagError{Flag: "edges", Err: err}
			}
			// Only the user knows how many crashes the network tolerates.
			if c.M, err = strconv.Atoi(fs.Lookup("m").Value.String()); err != nil {
				return &parley.FlagError{Flag: "m", Err: err}
			}
			if c.Uniform {
				return parley.FlagErrorf("edges", "a majority can be heard of on a complete network alone")
			}
			return nil
		}
	}, meshed)
	return p
}

// graph reads edges such as 1-2,2-3, and returns the neighbors of each of n processes.
func graph(text string, n int, naming parley.Naming) ([]parley.Set, error) {
	out := make([]parley.Set, n)
	for _, edge := range strings.Split(text, ",") {
		one, other, ok := strings.Cut(edge, "-")
		if !ok {
			return nil, fmt.Errorf("%q: PROCESS-PROCESS was expected, as in 1-2", edge)
		}
		a, err := naming(one)
		if err != nil {
			return nil, err
		}
		b, err := naming(other)
		if err != nil {
			return nil, err
		}
		if a == b || !out[a].Add(b) {
			return nil, fmt.Errorf("%q: given twice, or of a process to itself", edge)
		}
		out[b].Add(a)
	}
	return out, nil
}
