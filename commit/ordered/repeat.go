package ordered

import "parley"

// progress is how far a process is in the order, which delivers again after a restart.
type progress struct {
	at        uint64 // position of the last delivery
	fresh     int    // bytes delivered since the state was saved
	missed    bool   // deliveries were missed for good
	repeating bool   // deliveries come again
}

// A process saves its state after so many bytes of deliveries, of which each counts deliveryCost more. The order must
// keep more than that, so that it delivers again everything that the process has not saved.
const (
	saveAfter    = 1 << 20
	deliveryCost = 256
)

// from handles that the next delivery is the first one after a position.
func (p *progress) from(position uint64) {
	p.repeating = true
	p.missed = p.missed || position > p.at
}

// before notes the position of a delivery, and reports whether it was handled before.
func (p *progress) before(q parley.Msg) bool {
	if q.Seq <= p.at {
		return true
	}
	p.at = q.Seq
	p.fresh += len(q.Body) + deliveryCost
	return false
}

// Missed reports whether this process has missed deliveries for good.
func (p *progress) Missed() bool { return p.missed }

func (p *progress) state(v *parley.Vars) {
	v.Durable(func() {
		parley.Num(v, "at", &p.at)
		v.Bool("missed", &p.missed)
	})
	parley.Num(v, "fresh", &p.fresh)
	v.Bool("repeating", &p.repeating)
}
