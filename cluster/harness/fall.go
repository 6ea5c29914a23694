package harness

import (
	"context"

	"parley"
	"parley/sim"
)

// add schedules an action.
func (r *running) add(when parley.Tick, do func(context.Context) error) {
	r.due, r.more = insert(r.due, action{when, do}, func(d action) parley.Tick { return d.when }), true
}

// kill kills a process, as kill -9 does.
func (r *running) kill(how sim.Crash) error {
	c := r.members[how.At]
	if c.killed {
		return nil
	}
	c.killed = true
	now := r.began.Now() // it does nothing more, however late its end is noticed
	if how.Effects == 0 {
		now = max(how.When, now)
	}
	if err := c.Kill(); err != nil {
		return err
	}
	if err := r.waitGone(c); err != nil {
		return err
	}
	r.noteDown(c, now, how.Back, how.LostDisk)
	return nil
}

// waitGone waits until a killed process has ended.
func (r *running) waitGone(c *child) error {
	for {
		select {
		case s := <-r.came:
			if err := r.handle(s); err != nil {
				return err
			}
			continue
		case <-c.ended:
		}
		c.dead = true
		return nil
	}
}

// noteCrash records that a process has crashed by itself. The process ends when its input ends.
func (r *running) noteCrash(c *child, how *crashed) {
	c.killed = true
	_ = c.In.Close()
	r.noteDown(c, how.When, how.Back, how.Lost)
}

// noteDown records that a process is down, and schedules what follows.
func (r *running) noteDown(c *child, when, back parley.Tick, lost bool) {
	r.died[c.id] = append(r.died[c.id], when)
	if back > 0 {
		r.add(when+back, func(ctx context.Context) error { return r.restart(ctx, c.id, lost) })
	}
	r.detect(when, func() (who, of []*child) { return r.members, []*child{c} })
}

// detect notifies some processes that others are down, if they still are then.
func (r *running) detect(when parley.Tick, whom func() (who, of []*child)) {
	if r.Detect == 0 {
		return
	}
	r.add(when+r.Detect, func(context.Context) error {
		who, of := whom()
		for _, c := range who {
			var gone []parley.ID
			for _, d := range of {
				if d.id != c.id && r.members[d.id] == d {
					gone = append(gone, d.id)
				}
			}
			if len(gone) > 0 && !c.killed {
				_ = c.tell(order{Gone: gone})
			}
		}
		return nil
	})
}
