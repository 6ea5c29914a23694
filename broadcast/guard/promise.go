package guard

import (
	"errors"

	"parley"
	"parley/broadcast/problem"
)

// promises says what holds of a run, by the argument in the package's comment.
func (c Config) promises(a parley.Assumptions) []parley.Promise {
	var out []parley.Promise
	for _, name := range []string{problem.Validity, problem.Integrity, problem.FIFOOrder, problem.Delivery} {
		p := problem.Promise(a, name, "the broadcast beneath, of which a correct process loses nothing to the guard")
		if p.Holds && name == problem.Validity && several(a) {
			p.Holds, p.Because = false, "more than one process omits, and together they can make a correct one stop"
		}
		if p.Holds && name == problem.Validity && untimely(a) != "" {
			p.Holds, p.Because = false, "the guard stops a slow process, and "+untimely(a)
		}
		out = append(out, p)
	}
	clean := parley.Promise{
		Property: NoContamination, Holds: true,
		Because: "a message tells what its sender had delivered, and is refused if that is too little",
	}
	switch beneath := problem.Promise(a, problem.Agreement, ""); {
	case c.Off:
		clean.Holds, clean.Because = false, "the guard is off"
	case a.Processes.LostDisk || a.Processes.Restarted:
		clean.Holds, clean.Because = false, "a process that comes back begins to count anew"
	case several(a):
		clean.Holds, clean.Because = false, "more than one process omits"
	case a.Faulty > 0 && Bound(a.N, 1) != nil:
		clean.Holds, clean.Because = false, Bound(a.N, 1).Error()
	case !beneath.Holds:
		clean.Holds, clean.Because = false, "correct processes do not deliver the same: "+beneath.Because
	case untimely(a) != "":
		clean.Holds, clean.Because = false, "without a bound on time an omission cannot be told, and "+untimely(a)
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

// several tells whether more than one process does worse than to crash.
func several(a parley.Assumptions) bool { return a.Faulty > 1 && a.Worst > parley.CrashFaults }

// Bound tells why n processes cannot tolerate m that omit.
func Bound(n, m int) error {
	switch {
	case m > 1:
		return errors.New("one process that omits is tolerated: of two, one may alone know what the other sent")
	case m == 1 && n < 4:
		return errors.New("n >= 4 is needed: two others must confirm what a process sent, beside the one that omits")
	}
	return nil
}
