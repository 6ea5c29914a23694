package host

import (
	"slices"

	"parley"
)

// crashed tells whether the machine has crashed before the step that would begin. The lock
// is held.
func (p *Process) crashed() bool {
	if p.o.Crash == nil || !p.o.Crash.Before(p.clock.Now()) {
		return false
	}
	p.stopped, p.dying = true, true
	p.die()
	return true
}

// cut returns what is carried out of what a step asked for.
func (p *Process) cut(effects []parley.Effect) []parley.Effect {
	singly := p.singly(effects)
	carried, crashes := p.o.Crash.Within(p.step.Now, singly)
	if !crashes {
		return effects
	}
	p.stopped, p.dying = true, true
	return singly[:min(carried, len(singly))]
}

// singly returns what a step asked for in the order in which it is carried out, with one
// sending for each receiver: a process may crash in the middle of a message to all.
func (p *Process) singly(effects []parley.Effect) (out []parley.Effect) {
	place := func(e parley.Effect) int {
		return slices.Index([]parley.Op{parley.OpCompact, parley.OpAppend}, e.Op)
	}
	for _, e := range effects {
		if e.Op != parley.OpSend || e.To != parley.All {
			out = append(out, e)
			continue
		}
		for e.To = range parley.ID(p.step.N) {
			if e.To != p.step.Self {
				out = append(out, e)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b parley.Effect) int { return place(b) - place(a) })
	return out
}

// die says that the machine has crashed, when nothing that was carried out waits for the disk.
func (p *Process) die() {
	if p.dying && p.durable >= p.wanted && len(p.outbox) == 0 {
		p.dying = false
		p.o.Crash.Crashed()
	}
}
