package run

import (
	"cmp"
	"fmt"
	"strings"

	"parley"
	"parley/internal/lists"
	"parley/sim"
)

// Describe describes the events of a drawn plan in words, one line each.
func (p Plan) Describe(name func(parley.ID) string) []string {
	var out []string
	say := func(form string, args ...any) { out = append(out, fmt.Sprintf(form, args...)) }
	if p.Loss > 0 {
		say("links lose %s of all messages", percent(p.Loss))
	}
	if p.Twice > 0 {
		say("links double %s of all messages", percent(p.Twice))
	}
	for _, l := range p.Links {
		out = append(out, ofLink(l, name))
	}
	for _, c := range p.Crashes {
		out = append(out, ofCrash(c, name))
	}
	for _, v := range p.Pauses {
		say("%s is paused from tick %d to %d", name(v.At), v.From, v.From+v.For)
	}
	for _, v := range p.Clocks {
		if v.Offset != 0 || v.Drift != 0 {
			say("%s", ofClock(v, name))
		}
	}
	for _, v := range p.Suspicions {
		say("%s suspects %s at tick %d", name(v.At), name(v.Of), v.When)
	}
	if p.Detect > 0 {
		say("the others are notified of a crash %d ticks later", p.Detect)
	}
	if p.Heal > 0 {
		say("links have no faults from tick %d on", p.Heal)
	}
	return out
}

// ofLink describes a rule for links.
func ofLink(l sim.Link, name func(parley.ID) string) string {
	var does []string
	if l.Loss > 0 && l.Loss < 1 {
		does = append(does, fmt.Sprintf("loses %s of its messages", percent(l.Loss)))
	}
	if l.Twice > 0 {
		does = append(does, fmt.Sprintf("doubles %s of its messages", percent(l.Twice)))
	}
	if l.Delay.Most > 0 {
		does = append(does, "takes "+ofDelay(l.Delay))
	}
	if l.Loss == 1 {
		does = []string{"is cut"}
	}
	window := "at all times"
	switch {
	case l.Until > 0:
		window = fmt.Sprintf("from tick %d to %d", l.Since, l.Until)
	case l.Since > 0:
		window = fmt.Sprintf("from tick %d on", l.Since)
	}
	return fmt.Sprintf("the link from %s to %s %s, %s", everyone(l.From, name), everyone(l.To, name),
		strings.Join(does, ", "), window)
}

// ofDelay describes the delay of a link.
func ofDelay(d sim.Delay) string {
	if d.Least == d.Most {
		return ticks(d.Most)
	}
	return fmt.Sprintf("%d to %d ticks", d.Least, d.Most)
}

func percent(share float64) string { return fmt.Sprintf("%.6g%%", 100*share) }

func ticks(n parley.Tick) string {
	if n == 1 {
		return "1 tick"
	}
	return fmt.Sprintf("%d ticks", n)
}

// ofClock describes how far a clock is off, and how it drifts.
func ofClock(c sim.Clock, name func(parley.ID) string) string {
	var is []string
	switch {
	case c.Offset > 0:
		is = append(is, "is ahead by "+ticks(c.Offset))
	case c.Offset < 0:
		is = append(is, "is behind by "+ticks(-c.Offset))
	}
	switch {
	case c.Drift > 0:
		is = append(is, fmt.Sprintf("runs fast by %d parts in a million", c.Drift))
	case c.Drift < 0:
		is = append(is, fmt.Sprintf("runs slow by %d parts in a million", -c.Drift))
	}
	return "the clock of " + name(c.At) + " " + strings.Join(is, " and ")
}

// everyone names the processes in s; an empty set means any process.
func everyone(s parley.Set, name func(parley.ID) string) string {
	return cmp.Or(strings.Join(lists.Each(s.All(), name), " "), "any process")
}

// ofCrash describes when a process crashes, and whether it restarts.
func ofCrash(c sim.Crash, name func(parley.ID) string) string {
	what := name(c.At) + " crashes"
	switch {
	case c.Step > 0:
		what += fmt.Sprintf(" in its step %d", c.Step)
	case c.Effects > 0: // the crash waits for a step with effects
		what += fmt.Sprintf(" in its first step with effects from tick %d on", c.When)
	default:
		what += fmt.Sprintf(" at tick %d", c.When)
	}
	switch {
	case c.Effects == 1:
		what += ", after 1 effect"
	case c.Effects > 1:
		what += fmt.Sprintf(", after %d effects", c.Effects)
	case c.Step > 0:
		what += ", before any effect"
	}
	if c.Back > 0 {
		what += fmt.Sprintf(", and restarts %d ticks later", c.Back)
		if c.LostDisk {
			what += " without its disk"
		}
	}
	return what
}
