// Package clocks keeps a node's clock together with those of the others, and measures how late the node wakes.
package clocks

import (
	"cmp"
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
)

// Config configures the clocks that the nodes keep together. It is the same at all of them.
// What is 0 has a default.
type Config struct {
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

// Plan returns what the clocks of n nodes go by, m of which may lie, with rounds of a length.
func (c Config) Plan(n, m int, round time.Duration) (convergence.Plan, error) {
	k := convergence.Config{
		N: n, M: m, Least: 1, Eps: parley.Tick(cmp.Or(c.Error, time.Millisecond)), Rho: cmp.Or(c.Drift, 100),
		Period: parley.Tick(c.Period), Begin: convergence.Either, Readings: readings,
		Late: parley.Tick(kernel.Slack(round)),
	}
	if k.Period > 0 {
		p, err := k.Plan()
		if err == nil {
			return p, nil
		}
		k.Period = 0
		if p, shortest := fitting(k); shortest == nil {
			return p, fmt.Errorf("with a period of %v they can not be kept together, but with %v",
				c.Period, time.Duration(p.Period))
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

// Service is the clock of a node.
type Service struct {
	k       *kernel.Kernel
	plan    convergence.Plan
	machine parley.Machine // what is run, unless this node lies
	process *host.Process
	shown   atomic.Pointer[clockSegment]
	last    atomic.Int64 // the last synchronized reading
	wakes   wakeMonitor

	in    bool                    // it has been said that it is synchronized; of steps only
	named map[parley.ID]time.Time // when it was last said of whom that its clock is beyond
}

// clockSegment is what the clock shows from one of its steps to the next.
type clockSegment struct {
	convergence.Shown
	date  int64
	dated bool
}

// at is the cluster's time, in nanoseconds as Unix counts them, and whether it is known.
func (s *Service) at(hardware parley.Tick) (t int64, synchronized bool) {
	c := s.shown.Load()
	if c == nil {
		return 0, false
	}
	return c.date + int64(c.At(hardware)), c.dated && c.Checked(hardware)
}

// Open begins to keep the clock.
func Open(k *kernel.Kernel, c Config) (s *Service, err error) {
	s = &Service{k: k}
	if s.plan, err = c.Plan(len(k.Members), k.M, k.Round); err != nil {
		return nil, fmt.Errorf("cluster: clocks: %w", err)
	}
	if err := s.keep(); err != nil {
		return nil, err
	}
	s.wakes.start(s)
	return s, nil
}

// keep opens the machine, if there are enough clocks.
func (s *Service) keep() (err error) {
	if err := convergence.New(s.plan.Config).Bound(s.plan.N, s.plan.M); err != nil {
		s.k.Log.Warn("the clocks are not kept together", "why", err)
		return nil
	}
	s.named = make(map[parley.ID]time.Time)
	p := dated.New(dated.Config{
		Config: s.plan.Config, Round: parley.Tick(s.k.Round), Slack: parley.Tick(kernel.Slack(s.k.Round)),
		Date: func(parley.ID, parley.Tick) int64 { return s.wall() },
	})
	s.machine = p.New(s.k.Self)
	machine := s.machine
	if s.k.Lies != nil {
		machine = s.k.Play(p)
	}
	s.process, err = s.k.Host.Open(host.Options{
		Channel: kernel.ClockChannel, Name: "clock", Machine: machine, Upper: s, Again: s.k.Again, Class: link.Urgent,
	})
	return err
}

// Close ends the measuring of how late this process wakes.
func (s *Service) Close() { s.wakes.close() }

// kept tells whether the clock is kept together with others.
func (s *Service) kept() bool { return s.process != nil }

// wall is what this node takes for the date.
func (s *Service) wall() int64 {
	now := time.Now().UnixNano()
	if c, wrong := s.k.Clock.(host.Skewed); wrong {
		now += int64(c.Now() - c.Clock.Now())
	}
	return now
}

// Now tells the cluster's time.
func (s *Service) Now() Reading {
	wall := s.wall()
	r := Reading{Time: time.Unix(0, wall), Bound: math.MaxInt64}
	if s.shown.Load() == nil {
		return r
	}
	t, ok := s.at(s.k.Clock.Now())
	if r.Synchronized = ok; ok {
		r.Bound = time.Duration(s.plan.Ever)
		for last := s.last.Load(); ; last = s.last.Load() {
			if t < last {
				r.Bound += time.Duration(last - t)
				t = last
				break
			} else if s.last.CompareAndSwap(last, t) {
				break
			}
		}
	}
	r.Time, r.Offset = time.Unix(0, t), time.Duration(t-wall)
	return r
}

// Rate is by how much this node's clock gains on the others, in parts in a million; 0 as long as that is not known.
func (s *Service) Rate() float64 { return s.Look().Rate }

// Look returns what this node knows of the others' clocks; nothing if the clock is not kept together with them.
func (s *Service) Look() (v dated.View) {
	if s.kept() {
		s.process.Do(func(_ parley.Machine, now parley.Tick) { v = s.look(now) })
	}
	return v
}

// Error is how wrong the reading of another node's clock may be.
func (s *Service) Error() time.Duration { return time.Duration(s.plan.Error) }

// Lateness is how late this process wakes.
func (s *Service) Lateness() WakeLatency { return s.wakes.lateness() }

// look returns what the node knows of the clocks, within a step.
func (s *Service) look(now parley.Tick) dated.View {
	v, _ := dated.Look(s.machine, now)
	return v
}

// show keeps what the clock shows after a step.
func (s *Service) show() {
	if v := s.look(0); v.Once {
		s.shown.Store(&clockSegment{v.Clock, v.Date, v.Dated})
	}
}

// Deliver is told the corners of the clock, within its step.
func (s *Service) Deliver(_ parley.ID, _ parley.Path, m parley.Msg) {
	log := s.k.Log
	s.show()
	switch m.Kind {
	case convergence.Leaves:
		s.in = false
		log.Warn("the clock is not synchronized any more", "why", string(m.Body))
	case convergence.Settles, convergence.Enters:
		switch _, ok := s.at(parley.Tick(m.Seq)); {
		case ok && !s.in:
			s.in = true
			log.Info("the clock is synchronized", "bound", time.Duration(s.plan.Ever))
		case !ok && m.Kind == convergence.Settles && s.look(0).Dated:
			log.Info("the clock is not synchronized yet: the clocks may have begun too far apart, and come together")
		}
	}
}

// Indicate is told of a date, and of whom the clock is beyond: once a minute that is said.
func (s *Service) Indicate(_ parley.Path, m parley.Msg) {
	switch m.Kind {
	case dated.Dated:
		s.show()
	case dated.Beyond:
		if now := time.Now(); now.Sub(s.named[m.Origin]) >= time.Minute {
			s.named[m.Origin] = now
			s.k.Log.Warn("a node's clock is beyond what a correct one may show, and does not count",
				"node", s.k.Name(m.Origin), "ahead", time.Duration(m.Value), "allowed", time.Duration(s.plan.Threshold))
		}
	}
}
