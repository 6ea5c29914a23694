package parley

import (
	"slices"
	"sort"
)

// Breach is how a history breaks a property.
type Breach struct {
	// Err says what broke the property.
	Err error
	// First is the Order of the first event that breaks the property: the history up to that event breaks it, and
	// the history before that event does not. It is 0 if no event breaks the property, because the history ends
	// without something that the property demands.
	First uint64
	// Events are the Orders of the events that show the break, in order of time. If any one of them is left out,
	// the check does not return Err for the history up to First, or for the whole history if First is 0. First is
	// one of them.
	Events []uint64
}

// mostWitnesses is the number of events from which the events of a breach are chosen. It limits the number of checks.
const mostWitnesses = 500

// Breach returns how h breaks the property, or nil if h does not break it. It calls Check for parts of h: it assumes
// that a history which breaks an Always property still does when events are added. In a history with more than 500
// events up to First, Events has no other event than First.
func (p Property) Breach(h *History) *Breach {
	err := p.Check(h)
	if err == nil {
		return nil
	}
	b := &Breach{Err: err}
	orders := h.orders()
	if p.Mode == Always {
		nth := sort.Search(len(orders), func(i int) bool {
			return p.Check(h.only(false, func(order uint64) bool { return order <= orders[i] })) != nil
		})
		if nth < len(orders) {
			b.First, orders = orders[nth], orders[:nth+1]
		}
	}
	if len(orders) > mostWitnesses {
		if b.First != 0 {
			b.Events = []uint64{b.First}
		}
		return b
	}
	over := h.Over && b.First == 0
	upTo := func(without uint64) error {
		return p.Check(h.only(over, func(order uint64) bool { return order <= orders[len(orders)-1] && order != without }))
	}
	if b.First != 0 {
		b.Err = upTo(0)
	}
	for _, order := range orders {
		if err := upTo(order); err == nil || err.Error() != b.Err.Error() {
			b.Events = append(b.Events, order)
		}
	}
	return b
}

// orders returns the Order of every event, in order of time.
func (h *History) orders() (all []uint64) {
	for _, list := range [][]ExternalEvent{h.Requests, h.Deliveries, h.Indications, h.Restarts} {
		for _, e := range list {
			all = append(all, e.Order)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// only returns a history with some of the events.
func (h *History) only(over bool, keep func(order uint64) bool) *History {
	some := func(list []ExternalEvent) (out []ExternalEvent) {
		for _, e := range list {
			if keep(e.Order) {
				out = append(out, e)
			}
		}
		return out
	}
	return &History{
		N: h.N, Faulty: h.Faulty, Naming: h.Naming, Over: over, Requests: some(h.Requests),
		Deliveries: some(h.Deliveries), Indications: some(h.Indications), Restarts: some(h.Restarts),
	}
}
