package cuts

import (
	"slices"

	"parley"
	"parley/broadcast/problem"
)

// properties are the properties of total order among processes that lie. Integrity is about correct senders only,
// because a liar may broadcast the same message twice.
func properties() []parley.Property {
	all := problem.Of(problem.Validity, problem.Agreement, problem.TotalOrder, problem.SenderIntegrity,
		problem.Delivery)
	i := slices.IndexFunc(all, func(p parley.Property) bool { return p.Name == problem.SenderIntegrity })
	check := all[i].Check
	all[i].Says = "correct processes deliver a message of a correct sender at most as often as it broadcast the " +
		"message before"
	all[i].Check = func(h *parley.History) error {
		correct := *h
		correct.Deliveries = slices.DeleteFunc(slices.Clone(h.Deliveries), func(d parley.ExternalEvent) bool {
			return !h.Correct(d.From)
		})
		return check(&correct)
	}
	return all
}
