package host

import "parley"

// doom is where a machine crashes, if it does, and whether it has.
type doom struct {
	Crash
	dying bool // it has, and something that was carried out waits for the disk yet
}

// before tells whether the machine has crashed before the step that would begin.
func (d *doom) before(now parley.Tick) bool {
	if d.Crash == nil || !d.Before(now) {
		return false
	}
	d.dying = true
	return true
}

// cut returns what is carried out of what a step of one of n machines asked for.
func (d *doom) cut(effects []parley.Effect, n int, now parley.Tick) []parley.Effect {
	singly := parley.Singly(effects, n)
	carried, crashes := d.Within(now, singly)
	if !crashes {
		return effects
	}
	d.dying = true
	return singly[:min(carried, len(singly))]
}

// die says that the machine has crashed, when nothing that was carried out waits for the disk.
func (d *doom) die(settled bool) {
	if d.dying && settled {
		d.dying = false
		d.Crashed()
	}
}
