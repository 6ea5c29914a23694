package rsm

import (
	"cmp"
	"fmt"
	"slices"

	"parley"
	"parley/broadcast/problem"
)

// promises returns the promises for a run. They follow from what the broadcast below promises and from what
// restarts leave of it.
func (c Config) promises(a parley.RunConditions) []parley.Promise {
	lost := ""
	if (a.Processes.Restarted || a.Processes.LostDisk) && !c.Transfer {
		lost = "a replica that restarts has lost its state, and no replica sends it another"
	}
	ordered := cmp.Or(lost, c.beneath(a, append(slices.Clone(c.Order), problem.Integrity)...))
	once := lost
	if c.Transfer {
		once = ordered // otherwise the state brings positions of another order
	}
	asOne := ordered
	if a.Faulty > 0 && (slices.Contains(c.Order, problem.TotalOrder) || slices.Contains(c.Order, problem.Agreement)) {
		asOne = cmp.Or(ordered, "only correct processes share the order: a process that crashes may "+
			"have answered in another order")
	}
	const function = "the state is a function of the commands in their order (Schneider 1990)"
	return []parley.Promise{
		parley.Promised(Consistency, function, ordered),
		parley.Promised(OneMachine, function, asOne),
		parley.Promised(Once,
			fmt.Sprintf("the state holds the last number of each of the last %d clients", c.Sessions), once),
		parley.Promised(Completion, "every broadcast is delivered, applied, and answered", c.unanswered(a)),
		parley.Promised(Answers, "", "a single run need not show this"),
	}
}

// unanswered returns why a command may get no answer, or "" if it gets one.
func (c Config) unanswered(a parley.RunConditions) string {
	active := c.Setup.Active
	because := c.beneath(a, problem.Validity)
	if c.Every > 0 || c.Setup.Checked { // then a replica that differs stops or waits forever
		because = cmp.Or(because, c.beneath(a, append(slices.Clone(c.Order), problem.Integrity)...))
	}
	if c.Setup.Checked && c.beneath(a, problem.Agreement) != "" {
		because = cmp.Or(because, c.beneath(a, problem.UniformAgreement))
	}
	switch {
	case a.Processes.Restarted || a.Processes.LostDisk:
		return "a process need not answer commands that it received before it crashed"
	case active != parley.Everyone(c.N):
		return "a spare answers nothing"
	case c.Setup.Checked && active.Len()-a.Faulty <= c.Setup.M:
		return "too few active replicas are left to confirm a state"
	}
	return because
}

// beneath returns why the broadcast below does not promise one of the properties, or "" if it promises all.
func (c Config) beneath(a parley.RunConditions, properties ...string) string {
	if c.Beneath == nil || len(c.Order) == 0 {
		return "nothing is known about the broadcast below"
	}
	promised := c.Beneath(a)
	for _, property := range properties {
		i := slices.IndexFunc(promised, func(p parley.Promise) bool { return p.Property == property })
		switch {
		case i < 0:
			return "the broadcast below does not promise " + property
		case !promised[i].Holds:
			return "the broadcast below does not promise this: " + promised[i].Because
		}
	}
	return ""
}
