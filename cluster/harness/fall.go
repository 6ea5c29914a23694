package harness

import (
	"context"

	"parley"
	"parley/sim"
)

// add has something done at a time.
func (r *running) add(when parley.Tick, do func(context.Context) error) {
	r.due, r.more = insert(r.due, deed{when, do}, func(d deed) parley.Tick { return d.when }), true
}

// kill kills a process, as with kill -9.
func (r *running) kill(how sim.Crash) error {
	c := r.members[how.At]
	if c.killed {
		return nil
	}
	c.killed = true
	now := r.began.Now() // it does no more, however late its end is noticed
	if how.Effects == 0 {
		now = max(how.When, now)
	}
	if err := c.Kill(); err != nil {
		return err
	}
	if err := r.gone(c); err != nil {
		return err
	}
	r.down(c, now, how.Back, how.LostDisk)
	return nil
}

// gone waits until a process that was killed has ended.
func (r *running) gone(c *child) error {
	for {
		select {
		case s := <-r.came:
			if err := r.take(s); err != nil {
				return err
			}
			continue
		case <-c.ended:
		}
		c.dead = true
		return nil
	}
}

// fell takes in that a process has crashed by itself. It ends when its input does.
func (r *running) fell(c *child, how *crashed) {
	c.killed = true
	_ = c.In.Close()
	r.down(c, how.When, how.Back, how.Lost)
}

// down notes that a process is down, and what follows from that.
func (r *running) down(c *child, when, back parley.Tick, lost bool) {
	r.died[c.id] = append(r.died[c.id], when)
	if back > 0 {
		r.add(when+back, func(ctx context.Context) error { return r.again(ctx, c.id, lost) })
	}
	r.detect(when, func() (who, of []*child) { return r.members, []*child{c} })
}

// detect has some processes told that others are down, if they still are then.
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
