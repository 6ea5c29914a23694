package detector

import (
	"errors"
	"fmt"
	"slices"

	"parley"
)

// The names of the properties.
const (
	Completeness     = "completeness"
	Accuracy         = "accuracy"
	EventualAccuracy = "eventual accuracy"
	Detection        = "detection"
)

var properties = []parley.Property{
	{
		Name: Completeness, Mode: parley.Eventually,
		Says: "every correct process eventually suspects every crashed process",
		Check: func(h *parley.History) error {
			rested := resting(h)
			return finally(h, func(at, of parley.ID, suspects bool) error {
				if h.Correct(of) || rested.Has(of) || suspects {
					return nil
				}
				return fmt.Errorf("%s has crashed, but %s does not suspect it", h.Name(of), h.Name(at))
			})
		},
		Vacuous: func(h *parley.History) string {
			if h.Faulty.Minus(resting(h)) == (parley.Set{}) {
				return "no process crashes before its last heartbeat"
			}
			return ""
		},
	},
	{
		Name: Accuracy, Mode: parley.Always,
		Says:  "no correct process suspects a process that never crashes and keeps its links with half of all processes",
		Check: accurate,
	},
	{
		Name: EventualAccuracy, Mode: parley.Eventually,
		Says: "eventually no correct process suspects a correct process",
		Check: func(h *parley.History) error {
			return finally(h, func(at, of parley.ID, suspects bool) error {
				if !h.Correct(of) || !suspects {
					return nil
				}
				return fmt.Errorf("%s suspects %s in the end, but %[2]s is correct", h.Name(at), h.Name(of))
			})
		},
	},
	{
		Name: Detection, Mode: parley.Sometimes,
		Says: "some process that crashed is suspected",
		Check: func(h *parley.History) error {
			if !slices.ContainsFunc(h.Indications, func(i parley.ExternalEvent) bool {
				return i.Msg.Kind == parley.Suspect && !h.Correct(i.Msg.Origin)
			}) {
				return errors.New("no crashed process is suspected")
			}
			return nil
		},
	},
}

// accurate checks each suspicion. A process that restarted had crashed before.
func accurate(h *parley.History) error {
	var back parley.Set
	for i := range h.Restarts {
		back.Add(h.Restarts[i].At)
	}
	parted := make([]parley.Set, h.N) // by process: the processes that reported a broken link with it
	for i := range h.Requests {
		if q := &h.Requests[i]; q.Msg.Kind == Broke && int(q.Msg.Origin) < h.N {
			parted[q.Msg.Origin].Add(q.At)
		}
	}
	for i := range h.Indications {
		q := &h.Indications[i]
		of := q.Msg.Origin
		if q.Msg.Kind == parley.Suspect && h.Correct(q.At) && h.Correct(of) && !back.Has(of) &&
			parted[of].Len() <= h.N/2 {
			return fmt.Errorf("%s suspected %s, which never crashed, at tick %d", h.Name(q.At), h.Name(of), q.When)
		}
	}
	return nil
}

// resting returns the processes that have sent their last heartbeat.
func resting(h *parley.History) parley.Set {
	var rested parley.Set
	for i := range h.Indications {
		if h.Indications[i].Msg.Kind == Resting {
			rested.Add(h.Indications[i].At)
		}
	}
	return rested
}

// finally calls ask at the end of a run, for each correct process and each other one, with whether the first
// suspects the second. A restarted process has forgotten its suspicions.
func finally(h *parley.History, ask func(at, of parley.ID, suspects bool) error) error {
	if !h.Over {
		return nil
	}
	suspected := make([]parley.Set, h.N)
	restarts := h.Restarts
	for i := range h.Indications {
		q := &h.Indications[i]
		for len(restarts) > 0 && restarts[0].Order < q.Order {
			suspected[restarts[0].At] = parley.Set{}
			restarts = restarts[1:]
		}
		switch q.Msg.Kind {
		case parley.Suspect:
			suspected[q.At].Add(q.Msg.Origin)
		case Trust:
			suspected[q.At].Remove(q.Msg.Origin)
		}
	}
	for _, r := range restarts {
		suspected[r.At] = parley.Set{}
	}
	for at := range parley.ID(h.N) {
		for of := range parley.ID(h.N) {
			if at == of || !h.Correct(at) {
				continue
			}
			if err := ask(at, of, suspected[at].Has(of)); err != nil {
				return err
			}
		}
	}
	return nil
}

// promises returns which properties hold under the conditions of a run.
func promises(c Config, a parley.RunConditions) []parley.Promise {
	const patient = "the timeout is at least the sum of the period, twice the lateness, and the delay"
	accuracy := parley.Promised(Accuracy, patient, guess(c, a))
	eventual := parley.Promised(EventualAccuracy, patient, guess(c, a))
	if c.Beats > 0 {
		eventual = parley.Promised(EventualAccuracy, "the last heartbeat clears any suspicion", missing(a))
	}
	return []parley.Promise{
		{Property: Completeness, Holds: true, Because: "a crashed process is silent for longer than any timeout"},
		accuracy, eventual,
		{Property: Detection, Holds: true, Because: "follows from completeness"},
	}
}

// guess returns why a suspicion may be wrong, or "".
func guess(c Config, a parley.RunConditions) string {
	switch err := c.Accurate(); {
	case err != nil:
		return err.Error()
	case a.Network.Late:
		return "a message took longer than the bound, so a suspicion may be false"
	case a.Processes.Paused:
		return "a process was paused, or its clock was wrong: the others cannot know that it is up"
	}
	return missing(a)
}

// missing returns why heartbeats may be missing for good, or "".
func missing(a parley.RunConditions) string {
	switch {
	case a.Network.Lost || a.Network.Cut || a.Network.Disconnected:
		return "links lost messages, and heartbeats may be among them"
	case a.Processes.Restarted:
		return "a process sends nothing while it is down, and after a restart it does not know which " +
			"processes have sent their last heartbeat"
	}
	return ""
}
