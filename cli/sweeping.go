package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"parley"
	"parley/internal/draw"
	"parley/internal/scenario"
	"parley/sim"
)

// broken is a promise that a run broke.
type broken struct {
	Seed     uint64   `json:"seed"`
	Property string   `json:"property"`
	How      string   `json:"how"`
	Again    []string `json:"again"`           // the arguments that run it again
	Least    []string `json:"least,omitempty"` // and the least of it that still fails
}

// sweeping is a sweep at work.
type sweeping struct {
	*app
	ctx         context.Context // the runs that were made by its end are counted
	flags       *runFlags
	base        setup
	all         bool
	workers     int
	first, last uint64

	made       atomic.Uint64 // runs so far, for the progress
	runs       uint64
	deliveries uint64 // messages that machines received
	delivered  uint64 // to above
	faults     map[string]uint64
	properties map[string]*tally
	found      []broken
	wall       time.Duration
}

// tally is how often a property held.
type tally struct {
	Held        uint64 `json:"held"`
	Broken      uint64 `json:"broken"`                 // although it was promised
	NotPromised uint64 `json:"not_promised_held"`      // and it held
	Unpromised  uint64 `json:"not_promised_broken"`    // and it did not
	Seen        uint64 `json:"seen,omitempty"`         // of a property that is to hold sometimes
	Unseen      uint64 `json:"never_in_run,omitempty"` // runs without
}

// result is what one run adds to a sweep.
type result struct {
	seed       uint64
	received   uint64 // messages
	faults     map[string]uint64
	delivered  int
	verdicts   []parley.Verdict
	made       bool // before the sweep was interrupted
	unfinished bool
	panicked   string // what a machine panicked with
}

// sound is what breaks if a machine panics.
const sound = "does not panic"

// one makes one run with a seed of its own.
func (s setup) one(seed uint64, memory *sim.Sim) result {
	s.reseed(seed)
	return s.make(memory)
}

// make makes the run in the memory of others. A protocol may be anybody's: one that
// panics has failed, and the sweep goes on.
func (s setup) make(memory *sim.Sim) (r result) {
	r.seed, r.made = s.seed, true
	defer func() {
		if v := recover(); v != nil {
			r.panicked = fmt.Sprint(v)
			*memory = sim.Sim{}
		}
	}()
	memory.Reset(s.options())
	memory.Run()
	memory.History.Naming = s.names.full
	r.faults, r.received, r.delivered = memory.Stats.Faults(), memory.Stats.Deliveries, len(memory.History.Deliveries)
	r.verdicts = parley.Judge(s.protocol, memory.Assumptions(), &memory.History)
	r.unfinished = memory.Stats.OutOfSteps
	return r
}

// breaks returns how the run broke a promise, "" if it did not.
func (r *result) breaks(property string) string {
	if property == sound {
		return r.panicked
	}
	for _, v := range r.verdicts {
		if v.Property.Name == property && v.Property.Mode != parley.Sometimes && v.Violated() {
			return v.Broken.Error()
		}
	}
	return ""
}

// run makes all runs, batch by batch, so that what is found does not depend on
// which worker was quick.
func (s *sweeping) run() {
	began := time.Now()
	s.faults, s.properties, s.found = make(map[string]uint64), make(map[string]*tally), []broken{}
	stop := s.progress(began)
	defer stop()
	defer func() { s.wall = time.Since(began) }()
	memories := make([]*sim.Sim, s.workers)
	for i := range memories {
		memories[i] = new(sim.Sim)
	}
	batch := uint64(64 * s.workers)
	for from := s.first; ; from += batch {
		n := min(batch, s.last-from+1)
		results := make([]result, n)
		var wait sync.WaitGroup
		for w := range s.workers {
			wait.Add(1)
			go func() {
				defer wait.Done()
				for i := uint64(w); i < n && s.ctx.Err() == nil; i += uint64(s.workers) {
					results[i] = s.base.one(from+i, memories[w])
					s.made.Add(1)
				}
			}()
		}
		wait.Wait()
		for _, r := range results {
			if r.made {
				s.add(r)
			}
		}
		if len(s.found) > 0 && !s.all || from+n-1 == s.last || s.ctx.Err() != nil {
			return
		}
	}
}

// add counts one run.
func (s *sweeping) add(r result) {
	s.runs++
	s.deliveries += r.received
	s.delivered += uint64(r.delivered)
	// order: sums
	for kind, n := range r.faults {
		s.faults[kind] += n
	}
	if r.unfinished {
		s.faults["runs given up"]++
	}
	if r.panicked != "" {
		s.tally(sound).Broken++
		s.found = append(s.found, broken{Seed: r.seed, Property: sound, How: r.panicked, Again: s.again(r.seed)})
	}
	for _, v := range r.verdicts {
		t := s.tally(v.Property.Name)
		switch {
		case v.Property.Mode == parley.Sometimes && v.Broken == nil:
			t.Seen++
		case v.Property.Mode == parley.Sometimes:
			t.Unseen++
		case v.Promise.Holds && v.Broken == nil:
			t.Held++
		case v.Promise.Holds:
			t.Broken++
			s.found = append(s.found, broken{
				Seed: r.seed, Property: v.Property.Name, How: v.Broken.Error(), Again: s.again(r.seed),
			})
		case v.Broken == nil:
			t.NotPromised++
		default:
			t.Unpromised++
		}
	}
}

// tally is the count of a property.
func (s *sweeping) tally(property string) *tally {
	t := s.properties[property]
	if t == nil {
		t = new(tally)
		s.properties[property] = t
	}
	return t
}

// again is the command that makes a run of the sweep again.
func (s *sweeping) again(seed uint64) []string {
	return append(slices.Clone(s.base.args), "--seed="+strconv.FormatUint(seed, 10))
}

// smallest makes the first failure as small as it gets: of what befalls the processes,
// of what they are asked and of the liars all goes that it does not need.
func (s *sweeping) smallest() {
	if len(s.found) == 0 {
		return
	}
	f := &s.found[0]
	memory := new(sim.Sim)
	least := s.base
	least.reseed(f.Seed)
	// With fewer faults another seed may be needed: one of a few is enough.
	fails := func(plan scenario.Plan) bool {
		try := least
		try.drawn = plan
		for k := range uint64(8) {
			if s.ctx.Err() != nil {
				return false // as small as it got
			}
			if k > 0 {
				try.seed, try.signer = k, try.sign(k)
			}
			if r := try.make(memory); r.breaks(f.Property) != "" {
				least.seed, least.signer = try.seed, try.signer
				return true
			}
		}
		return false
	}
	if !fails(least.drawn) {
		return
	}
	for smaller := true; smaller; {
		least.drawn = scenario.Minimize(least.drawn, fails)
		smaller = false
		for _, id := range slices.Sorted(maps.Keys(least.faulty)) {
			was := least.faulty
			least.faulty = maps.Clone(was)
			if delete(least.faulty, id); fails(least.drawn) {
				smaller = true
			} else {
				least.faulty = was
			}
		}
	}
	f.Least = s.drawnArgs(least)
}

// drawnArgs are the arguments of a run of which nothing is left to be drawn but by the
// seed.
func (s *sweeping) drawnArgs(of setup) []string {
	args := slices.DeleteFunc(slices.Clone(of.args), func(arg string) bool {
		key, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		return key == "faulty" || slices.Contains(scenario.Keys, key)
	})
	var liars []string
	for _, id := range slices.Sorted(maps.Keys(of.faulty)) {
		liars = append(liars, of.names.bare(id)+"="+of.faulty[id].Name)
	}
	if len(liars) > 0 {
		args = append(args, "--faulty="+strings.Join(liars, ","))
	}
	for _, set := range of.drawn.Flags(of.protocol, of.names.bare) {
		args = append(args, "--"+set)
	}
	return append(args, "--seed="+strconv.FormatUint(of.seed, 10))
}

// progress says twice a second how far the sweep is, if there is a terminal.
func (s *sweeping) progress(began time.Time) (stop func()) {
	f, ok := s.err.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	total := s.last - s.first + 1
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				fmt.Fprint(f, "\r\x1b[K")
				return
			case <-time.After(500 * time.Millisecond):
				n := s.made.Load()
				const cells = 30
				filled := int(n * cells / total)
				fmt.Fprintf(f, "\r\x1b[K[%s%s] %s of %s seeds, %.0f a second", strings.Repeat("=", filled),
					strings.Repeat(" ", cells-filled), draw.Number(n), draw.Number(total),
					float64(n)/time.Since(began).Seconds())
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
