package harness

import (
	"slices"

	"parley"
	"parley/sim"
	"parley/trace"
)

// doom has the machine of a process crash where that is due. It is a host.Crash.
type doom struct {
	m     *member
	steps int
	how   sim.Crash // the one that has come
}

// at is the true time at which the machine's clock shows another one.
func (d *doom) at(shown parley.Tick) parley.Tick { return d.m.Wrong.When(shown) }

// Before tells whether the process is to have been killed by now.
func (d *doom) Before(shown parley.Tick) bool {
	for _, c := range d.m.Crashes {
		if c.Step == 0 && c.Effects == 0 && (c.When == 0 || c.When <= d.at(shown)) {
			d.how = c
			return true
		}
	}
	return false
}

// Within counts a step, and tells whether the machine crashes in it.
func (d *doom) Within(shown parley.Tick, effects []parley.Effect) (carried int, crashes bool) {
	d.steps++
	for _, c := range d.m.Crashes {
		if c.Step == d.steps || c.Step == 0 && c.Effects > 0 && len(effects) > 0 && d.due(c.When, shown) {
			d.how = c
			return c.Effects, true
		}
	}
	return 0, false
}

// due tells whether a time has come, and what the process is asked by then has been asked: a
// process that is late is asked late, too.
func (d *doom) due(when, shown parley.Tick) bool {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	return when <= d.at(shown) && (d.m.made == len(d.m.Requests) || d.m.Requests[d.m.made].When > when)
}

// Crashed ends the process.
func (d *doom) Crashed() { go d.m.crash(d.how) }

// crash ends the machine and the trace, and says so: whoever started the process ends it
// then, when what it sent has been written to the links.
func (m *member) crash(how sim.Crash) {
	m.host.Flush()
	now := max(m.clock.Now(), 0)
	m.mu.Lock()
	m.written.Add(trace.Event{Op: trace.Crash, At: m.Self, Time: now})
	m.mu.Unlock()
	m.stop()
	m.say(answer{Crashed: &crashed{now, how.Back, how.LostDisk}})
}

// crashed says that a process has crashed by itself.
type crashed struct {
	When parley.Tick
	Back parley.Tick
	Lost bool
}

// steps is how many steps of a machine are among its events.
func steps(events []trace.Event) (n int) {
	ops := []trace.Op{trace.Start, trace.Restart, trace.Request, trace.Receive, trace.Timeout, trace.Suspect}
	for _, e := range events {
		if slices.Contains(ops, e.Op) {
			n++
		}
	}
	return n
}
