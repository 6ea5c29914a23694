package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"parley"
	"parley/run"
	"parley/sim"
)

func (r reader) link(n ast.Node, p *run.Plan) error {
	var l sim.Link
	err := r.fields(n, map[string]func(ast.Node) error{
		"from": into(&l.From, r.processes), "to": into(&l.To, r.processes),
		"since": into(&l.Since, r.time), "until": into(&l.Until, r.time),
		"delay": into(&l.Delay, r.delay), "loss": into(&l.Loss, r.chance), "twice": into(&l.Twice, r.chance),
	})
	p.Links = append(p.Links, l)
	return cmp.Or(err, window(l))
}

// window tells what is wrong with the time in which a rule for links holds.
func window(l sim.Link) error {
	if l.Until != 0 && l.Until <= l.Since {
		return fmt.Errorf("until %d: a time after since, %d, was expected", l.Until, l.Since)
	}
	return nil
}

// partition reads {groups: [[P1, P2], [P3]], since: 100, until: 900}: nothing goes
// from one group to another.
func (r reader) partition(n ast.Node, p *run.Plan) error {
	var groups []parley.Set
	var all parley.Set
	rule := sim.Link{Loss: 1}
	err := r.fields(n, map[string]func(ast.Node) error{
		"since": into(&rule.Since, r.time), "until": into(&rule.Until, r.time),
		"groups": func(n ast.Node) error {
			return r.list("groups", n, func(n ast.Node) error {
				g, err := r.processes(n)
				if err == nil && all.Minus(g) != all {
					err = errors.New("a process is in two groups")
				}
				for id := range g.All() {
					all.Add(id)
				}
				groups = append(groups, g)
				return err
			})
		},
	})
	if err == nil && len(groups) < 2 {
		err = errors.New("two groups or more were expected, as in groups: [[1, 2], [3]]")
	}
	for i, from := range groups {
		for k, to := range groups {
			if i != k {
				rule.From, rule.To = from, to
				p.Links = append(p.Links, rule)
			}
		}
	}
	return cmp.Or(err, window(rule))
}

// crash reads {process: P2, step: 3, effects: 1}, or when: in place of step.
func (r reader) crash(n ast.Node, p *run.Plan) error {
	var c sim.Crash
	var disk string
	timed := false
	err := r.fields(n, map[string]func(ast.Node) error{
		"process": into(&c.At, r.process), "step": into(&c.Step, some(r.count)),
		"when": func(n ast.Node) (err error) {
			timed = true
			c.When, err = r.time(n)
			return err
		},
		"effects": into(&c.Effects, r.count), "back": into(&c.Back, some(r.time)), "disk": into(&disk, r.text),
	}, "process")
	switch {
	case err != nil:
		return err
	case disk != "" && disk != "lost" && disk != "kept":
		return fmt.Errorf("disk: %q: allowed are kept and lost", disk)
	case (c.Step > 0) == timed:
		return errors.New("either step, from 1, or when, from 0, was expected")
	case c.Back == 0 && disk != "":
		return errors.New("disk: this is of a process that comes back")
	}
	c.LostDisk = disk == "lost"
	p.Crashes = append(p.Crashes, c)
	return nil
}

func (r reader) pause(n ast.Node, p *run.Plan) error {
	var v sim.Pause
	err := r.fields(n, map[string]func(ast.Node) error{
		"process": into(&v.At, r.process), "since": into(&v.From, r.time), "for": into(&v.For, some(r.time)),
	}, "process", "for")
	p.Pauses = append(p.Pauses, v)
	return err
}

// clock reads {process: P1, offset: -5ms, drift: 100}, the drift in parts in a million.
func (r reader) clock(n ast.Node, p *run.Plan) error {
	var c sim.Clock
	err := r.fields(n, map[string]func(ast.Node) error{
		"process": into(&c.At, r.process), "drift": into(&c.Drift, r.drift),
		"offset": into(&c.Offset, func(n ast.Node) (parley.Tick, error) {
			text, err := r.text(n)
			if err != nil {
				return 0, err
			}
			return r.tick(text)
		}),
	}, "process")
	if err == nil && slices.ContainsFunc(p.Clocks, func(d sim.Clock) bool { return d.At == c.At }) {
		err = errors.New("the clock of this process is given twice")
	}
	p.Clocks = append(p.Clocks, c)
	return err
}

func (r reader) suspicion(n ast.Node, p *run.Plan) error {
	var v sim.Suspicion
	err := r.fields(n, map[string]func(ast.Node) error{
		"process": into(&v.At, r.process), "suspects": into(&v.Of, r.process), "when": into(&v.When, r.time),
	}, "process", "suspects")
	if err == nil && v.At == v.Of {
		err = errors.New("nobody suspects itself")
	}
	p.Suspicions = append(p.Suspicions, v)
	return err
}

func (r reader) random(n ast.Node, v *run.Random) error {
	return r.fields(n, map[string]func(ast.Node) error{
		"crashes": into(&v.Crashes, r.atMost(mostFaults)), "restarts": into(&v.Restarts, r.atMost(mostFaults)),
		"lost-disks": into(&v.LostDisks, r.atMost(mostFaults)), "partitions": into(&v.Partitions, r.atMost(mostFaults)),
		"one-way": into(&v.OneWay, r.atMost(mostFaults)), "slow": into(&v.Slow, r.atMost(mostFaults)),
		"lossy":  into(&v.Lossy, r.atMost(mostFaults)),
		"pauses": into(&v.Pauses, r.atMost(mostFaults)), "suspicions": into(&v.Suspicions, r.atMost(mostFaults)),
		"drift": into(&v.Drift, r.atMost(mostDrift)), "within": into(&v.Within, r.time), "last": into(&v.Last, r.time),
		"spared": into(&v.Spared, r.processes),
	})
}
