package scenario

import (
	"fmt"
	"strings"

	"parley"
)

// Describe says what befalls the processes of a drawn plan, a line each.
func (p Plan) Describe(name func(parley.ID) string) []string {
	var out []string
	say := func(form string, args ...any) { out = append(out, fmt.Sprintf(form, args...)) }
	set := func(s parley.Set, otherwise string) string {
		var parts []string
		for id := range s.All() {
			parts = append(parts, name(id))
		}
		if len(parts) == 0 {
			return otherwise
		}
		return strings.Join(parts, " ")
	}
	window := func(since, until parley.Tick) string {
		switch {
		case since == 0 && until == 0:
			return "always"
		case until == 0:
			return fmt.Sprintf("from %d on", since)
		}
		return fmt.Sprintf("from %d to %d", since, until)
	}
	if p.Loss > 0 {
		say("links lose %g of all messages", p.Loss)
	}
	if p.Twice > 0 {
		say("links double %g of all messages", p.Twice)
	}
	for _, l := range p.Links {
		var does []string
		switch {
		case l.Loss == 1:
			does = append(does, "cut")
		case l.Loss > 0:
			does = append(does, fmt.Sprintf("loses %g", l.Loss))
		}
		if l.Twice > 0 {
			does = append(does, fmt.Sprintf("doubles %g", l.Twice))
		}
		if l.Delay.Most > 0 {
			does = append(does, fmt.Sprintf("takes %d to %d", l.Delay.Least, l.Delay.Most))
		}
		say("the link from %s to %s %s, %s", set(l.From, "anybody"), set(l.To, "anybody"),
			strings.Join(does, ", "), window(l.Since, l.Until))
	}
	for _, c := range p.Crashes {
		when := fmt.Sprintf("at %d", c.When)
		if c.Step > 0 {
			when = fmt.Sprintf("in its step %d", c.Step)
		}
		what := fmt.Sprintf("%s crashes %s, after %d effects of that step", name(c.At), when, c.Effects)
		if c.Back > 0 {
			what += fmt.Sprintf(", and comes back %d later", c.Back)
			if c.LostDisk {
				what += " without its disk"
			}
		}
		say("%s", what)
	}
	for _, v := range p.Pauses {
		say("%s stands still from %d to %d", name(v.At), v.From, v.From+v.For)
	}
	for _, v := range p.Clocks {
		if v.Offset != 0 || v.Drift != 0 {
			say("the clock of %s is off by %d and runs %+d parts in a million", name(v.At), v.Offset, v.Drift)
		}
	}
	for _, v := range p.Suspicions {
		say("%s suspects %s at %d", name(v.At), name(v.Of), v.When)
	}
	if p.Heal > 0 {
		say("links are whole from %d on", p.Heal)
	}
	return out
}
