package cluster

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"parley"
	"parley/clock/convergence"
	"parley/clock/dated"
	"parley/cluster/host"
	"parley/cluster/kernel"
	"parley/cluster/link"
	"parley/faulty"
)

// ClockConfig is that of the clocks which the nodes keep together, alike at all of them.
// What is 0 has a default.
type ClockConfig struct {
	// Error is how wrong the reading of another node's clock may be: half of the round trip
	// that it takes. What takes longer is asked for again, up to five times, and then counts
	// as not read. The bound of all clocks grows with it. By default 1 ms.
	Error time.Duration
	// Drift is how wrong the rate of a correct clock may be, in parts in a million. By
	// default 100.
	Drift int64
	// Period is the time from one resynchronization to the next; by default 1 s, or as much
	// longer as the rest needs.
	Period time.Duration
}

// readings is how often a clock is asked for in a resynchronization.
const readings = 5

// plan is what the clocks go by.
func (c Config) plan() (convergence.Plan, error) {
	k := convergence.Config{
		N: len(c.Members), M: c.M, Least: 1, Eps: parley.Tick(c.Clocks.Error), Rho: c.Clocks.Drift,
		Period: parley.Tick(c.Clocks.Period), Begin: convergence.Either, Readings: readings,
		Late: parley.Tick(c.slack()),
	}
	if k.Eps == 0 {
		k.Eps = parley.Tick(time.Millisecond)
	}
	if k.Rho == 0 {
		k.Rho = 100
	}
	if k.Period > 0 {
		p, err := k.Plan()
		if err == nil {
			return p, nil
		}
		k.Period = 0
		if p, shortest := fitting(k); shortest == nil {
			return p, fmt.Errorf("with a period of %v they can not be kept together, but with %v",
				c.Clocks.Period, time.Duration(p.Period))
		}
		return p, err
	}
	return fitting(k)
}

// fitting fills in the shortest of the usual periods that the rest fits into.
func fitting(k convergence.Config) (p convergence.Plan, err error) {
	for period := time.Second; period <= time.Hour; period *= 2 {
		k.Period = parley.Tick(period)
		if p, err = k.Plan(); err == nil {
			return p, nil
		}
	}
	return p, fmt.Errorf("clocks that are read with an error of %v and drift by %d parts in a million can not "+
		"be kept together: %w", time.Duration(k.Eps), k.Rho, err)
}

// DefaultRound is the length of a round if nothing else is configured.
const DefaultRound = 100 * time.Millisecond

// CheckClocks tells what is wrong with the configuration of the clocks: that they can not
// be kept together so.
func (c Config) CheckClocks() error {
	_, err := c.filled().plan()
	return err
}

// filled returns the configuration with m and the length of rounds filled in.
func (c Config) filled() Config {
	if c.M == 0 {
		c.M = (len(c.Members) - 1) / 3
	}
	if c.Round == 0 {
		c.Round = DefaultRound
	}
	if c.DiskLimit == 0 {
		c.DiskLimit = defaultDiskLimit
	}
	return c
}

// slack is how late a node may do anything.
func (c Config) slack() time.Duration { return c.Round / 5 }

// Reading is what a node's clock shows.
type Reading struct {
	// Time is the cluster's time: common to all nodes, and not that of the outside world.
	// Where the clocks began it was the median of what the nodes took for the date; where they
	// begin anew, nodes that had the cluster's time take it for that. It does not go back from
	// one reading of a synchronized clock to the next.
	Time time.Time
	// Bound is how far any other correct node's clock may be from it, by the theorem of the
	// clocks, as long as no more than m nodes are faulty, cut off or down. It is the largest
	// time there is where the clock is not synchronized: nothing is known.
	Bound time.Duration
	// Synchronized tells whether this node's clock is in: it has been near enough those of
	// all but m nodes when it was due to compare them. After a start it is so only when all
	// clocks that it read were within the bound for certain, or when it has been compared so
	// often (convergence.Plan.Pulls) that those which began too far apart have come together.
	// That they have is not promised if a node lies after such a start.
	Synchronized bool
	// Offset is how far the cluster's time is ahead of the clock of this node's machine.
	Offset time.Duration
}

// nodeClock is the clock of a node.
type nodeClock struct {
	plan    convergence.Plan
	machine parley.Machine // what is run, unless this node lies
	process *host.Process
	shown   atomic.Pointer[shown]
	last    atomic.Int64 // the last synchronized reading
	watch   watch

	in    bool                    // it has been said that it is synchronized; of steps only
	named map[parley.ID]time.Time // when it was last said of whom that its clock is beyond
}

// shown is what the clock shows from one of its steps to the next.
type shown struct {
	convergence.Shown
	date  int64
	dated bool
}

// at is the cluster's time, in nanoseconds as Unix counts them, and whether it is known.
func (k *nodeClock) at(hardware parley.Tick) (t int64, synchronized bool) {
	c := k.shown.Load()
	if c == nil {
		return 0, false
	}
	return c.date + int64(c.At(hardware)), c.dated && c.Checked(hardware)
}

// startClock begins to keep the clock.
func (n *Node) startClock() (err error) {
	k := &n.clock
	defer k.watch.start(n)
	if k.plan, err = n.c.plan(); err != nil {
		return fmt.Errorf("cluster: clocks: %w", err)
	}
	if err := convergence.New(k.plan.Config).Bound(k.plan.N, k.plan.M); err != nil {
		n.c.Log.Warn("the clocks are not kept together", "why", err)
		return nil
	}
	k.named = make(map[parley.ID]time.Time)
	p := dated.New(dated.Config{
		Config: k.plan.Config, Round: parley.Tick(n.c.Round), Slack: parley.Tick(n.c.slack()),
		Date: func(parley.ID, parley.Tick) int64 { return n.wall() },
	})
	k.machine = p.New(n.k.Self)
	machine := k.machine
	if n.c.Lab != nil && n.c.Lab.Traitor.Name != "" {
		machine = faulty.New(p, 0, map[parley.ID]faulty.Behaviour{n.k.Self: n.c.Lab.Traitor})
	}
	k.process, err = n.k.Host.Open(host.Options{
		Channel: kernel.ClockChannel, Name: "clock", Machine: machine, Upper: clockUpper{n}, Again: n.k.Again,
		Class: link.Urgent,
	})
	return err
}

// kept tells whether the clock is kept together with others.
func (k *nodeClock) kept() bool { return k.process != nil }

// wall is what this node takes for the date.
func (n *Node) wall() int64 {
	now := time.Now().UnixNano()
	if s, wrong := n.c.Clock.(host.Skewed); wrong {
		now += int64(s.Now() - s.Clock.Now())
	}
	return now
}

// Clock tells the cluster's time.
func (n *Node) Clock() Reading {
	wall := n.wall()
	r := Reading{Time: time.Unix(0, wall), Bound: math.MaxInt64}
	k := &n.clock
	if k.shown.Load() == nil {
		return r
	}
	t, ok := k.at(n.c.Clock.Now())
	if r.Synchronized = ok; ok {
		r.Bound = time.Duration(k.plan.Ever)
		for last := k.last.Load(); ; last = k.last.Load() {
			if t < last {
				r.Bound += time.Duration(last - t)
				t = last
				break
			} else if k.last.CompareAndSwap(last, t) {
				break
			}
		}
	}
	r.Time, r.Offset = time.Unix(0, t), time.Duration(t-wall)
	return r
}

// look returns what the node knows of the clocks, within a step.
func (k *nodeClock) look(now parley.Tick) dated.View {
	v, _ := dated.Look(k.machine, now)
	return v
}

// show keeps what the clock shows after a step.
func (k *nodeClock) show() {
	if v := k.look(0); v.Once {
		k.shown.Store(&shown{v.Clock, v.Date, v.Dated})
	}
}

// clockUpper says what happens to the clock.
type clockUpper struct{ n *Node }

// Deliver is told the corners of the clock, within its step.
func (u clockUpper) Deliver(_ parley.ID, _ parley.Path, m parley.Msg) {
	k, log := &u.n.clock, u.n.c.Log
	k.show()
	switch m.Kind {
	case convergence.Leaves:
		k.in = false
		log.Warn("the clock is not synchronized any more", "why", string(m.Body))
	case convergence.Settles, convergence.Enters:
		switch _, ok := k.at(parley.Tick(m.Seq)); {
		case ok && !k.in:
			k.in = true
			log.Info("the clock is synchronized", "bound", time.Duration(k.plan.Ever))
		case !ok && m.Kind == convergence.Settles && k.look(0).Dated:
			log.Info("the clock is not synchronized yet: the clocks may have begun too far apart, and come together")
		}
	}
}

// Indicate is told of a date, and of whom the clock is beyond: once a minute that is said.
func (u clockUpper) Indicate(_ parley.Path, m parley.Msg) {
	k := &u.n.clock
	switch m.Kind {
	case dated.Dated:
		k.show()
	case dated.Beyond:
		if now := time.Now(); now.Sub(k.named[m.Origin]) >= time.Minute {
			k.named[m.Origin] = now
			u.n.c.Log.Warn("a node's clock is beyond what a correct one may show, and does not count",
				"node", u.n.k.Name(m.Origin), "ahead", time.Duration(m.Value), "allowed", time.Duration(k.plan.Threshold))
		}
	}
}
