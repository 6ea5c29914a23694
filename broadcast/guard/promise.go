package guard

import (
	"parley"
	"parley/broadcast/problem"
)

// promises says what holds of a run, by the argument in the package's comment.
func (c Config) promises(a parley.Assumptions) []parley.Promise {
	var out []parley.Promise
	for _, name := range []string{problem.Validity, problem.Integrity, problem.FIFOOrder, problem.Delivery} {
		p := problem.Promise(a, name, "the broadcast beneath, of which a correct process loses nothing to the guard")
		if p.Holds && name == problem.Validity && untimely(a) != "" {
			p.Holds, p.Because = false, "the guard stops a slow process, and "+untimely(a)
		}
		out = append(out, p)
	}
	clean := parley.Promise{
		Property: NoContamination, Holds: true,
		Because: "a message tells what its sender had delivered, and is refused if that is too little",
	}
	switch {
	case c.Off:
		clean.Holds, clean.Because = false, "the guard is off"
	case a.Processes.LostDisk || a.Processes.Restarted:
		clean.Holds, clean.Because = false, "a process that comes back begins to count anew"
	}
	return append(out, clean)
}

// untimely tells what made somebody late.
func untimely(a parley.Assumptions) string {
	switch {
	case a.Network.Late:
		return "messages were late"
	case a.Processes.Paused:
		return "a process stood still or its clock was wrong"
	}
	return ""
}
