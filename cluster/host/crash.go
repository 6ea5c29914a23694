package host

import "parley"

// crashPlan decides where a machine crashes, and holds the state of its crash.
type crashPlan struct {
	Crash
	crashing bool // it has crashed, but a carried out effect still waits for the disk
}

// before returns whether the machine has crashed before the step that would begin.
func (d *crashPlan) before(now parley.Tick) bool {
	if d.Crash == nil || !d.Before(now) {
		return false
	}
	d.crashing = true
	return true
}

// cut returns the effects of a step of one of n machines that are carried out.
func (d *crashPlan) cut(effects []parley.Effect, n int, now parley.Tick) []parley.Effect {
	singly := parley.Singly(effects, n)
	carried, crashes := d.Within(now, singly)
	if !crashes {
		return effects
	}
	d.crashing = true
	return singly[:min(carried, len(singly))]
}

// die reports the crash once no carried out effect waits for the disk.
func (d *crashPlan) die(settled bool) {
	if d.crashing && settled {
		d.crashing = false
		d.Crashed()
	}
}
