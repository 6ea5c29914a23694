package ballot

import (
	"bytes"
	"fmt"
	"slices"

	"parley"
	"parley/agreement/problem"
)

// UniformAgreement is the name of the agreement that includes crashed processes.
// The other properties have their names from package problem.
const UniformAgreement = "uniform agreement"

// Properties returns the properties of uniform consensus.
func Properties() []parley.Property {
	return []parley.Property{
		{
			Name: UniformAgreement, Says: "all processes that decide, even if they crash later, decide on " +
				"the same value",
			Mode: parley.Always, Check: checkAgreement,
		},
		{
			Name: problem.Validity, Says: "the decided value was proposed by some process",
			Mode: parley.Always, Check: checkValidity,
		},
		{
			Name: problem.Termination, Says: "if every process that does not crash for good proposes a " +
				"value, all these processes decide",
			Mode: parley.Eventually, Check: checkTermination,
		},
		{
			Name: problem.Integrity, Says: "no process decides twice without a restart in between",
			Mode: parley.Always, Check: checkIntegrity,
		},
	}
}

func decisions(h *parley.History) []parley.ExternalEvent {
	var all []parley.ExternalEvent
	for _, d := range h.Deliveries {
		if d.Msg.Kind == parley.Decide {
			all = append(all, d)
		}
	}
	return all
}

func checkAgreement(h *parley.History) error {
	all := decisions(h)
	for _, d := range all {
		if !bytes.Equal(d.Msg.Body, all[0].Msg.Body) {
			return fmt.Errorf("%s decided %s and %s decided %s", h.Name(all[0].At), parley.Printable(all[0].Msg.Body),
				h.Name(d.At), parley.Printable(d.Msg.Body))
		}
	}
	return nil
}

func checkValidity(h *parley.History) error {
	for _, d := range decisions(h) {
		if !slices.ContainsFunc(h.Requests, func(r parley.ExternalEvent) bool {
			return r.Msg.Kind == parley.Propose && r.Order < d.Order && bytes.Equal(r.Msg.Body, d.Msg.Body)
		}) {
			return fmt.Errorf("%s decided %s, which nobody had proposed", h.Name(d.At), parley.Printable(d.Msg.Body))
		}
	}
	return nil
}

// checkTermination demands nothing if some process has not proposed: that process waits for the decision, and
// all processes that know it may crash before they send it.
func checkTermination(h *parley.History) error {
	var asked, done parley.Set
	for _, r := range h.Requests {
		if r.Msg.Kind == parley.Propose {
			asked.Add(r.At)
		}
	}
	correct := parley.Everyone(h.N).Minus(h.Faulty)
	if !h.Over || correct.Minus(asked) != (parley.Set{}) {
		return nil
	}
	for _, d := range decisions(h) {
		done.Add(d.At)
	}
	for id := range correct.Minus(done).All() {
		return fmt.Errorf("%s did not decide", h.Name(id))
	}
	return nil
}

func checkIntegrity(h *parley.History) error { return problem.Once(h, parley.Everyone(h.N)) }

func promises(a parley.RunConditions) []parley.Promise {
	safe, because := true, "any two majorities share a process (Lamport 1998)"
	if a.Processes.LostDisk {
		safe, because = false, "a process restarted without its promises"
	}
	ends, why := true, "a majority is up, and the times between ballots double"
	switch err := Bound(a.N, a.M); {
	case err != nil:
		ends, why = false, err.Error()
	case a.Faulty > a.M:
		ends, why = false, fmt.Sprintf("%d processes crash, and m = %d", a.Faulty, a.M)
	case a.Processes.Minority:
		ends, why = false, "no majority is up and connected in the end"
	case a.Network.Lost || a.Network.Cut || a.Network.Disconnected:
		ends, why = false, "messages were lost, so no ballot is certain to succeed in a known time"
	case a.Processes.LostDisk || a.Processes.Paused:
		ends, why = false, "a process was paused, or forgot the value that it should propose"
	}
	return []parley.Promise{
		{Property: UniformAgreement, Holds: safe, Because: because},
		{Property: problem.Validity, Holds: true, Because: "ballots choose among proposals"},
		{Property: problem.Termination, Holds: ends, Because: why},
		{Property: problem.Integrity, Holds: true, Because: "an instance reports its decision once"},
	}
}
