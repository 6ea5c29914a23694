package host

import "parley"

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
	singly := parley.Singly(effects, p.step.N)
	carried, crashes := p.o.Crash.Within(p.step.Now, singly)
	if !crashes {
		return effects
	}
	p.stopped, p.dying = true, true
	return singly[:min(carried, len(singly))]
}

// die says that the machine has crashed, when nothing that was carried out waits for the disk.
func (p *Process) die() {
	if p.dying && p.durable >= p.wanted && len(p.outbox) == 0 {
		p.dying = false
		p.o.Crash.Crashed()
	}
}
