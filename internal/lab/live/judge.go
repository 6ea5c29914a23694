package live

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"parley"
	"parley/broadcast/timestamp"
	"parley/cluster/audit"
	"parley/internal/draw/prose"
	"parley/lockstep"
	"parley/trace"
)

// Ruling is what the audit says about the last seconds of the machine that the picture shows.
type Ruling struct {
	Verdicts []Verdict `json:"verdicts"` // of the properties that were put to the test
	Judged   string    `json:"judged"`   // what was judged, in words; empty: nothing
	Why      string    `json:"why"`      // why nothing was judged
}

// Verdict is the verdict on one property.
type Verdict struct {
	Property string `json:"property"`
	Says     string `json:"says"`
	Outcome  string `json:"outcome"`
	Because  string `json:"because"`
	Broken   string `json:"broken,omitempty"`
}

// The times of a ruling. Only what begins margin after the beginning of the events is judged, because what began before
// them looks as if nobody had asked for it. What begins less than settles before their end need not be finished.
const (
	margin  = time.Second
	settles = 5 * time.Second
)

// errUnknown is the error of a machine that is neither a group nor a stream of agreements.
var errUnknown = errors.New("the lab judges groups and agreements only")

// notYet says why a cluster in which nothing happened has no verdict.
const notYet = "Nothing to judge yet. Broadcast a text or agree on one, and wait a few seconds: then the audit says " +
	"whether all nodes agree."

// judge audits the events that all nodes still have. A node to which something happened in this time counts as crashed:
// its events may be missing.
func (f *facts) judge() Ruling {
	nothing := func(why string) Ruling { return Ruling{Verdicts: []Verdict{}, Why: why} }
	from, well := f.window()
	if len(well) < 2 {
		return nothing("Something happened to the nodes in the last seconds. They are judged when two of them have been " +
			"undisturbed for a while.")
	}
	var traces []trace.Trace
	var names, others []string
	for i := range f.found {
		if slices.Contains(well, i) {
			names = append(names, f.nodes[i].Name)
		} else {
			others = append(others, f.nodes[i].Name)
		}
		tail := f.found[i].tail
		if len(tail) == 0 {
			continue
		}
		traces = append(traces, f.evidence(tail[len(tail)-1], from, slices.Contains(well, i)))
	}
	found, err := audit.Audit(traces, audit.Options{
		Settle:   settles,
		Crashed:  others,
		Protocol: func(trace.Header) (parley.Protocol, error) { return parley.Protocol{}, errUnknown },
	})
	if err != nil || len(found) != 1 {
		return nothing("This machine is not judged: " + cause(err) + ".")
	}
	return ruling(&found[0], names)
}

func cause(err error) string {
	if err == nil || errors.Is(err, errUnknown) {
		return errUnknown.Error()
	}
	return err.Error()
}

// window returns since when all undisturbed nodes have all events, and which nodes these are. The time is zero if they
// have all events of the machine. A node is disturbed if it does not answer or stalls, or if anything happened to it,
// to a link of it, or to its membership since then.
func (f *facts) window() (from time.Time, well []int) {
	health := f.health()
	var since time.Time // of the oldest event
	for i := range f.found {
		tail := f.found[i].tail
		if !f.found[i].heard() || f.found[i].partly != nil || len(tail) == 0 ||
			f.node(i, health[i]).Bad || len(tail[len(tail)-1].Log.Events) == 0 {
			continue
		}
		last := tail[len(tail)-1]
		begins := timeOf(last, last.Log.Events[0].Time)
		if since.IsZero() || begins.Before(since) {
			since = begins
		}
		if last.Log.Events[0].Op == trace.Start {
			begins = time.Time{}
		}
		if gaps := last.Log.Gaps; len(gaps) > 0 {
			if after := gaps[len(gaps)-1].After; after > 0 && after <= uint64(len(last.Log.Events)) {
				begins = timeOf(last, last.Log.Events[after-1].Time)
			}
		}
		if begins.After(from) {
			from = begins
		}
		well = append(well, i)
	}
	if from.After(since) {
		since = from
	}
	return from, slices.DeleteFunc(well, func(i int) bool { return f.disturbed(i, since) })
}

// disturbed reports whether something happened to a node since a time.
func (f *facts) disturbed(i int, since time.Time) bool {
	if slices.ContainsFunc(f.nodes[i].marks, func(m mark) bool { return m.at.After(since) }) {
		return true
	}
	if slices.ContainsFunc(f.cuts, func(c cut) bool {
		return (c.a == i || c.b == i) && (c.until.IsZero() || c.until.After(since))
	}) {
		return true
	}
	tail := f.found[i].tail
	last := tail[len(tail)-1]
	return slices.ContainsFunc(last.Log.Events, func(e trace.Event) bool {
		changes := e.Op == trace.Indicate && (e.Msg.Kind == parley.View || e.Msg.Kind == parley.Suspect) ||
			e.Op == trace.Pause || e.Op == trace.Resume || e.Op == trace.Restart ||
			e.Op == trace.Refuse && (string(e.Msg.Body) == parley.WokeTooLate || string(e.Msg.Body) == parley.HeardTooFew)
		return changes && timeOf(last, e.Time).After(since)
	})
}

// timeOf returns the time of the node's clock at a time of its trace.
func timeOf(t trace.Trace, at parley.Tick) time.Time {
	return time.Unix(0, t.Header.Node.Began+int64(at))
}

// evidence returns the part of a tail that can be judged. Every trace counts as torn, so that the audit demands nothing
// of what may be older than the part. The trace of a disturbed node is empty.
func (f *facts) evidence(t trace.Trace, from time.Time, well bool) trace.Trace {
	node := *t.Header.Node
	node.Recorded = false
	t.Header.Node = &node
	old := f.oldSlots(t.Header.Node.Machine, from)
	log := &trace.Log{Keep: true, Broken: true}
	numbers := make(map[uint64]uint64)
	for _, e := range t.Log.Events {
		at := timeOf(t, e.Time)
		slot, inSlot := slotOf(&e)
		switch {
		case !well, at.Before(from), e.Op == trace.Timeout, e.Op == trace.Keep, e.Op == trace.Append, beat(&t.Header, e):
			continue
		case e.Op == trace.Request && at.Before(from.Add(margin)), inSlot && old[slot]:
			continue
		}
		e.Cause = numbers[e.Cause]
		numbers[e.ID] = log.Add(e)
	}
	if well {
		log.Until = t.Log.Until
	}
	t.Log = log
	return t
}

// slotOf returns the slot of an event of a stream of agreements.
func slotOf(e *trace.Event) (slot uint64, ok bool) {
	switch {
	case e.Msg.Kind == lockstep.Frame:
		return e.Msg.Value, true
	case e.Op == trace.Deliver && e.Msg.Kind == parley.Decide:
		return e.Msg.Seq, true
	}
	return 0, false
}

// oldSlots returns the agreements that were in flight before all events are known, in a stream of agreements.
func (f *facts) oldSlots(machine string, from time.Time) map[uint64]bool {
	old := make(map[uint64]bool)
	for i := range f.found {
		for _, t := range f.found[i].tail {
			for _, e := range t.Log.Events {
				if slot, ok := slotOf(&e); ok && t.Header.Node.Machine == machine && timeOf(t, e.Time).Before(from.Add(margin)) {
					old[slot] = true
				}
			}
		}
	}
	return old
}

// needBeginning are the properties that the last seconds cannot show: one counts positions from the first delivery, and
// the other requires the send of every message that arrives.
var needBeginning = []string{timestamp.OneSequence, "links"}

// ruling puts the verdicts into words. A property of which nothing was demanded gets no verdict.
func ruling(c *audit.Channel, names []string) Ruling {
	r := Ruling{Verdicts: []Verdict{}}
	asked := 0
	for _, e := range c.Log.Events {
		if e.Op == trace.Request {
			asked++
		}
	}
	for _, v := range c.Verdicts {
		one := v.Whole()
		outcome := one.Outcome()
		if slices.Contains(needBeginning, v.Property.Name) || outcome == parley.NotApplicable ||
			v.Property.Mode == parley.Sometimes {
			continue
		}
		out := Verdict{Property: one.Property.Name, Says: one.Property.Says, Outcome: outcome, Because: one.Promise.Because}
		if one.Broken != nil {
			out.Broken = one.Broken.Error()
		}
		r.Verdicts = append(r.Verdicts, out)
	}
	tested, one, many := asked-c.Unjudged, "broadcast", "broadcasts"
	if c.Kind != "" {
		tested, one, many = c.Instances, "agreement", "agreements"
	}
	if tested <= 0 || len(r.Verdicts) == 0 {
		return Ruling{Verdicts: []Verdict{}, Why: notYet}
	}
	what := prose.Count(uint64(tested), one, many)
	r.Judged = fmt.Sprintf("%s in the last seconds, at %s", what, prose.And(names))
	return r
}
