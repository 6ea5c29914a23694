package run

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"sync"

	"parley"
	"parley/sim"
)

// The promises of every run, in addition to the properties of its protocol.
const (
	Sound = "does not panic"
	Rests = "comes to rest" // within Plan.Steps
)

// Trial is the result of one run of a sweep.
type Trial struct {
	Seed      uint64
	Received  uint64            // messages
	Delivered uint64            // deliveries to the layer above
	Faults    map[string]uint64 // injected faults, by kind
	// History is valid until the memory of the run is reused. It is nil if a machine panicked.
	History  *parley.History
	Verdicts []parley.Verdict
	GivenUp  bool   // stopped at Plan.Steps
	Panicked string // the panic of a machine
}

// Try simulates the run in the given memory, which can be reused for many runs. If a machine of the protocol
// panics, the trial records that.
func (s Spec) Try(memory *sim.Sim) (t Trial) {
	t.Seed = s.Seed
	defer func() {
		if v := recover(); v != nil {
			t = Trial{Seed: s.Seed, Panicked: fmt.Sprint(v)}
			*memory = sim.Sim{}
		}
	}()
	opt := s.Options()
	defer s.hire(&opt)()
	memory.Reset(opt)
	memory.Run()
	t.History = &memory.History
	t.History.Naming = s.Name
	t.Delivered = uint64(len(t.History.Deliveries))
	t.Faults, t.Received, t.GivenUp = memory.Stats.Faults(), memory.Stats.Deliveries, memory.Stats.OutOfSteps
	t.Verdicts = parley.Judge(s.Protocol, memory.RunConditions(), t.History)
	return t
}

// Breaks returns how the run broke a promise, or "" if it did not. The argument property is the name of a property,
// or Sound or Rests.
func (t *Trial) Breaks(property string) string {
	switch {
	case property == Sound:
		return t.Panicked
	case property == Rests && t.GivenUp:
		return "it does not come to rest in the steps that it has"
	}
	for _, v := range t.Verdicts {
		if v.Property.Name == property && v.Property.Mode != parley.Sometimes && v.Violated() {
			return v.Broken.Error()
		}
	}
	return ""
}

// Breach is a broken promise in a run.
type Breach struct {
	Seed     uint64
	Property string
	How      string
}

// Tally counts how often a property held.
type Tally struct {
	Held              uint64 `json:"held"`   // promised, and held
	Broken            uint64 `json:"broken"` // promised, and broken
	NotPromisedHeld   uint64 `json:"not_promised_held"`
	NotPromisedBroken uint64 `json:"not_promised_broken"`
	Seen              uint64 `json:"seen,omitempty"`         // runs that show a property of mode Sometimes
	Unseen            uint64 `json:"never_in_run,omitempty"` // runs that do not
}

// SweepOptions configure a sweep.
type SweepOptions struct {
	Workers int    // concurrent runs; 0: GOMAXPROCS
	All     bool   // do not stop at the first broken promise
	OnRun   func() // called after each run, concurrently; may be nil
}

// SweepReport sums up the runs of a sweep.
type SweepReport struct {
	Runs       uint64
	Received   uint64 // messages received, over all runs
	Delivered  uint64 // deliveries to the layer above, over all runs
	GivenUp    uint64 // runs stopped at Plan.Steps
	Faults     map[string]uint64
	Properties map[string]*Tally // by name; Sound only if broken
	Breaches   []Breach          // in the order of the seeds
}

// Sweep runs a spec once with each seed and counts the results. It stops when ctx ends. If SweepOptions.All
// is not set, it also stops at the first broken promise. The report then covers the completed runs. Sweep
// takes seeds in batches, so that its result does not depend on the speed of the workers. It returns an error
// if the spec is invalid.
func Sweep(ctx context.Context, s Spec, seeds iter.Seq[uint64], o SweepOptions) (SweepReport, error) {
	r := SweepReport{Faults: make(map[string]uint64), Properties: make(map[string]*Tally)}
	if err := s.Check(); err != nil {
		return r, err
	}
	o.Workers = cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
	memories := make([]*sim.Sim, o.Workers)
	for i := range memories {
		memories[i] = new(sim.Sim)
	}
	next, stop := iter.Pull(seeds)
	defer stop()
	for {
		batch := make([]uint64, 0, 64*o.Workers)
		for len(batch) < cap(batch) {
			seed, more := next()
			if !more {
				break
			}
			batch = append(batch, seed)
		}
		for _, t := range s.tryAll(ctx, batch, memories, o) {
			if t != nil {
				r.add(t)
			}
		}
		if len(batch) < cap(batch) || len(r.Breaches) > 0 && !o.All || ctx.Err() != nil {
			return r, nil
		}
	}
}

// tryAll simulates a run with each seed. The trials that had not begun when ctx ended are nil.
func (s Spec) tryAll(ctx context.Context, seeds []uint64, memories []*sim.Sim, o SweepOptions) []*Trial {
	out := make([]*Trial, len(seeds))
	var wait sync.WaitGroup
	for w, memory := range memories {
		wait.Go(func() {
			own := s
			for i := w; i < len(seeds) && ctx.Err() == nil; i += len(memories) {
				own.Seed = seeds[i]
				if t := own.Try(memory); t.Panicked == "" || ctx.Err() == nil { // the end of ctx may end Processes
					out[i] = &t
				}
				if o.OnRun != nil {
					o.OnRun()
				}
			}
		})
	}
	wait.Wait()
	return out
}

// add counts one run.
func (r *SweepReport) add(t *Trial) {
	r.Runs++
	r.Received += t.Received
	r.Delivered += t.Delivered
	// order: sums
	for kind, n := range t.Faults {
		r.Faults[kind] += n
	}
	if t.GivenUp {
		r.GivenUp++
	}
	if t.Panicked != "" {
		r.tally(Sound).Broken++
		r.Breaches = append(r.Breaches, Breach{t.Seed, Sound, t.Panicked})
	}
	for _, v := range t.Verdicts {
		c := r.tally(v.Property.Name)
		switch {
		case v.Property.Mode == parley.Sometimes && v.Broken == nil:
			c.Seen++
		case v.Property.Mode == parley.Sometimes:
			c.Unseen++
		case v.Violated():
			c.Broken++
			r.Breaches = append(r.Breaches, Breach{t.Seed, v.Property.Name, v.Broken.Error()})
		case v.Promise.Holds:
			c.Held++
		case v.Broken == nil:
			c.NotPromisedHeld++
		default:
			c.NotPromisedBroken++
		}
	}
}

func (r *SweepReport) tally(property string) *Tally {
	t := r.Properties[property]
	if t == nil {
		t = new(Tally)
		r.Properties[property] = t
	}
	return t
}

// Minimize shrinks a run that breaks a promise: it removes all events, requests and faulty processes that the
// failure does not need. A run with fewer faults may need another seed; Minimize tries eight seeds. If ctx
// ends, it returns the smallest run found so far. If the run s does not break the promise, ok is false.
func Minimize(ctx context.Context, s Spec, property string) (least Spec, ok bool) {
	memory := new(sim.Sim)
	least = s.Draw()
	fails := func(plan Plan) bool {
		try := least
		try.Plan = plan
		for k := range uint64(8) {
			if ctx.Err() != nil {
				return false
			}
			if k > 0 {
				try.Seed = k
			}
			if t := try.Try(memory); t.Breaks(property) != "" {
				least.Seed = try.Seed
				return true
			}
		}
		return false
	}
	if !fails(least.Plan) {
		return least, false
	}
	for smaller := true; smaller; {
		least.Plan = least.Plan.minimize(fails)
		smaller = false
		for _, id := range slices.Sorted(maps.Keys(least.Faulty)) {
			was := least.Faulty
			least.Faulty = maps.Clone(was)
			if delete(least.Faulty, id); fails(least.Plan) {
				smaller = true
			} else {
				least.Faulty = was
			}
		}
	}
	return least, true
}
