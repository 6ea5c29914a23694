package harness

import (
	"slices"

	"parley"
	"parley/sim"
	"parley/trace"
)

// crashPlan crashes the machine of a process at given places. It is a host.Crash.
type crashPlan struct {
	m     *member
	steps int
	how   sim.Crash // the crash that has happened
}

// at returns the true time at which the machine's clock shows shown.
func (d *crashPlan) at(shown parley.Tick) parley.Tick { return d.m.Wrong.When(shown) }

// Before returns whether the process must have been killed by now.
func (d *crashPlan) Before(shown parley.Tick) bool {
	for _, c := range d.m.Crashes {
		if c.Step == 0 && c.Effects == 0 && (c.When == 0 || c.When <= d.at(shown)) {
			d.how = c
			return true
		}
	}
	return false
}

// Within counts a step, and returns whether the machine crashes in it.
func (d *crashPlan) Within(shown parley.Tick, effects []parley.Effect) (carried int, crashes bool) {
	d.steps++
	for _, c := range d.m.Crashes {
		if c.Step == d.steps || c.Step == 0 && c.Effects > 0 && len(effects) > 0 && d.due(c.When, shown) {
			d.how = c
			return c.Effects, true
		}
	}
	return 0, false
}

// due returns whether the time when has come, and all requests up to it have been made: a late process also
// gets its requests late.
func (d *crashPlan) due(when, shown parley.Tick) bool {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	return when <= d.at(shown) && (d.m.made == len(d.m.Requests) || d.m.Requests[d.m.made].When > when)
}

// Crashed ends the process.
func (d *crashPlan) Crashed() { go d.m.crash(d.how) }

// crash stops the machine and the trace, and reports the crash: then, with its messages written to the
// links, the starter of the process ends it.
func (m *member) crash(how sim.Crash) {
	m.host.Flush()
	now := max(m.clock.Now(), 0)
	m.mu.Lock()
	m.written.Add(trace.Event{Op: trace.Crash, At: m.Self, Time: now})
	m.mu.Unlock()
	m.stop()
	m.say(answer{Crashed: &crashed{now, how.Back, how.LostDisk}})
}

// crashed reports that a process has crashed by itself.
type crashed struct {
	When parley.Tick
	Back parley.Tick
	Lost bool
}

// steps returns the number of steps of a machine among its events.
func steps(events []trace.Event) (n int) {
	ops := []trace.Op{trace.Start, trace.Restart, trace.Request, trace.Receive, trace.Timeout, trace.Suspect}
	for _, e := range events {
		if slices.Contains(ops, e.Op) {
			n++
		}
	}
	return n
}
