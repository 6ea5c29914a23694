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

func link(l *sim.Link, _ []sim.Link) entry {
	return entry{
		fields: []field{
			value("from", &l.From, processes), value("to", &l.To, processes), value("since", &l.Since, moment),
			value("until", &l.Until, moment), value("loss", &l.Loss, chance), value("twice", &l.Twice, chance),
			value("delay", &l.Delay, delay),
		},
		check: func() error { return window(*l) },
	}
}

// window returns an error if a link rule holds for an empty time.
func window(l sim.Link) error {
	if l.Until != 0 && l.Until <= l.Since {
		return fmt.Errorf("until is %d: allowed are times after since, which is %d", l.Until, l.Since)
	}
	return nil
}

// partitions reads {groups: [[P1, P2], [P3]], since: 100, until: 900}: no message goes from one group to another.
func (r reader) partitions(n ast.Node, links *[]sim.Link) error {
	return r.list("partitions", n, func(n ast.Node) error {
		var groups []parley.Set
		var all parley.Set
		rule := sim.Link{Loss: 1}
		group := func(n ast.Node) error {
			g, err := r.processes(n)
			if err == nil && all.Minus(g) != all {
				err = errors.New("a process is in two groups")
			}
			for id := range g.All() {
				all.Add(id)
			}
			groups = append(groups, g)
			return err
		}
		err := r.fields(n, []field{
			value("since", &rule.Since, moment), value("until", &rule.Until, moment),
			{key: "groups", read: func(r reader, n ast.Node) error { return r.list("groups", n, group) }},
		})
		if err == nil && len(groups) < 2 {
			err = errors.New("a partition has at least two groups: write groups: [[1, 2], [3]]")
		}
		for i, from := range groups {
			for k, to := range groups {
				if i != k {
					rule.From, rule.To = from, to
					*links = append(*links, rule)
				}
			}
		}
		return cmp.Or(err, window(rule))
	})
}

// crash is {process: P2, step: 3, effects: 1}, or has when instead of step.
func crash(c *sim.Crash, _ []sim.Crash) entry {
	disk, timed := "", false
	if c.LostDisk {
		disk = "lost"
	}
	when := kind[parley.Tick]{
		func(r reader, n ast.Node) (parley.Tick, error) {
			timed = true
			return moment.read(r, n)
		},
		func(n names, t parley.Tick) string {
			if t == 0 && c.Step == 0 {
				return "0"
			}
			return moment.write(n, t)
		},
	}
	return entry{
		[]field{
			value("process", &c.At, process), value("step", &c.Step, numeric(some(count))),
			value("when", &c.When, when), value("effects", &c.Effects, whole), value("back", &c.Back, period),
			value("disk", &disk, text),
		},
		[]string{"process"},
		func() error {
			switch {
			case disk != "" && disk != "lost" && disk != "kept":
				return fmt.Errorf("disk: %q: allowed are kept and lost", disk)
			case (c.Step > 0) == timed:
				return errors.New("a crash has either step, from 1, or when, from 0: write {process: 2, when: 1000}")
			case c.Back == 0 && disk != "":
				return errors.New("disk: the process does not restart: add back, the time until it does")
			}
			c.LostDisk = disk == "lost"
			return nil
		},
	}
}

func pause(v *sim.Pause, _ []sim.Pause) entry {
	return entry{
		fields: []field{value("process", &v.At, process), value("since", &v.From, moment), value("for", &v.For, period)},
		needed: []string{"process", "for"},
	}
}

// clock is {process: P1, offset: -5ms, drift: 100}, with the drift in parts per million.
func clock(c *sim.Clock, before []sim.Clock) entry {
	return entry{
		[]field{
			value("process", &c.At, process), value("offset", &c.Offset, offset),
			value("drift", &c.Drift, drift),
		},
		[]string{"process"},
		func() error {
			if slices.ContainsFunc(before, func(d sim.Clock) bool { return d.At == c.At }) {
				return errors.New("the clock of this process is given twice: keep one entry")
			}
			return nil
		},
	}
}

func suspicion(v *sim.Suspicion, _ []sim.Suspicion) entry {
	return entry{
		[]field{value("process", &v.At, process), value("suspects", &v.Of, process), value("when", &v.When, moment)},
		[]string{"process", "suspects"},
		func() error {
			if v.At == v.Of {
				return errors.New("a process cannot suspect itself: name two processes")
			}
			return nil
		},
	}
}

func (r reader) random(n ast.Node, v *run.Random) error {
	fields := []field{
		value("drift", &v.Drift, atMost(mostDrift)), value("within", &v.Within, moment), value("last", &v.Last, moment),
		value("spared", &v.Spared, processes),
	}
	for key, count := range map[string]*int{ // order: fields sorts them
		"crashes": &v.Crashes, "restarts": &v.Restarts, "lost-disks": &v.LostDisks, "partitions": &v.Partitions,
		"one-way": &v.OneWay, "slow": &v.Slow, "lossy": &v.Lossy, "pauses": &v.Pauses, "suspicions": &v.Suspicions,
	} {
		fields = append(fields, value(key, count, atMost(mostFaults)))
	}
	return r.fields(n, fields)
}

func (r reader) workload(n ast.Node, w *run.Workload) error {
	w.Broadcasts = run.Few
	return r.fields(n, []field{
		value("broadcasts", &w.Broadcasts, atMost(mostBroadcasts)), value("from", &w.From, processes),
		value("named", &w.Named, yes), value("within", &w.Within, moment),
	})
}
