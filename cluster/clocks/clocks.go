// Package clocks implements a node's service for clocks: it synchronizes the node's clock with the clocks of its
// peers. It also measures how late the operating system runs the node.
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

// Config configures the synchronized clocks. It must be identical on all nodes. A zero field means its default.
type Config struct {
	// Error is the maximum error of a reading of another node's clock, by default 1 ms. The error of a reading is
	// half of its round trip. If the round trip is too long, the node repeats the reading up to five times. After
	// that the reading counts as failed. A larger Error makes the bound of all clocks larger.
	Error time.Duration
	// Drift is the maximum error of the rate of a correct clock, in parts per million, by default 100.
	Drift int64
	// Period is the time between resynchronizations, by default 1 s, or longer if the other parameters require it.
	Period time.Duration
}

// readings is how often a clock is read in a resynchronization.
const readings = 5

// Plan returns the plan of the clocks of n nodes, m of which may be faulty, with rounds of the given length.
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
			return p, fmt.Errorf("they cannot be synchronized with a period of %v: use %v",
				c.Period, time.Duration(p.Period))
		}
		return p, err
	}
	return fitting(k)
}

// fitting sets the shortest of the usual periods that the other parameters allow.
func fitting(k convergence.Config) (p convergence.Plan, err error) {
	for period := time.Second; period <= time.Hour; period *= 2 {
		k.Period = parley.Tick(period)
		if p, err = k.Plan(); err == nil {
			return p, nil
		}
	}
	return p, fmt.Errorf("clocks that are read with an error of %v and drift by %d ppm cannot be synchronized: "+
		"%w", time.Duration(k.Eps), k.Rho, err)
}

// Reading is the time that a node's clock shows.
type Reading struct {
	// Time is the cluster's time, which all nodes share. It is not synchronized with any clock outside the cluster.
	// Initially it is the median of the nodes' own dates. When clocks start from scratch, nodes that had the
	// cluster's time contribute this time instead of their own date. From one reading of a synchronized clock to the
	// next, Time does not decrease.
	Time time.Time
	// Bound is the maximum difference between this node's clock and the clock of any other correct node. It holds
	// while at most m nodes are faulty, disconnected, or down, by the theorem of package convergence. It is the
	// largest duration if the clock is not synchronized.
	Bound time.Duration
	// Synchronized says that this node's clock is synchronized: at its last comparison it was close enough to the
	// clocks of all but at most m nodes. After a start, the clock counts as synchronized in two cases. First, all
	// clocks that this node read were certainly within the bound. Second, the node has compared its clock so often
	// (convergence.Plan.Pulls) that clocks which began too far apart have converged. The second case is not promised
	// if a node is Byzantine after such a start.
	Synchronized bool
	// Offset is how far the cluster's time is ahead of the clock of this computer.
	Offset time.Duration
}

// Service is the clock of a node.
type Service struct {
	k       *kernel.Kernel
	plan    convergence.Plan
	machine parley.Machine // which runs, unless this node is faulty
	process *host.Process
	shown   atomic.Pointer[clockSegment]
	last    atomic.Int64 // the last synchronized reading
	wakes   wakeMonitor

	in    bool                    // it was logged as synchronized; used within steps only
	named map[parley.ID]time.Time // when a clock was last logged as beyond the threshold
}

// clockSegment is the clock's function of time between two of its steps.
type clockSegment struct {
	convergence.Shown
	date  int64
	dated bool
}

// at returns the cluster's time in Unix nanoseconds, and whether the clock is synchronized.
func (s *Service) at(hardware parley.Tick) (t int64, synchronized bool) {
	c := s.shown.Load()
	if c == nil {
		return 0, false
	}
	return c.date + int64(c.At(hardware)), c.dated && c.Checked(hardware)
}

// Open starts the clock of a node.
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
		s.k.Log.Warn("clocks are not synchronized in this cluster", "err", err)
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

// Close stops measuring the wake latency.
func (s *Service) Close() { s.wakes.close() }

// kept reports whether the clock is synchronized with others at all.
func (s *Service) kept() bool { return s.process != nil }

// wall returns this node's own date.
func (s *Service) wall() int64 {
	now := time.Now().UnixNano()
	if c, wrong := s.k.Clock.(host.Skewed); wrong {
		now += int64(c.Now() - c.Clock.Now())
	}
	return now
}

// Now returns the cluster's time.
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

// Rate returns how much faster this node's clock runs than the clocks of the others, in parts per million. It returns
// 0 if this is not known.
func (s *Service) Rate() float64 { return s.Look().Rate }

// Look returns what this node knows about the others' clocks. The result is empty if the clock is not
// synchronized with them.
func (s *Service) Look() (v dated.View) {
	if s.kept() {
		s.process.Do(func(_ parley.Machine, now parley.Tick) { v = s.look(now) })
	}
	return v
}

// Error returns how wrong the reading of another node's clock may be.
func (s *Service) Error() time.Duration { return time.Duration(s.plan.Error) }

// Lateness returns how late this process was scheduled.
func (s *Service) Lateness() WakeLatency { return s.wakes.lateness() }

// look returns what the node knows of the clocks. It is called within a step.
func (s *Service) look(now parley.Tick) dated.View {
	v, _ := dated.Look(s.machine, now)
	return v
}

// show stores the clock's function of time after a step.
func (s *Service) show() {
	if v := s.look(0); v.Once {
		s.shown.Store(&clockSegment{v.Clock, v.Date, v.Dated})
	}
}

// Deliver handles events of the clock. It is part of its step.
func (s *Service) Deliver(_ parley.ID, _ parley.Path, m parley.Msg) {
	log := s.k.Log
	s.show()
	switch m.Kind {
	case convergence.Leaves:
		s.in = false
		log.Warn("clock is no longer synchronized", "reason", string(m.Body))
	case convergence.Settles, convergence.Enters:
		switch _, ok := s.at(parley.Tick(m.Seq)); {
		case ok && !s.in:
			s.in = true
			log.Info("clock is synchronized", "bound", time.Duration(s.plan.Ever))
		case !ok && m.Kind == convergence.Settles && s.look(0).Dated:
			log.Info("clock is not synchronized yet; the clocks may have started too far apart, and converge")
		}
	}
}

// Indicate handles a date, and logs at most once a minute that a node's clock is beyond the threshold.
func (s *Service) Indicate(_ parley.Path, m parley.Msg) {
	switch m.Kind {
	case dated.Dated:
		s.show()
	case dated.Beyond:
		if now := time.Now(); now.Sub(s.named[m.Origin]) >= time.Minute {
			s.named[m.Origin] = now
			s.k.Log.Warn("clock of a node differs more than a correct one may; it is ignored",
				"node", s.k.Name(m.Origin), "ahead", time.Duration(m.Value), "allowed", time.Duration(s.plan.Threshold))
		}
	}
}
