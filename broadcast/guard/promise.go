package guard

import (
	"errors"

	"parley"
	"parley/broadcast/problem"
)

// promises returns what holds in a run, by the argument in the package comment.
func (c Config) promises(a parley.RunConditions) []parley.Promise {
	several := a.Faulty > 1 && a.Worst > parley.CrashFaults // more than one process does worse than crash
	late := ""                                              // what made a process late
	switch {
	case a.Network.Late:
		late = "messages were late"
	case a.Processes.Paused:
		late = "a process was paused or its clock was wrong"
	}
	var out []parley.Promise
	for _, name := range []string{problem.Validity, problem.Integrity, problem.FIFOOrder, problem.Delivery} {
		p := problem.Promise(a, name, "the broadcast below promises this, and the guard withholds no "+
			"delivery from a correct process")
		switch {
		case !p.Holds || name != problem.Validity:
		case several:
			p = parley.Promised(name, "", "more than one process omits messages, and together they can "+
				"make a correct process stop")
		case late != "":
			p = parley.Promised(name, "", "the guard stops a slow process, and "+late)
		}
		out = append(out, p)
	}
	lacks := ""
	switch beneath := problem.Promise(a, problem.Agreement, ""); {
	case c.Off:
		lacks = "the guard is off"
	case a.Processes.LostDisk || a.Processes.Restarted:
		lacks = "a process that restarts counts from the beginning again"
	case several:
		lacks = "more than one process omits messages"
	case a.Faulty > 0 && Bound(a.N, 1) != nil:
		lacks = Bound(a.N, 1).Error()
	case !beneath.Holds:
		lacks = "correct processes need not deliver the same messages: " + beneath.Because
	case late != "":
		lacks = "without a bound on delays an omission cannot be detected, and " + late
	}
	return append(out, parley.Promised(NoContamination,
		"each message lists what its sender had delivered, and processes refuse the message if "+
			"something is missing", lacks))
}

// Bound returns nil if n processes tolerate m processes that omit deliveries, and otherwise the reason why not.
func Bound(n, m int) error {
	switch {
	case m > 1:
		return errors.New("at most one process may omit messages: if two do, perhaps only one of them " +
			"knows what the other sent")
	case m == 1 && n < 4:
		return errors.New("n >= 4 is needed: besides the sender and the process that omits messages, " +
			"two processes must confirm what was sent")
	}
	return nil
}
