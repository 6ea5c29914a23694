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
		say("links lose %g of all messages", p.Loss)
	}
	if p.Twice > 0 {
		say("links double %g of all messages", p.Twice)
	}
	for _, l := range p.Links {
		out = append(out, ofLink(l, name))
	}
	for _, c := range p.Crashes {
		out = append(out, ofCrash(c, name))
	}
	for _, v := range p.Pauses {
		say("%s is paused from %d to %d", name(v.At), v.From, v.From+v.For)
	}
	for _, v := range p.Clocks {
		if v.Offset != 0 || v.Drift != 0 {
			say("the clock of %s is off by %d and runs %+d parts in a million", name(v.At), v.Offset, v.Drift)
		}
	}
	for _, v := range p.Suspicions {
		say("%s suspects %s at %d", name(v.At), name(v.Of), v.When)
	}
	if p.Detect > 0 {
		say("the others are notified of crashes %d later", p.Detect)
	}
	if p.Heal > 0 {
		say("links are whole from %d on", p.Heal)
	}
	return out
}

// ofLink describes a rule for links.
func ofLink(l sim.Link, name func(parley.ID) string) string {
	var does []string
	if l.Loss > 0 && l.Loss < 1 {
		does = append(does, fmt.Sprintf("loses %g", l.Loss))
	}
	if l.Twice > 0 {
		does = append(does, fmt.Sprintf("doubles %g", l.Twice))
	}
	if l.Delay.Most > 0 {
		does = append(does, fmt.Sprintf("takes %d to %d", l.Delay.Least, l.Delay.Most))
	}
	if l.Loss == 1 {
		does = []string{"is cut"}
	}
	window := "always"
	switch {
	case l.Until > 0:
		window = fmt.Sprintf("from %d to %d", l.Since, l.Until)
	case l.Since > 0:
		window = fmt.Sprintf("from %d on", l.Since)
	}
	return fmt.Sprintf("the link from %s to %s %s, %s", everyone(l.From, name), everyone(l.To, name),
		strings.Join(does, ", "), window)
}

// everyone names the processes in s; an empty set means any process.
func everyone(s parley.Set, name func(parley.ID) string) string {
	return cmp.Or(strings.Join(lists.Each(s.All(), name), " "), "anybody")
}

// ofCrash describes when a process crashes, and whether it restarts.
func ofCrash(c sim.Crash, name func(parley.ID) string) string {
	what := name(c.At) + " crashes"
	switch {
	case c.Step > 0:
		what += fmt.Sprintf(" in its step %d", c.Step)
	case c.Effects > 0: // the crash waits for a step with effects
		what += fmt.Sprintf(" in what it does first from %d on", c.When)
	default:
		what += fmt.Sprintf(" at %d", c.When)
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
		what += fmt.Sprintf(", and restarts %d later", c.Back)
		if c.LostDisk {
			what += " without its disk"
		}
	}
	return what
}
