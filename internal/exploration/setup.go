package exploration

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/explore"
	"parley/explore/goal"
	"parley/internal/form"
	"parley/internal/lists"
	"parley/internal/nearest"
)

// Setup checks the flags and makes a search from them.
func (f *Flags) Setup() (*Search, error) {
	p, err := f.build()
	if err != nil {
		return nil, err
	}
	s := &Search{flags: f, names: f.Names, bare: p.Bare != nil}
	if p.Bound != nil && !f.beyond {
		if err := p.Bound(p.N, p.M); err != nil {
			return nil, parley.FlagErrorf("m", "%w; --beyond-bound explores it nevertheless", err)
		}
	}
	if err := f.readCrashes(); err != nil {
		return nil, err
	}
	if s.bare {
		p = *p.Bare
	}
	s.protocol = p
	if err := f.check(p); err != nil {
		return nil, err
	}
	if err := f.circumstances(s); err != nil {
		return nil, err
	}
	if s.begins, err = f.initialStates(s); err != nil {
		return nil, err
	}
	s.options.Protocol, s.options.Roots = s.protocol, s.begins.roots
	s.options.Memory, s.options.For = f.memory<<30, f.limit
	return s, f.aims(s)
}

// mostExplored is the maximum number of processes to explore.
const mostExplored = 16

// atLeast returns the minimum number of processes to explore if -n is not given: two if the protocol takes no
// requests, which would distinguish them.
func atLeast(p parley.Protocol) int {
	if !p.Serves && p.Proposers == (parley.Set{}) {
		return 2
	}
	return 3
}

// build makes the protocol. Without -n it has the fewest processes that tolerate one fault, or the faults of -m: the
// simulator's default n has too many states.
func (f *Flags) build() (parley.Protocol, error) {
	n := f.fs.Lookup("n")
	if n == nil || n.Changed {
		return f.Protocol()
	}
	simulated := n.Value.String()
	for few := atLeast(f.listed); few <= mostExplored; few++ {
		if err := n.Value.Set(strconv.Itoa(few)); err != nil {
			break // it is not a number of processes
		}
		p, err := f.Protocol()
		bears := p.M > 0 || f.fs.Lookup("m") == nil || f.fs.Changed("m")
		if err == nil && bears && (p.Bound == nil || p.Bound(p.N, p.M) == nil) {
			n.Changed = true // so that the run's arguments include it
			return p, nil
		}
	}
	if err := n.Value.Set(simulated); err != nil {
		return parley.Protocol{}, &parley.FlagError{Flag: "n", Err: err}
	}
	return f.Protocol()
}

// elsewhere says how to try a protocol that depends on clocks.
func elsewhere(p parley.Protocol) string {
	own := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	if p.Flags != nil {
		p.Flags(own)
	}
	if own.Lookup("given") != nil {
		return "use --given, which explores the rest with clocks that are right, or run and sweep, whose clocks differ"
	}
	return "use run or sweep, whose clocks differ and drift"
}

// check returns an error if flags are wrong in themselves or for this protocol.
func (f *Flags) check(p parley.Protocol) error {
	switch {
	case !slices.Contains(grains, f.step):
		return parley.FlagErrorf("step", "unknown step %q: %s", f.step, nearest.Names(f.step, grains))
	case !slices.Contains(orders, f.order):
		return parley.FlagErrorf("order", "unknown order %q: %s", f.order, nearest.Names(f.order, orders))
	case p.N > mostExplored:
		return parley.FlagErrorf("n", "%d processes: allowed in an exploration are 1 to %d", p.N, mostExplored)
	case p.Relies.Drift > 0 || p.Relies.Offset > 0:
		return fmt.Errorf("parley explore %s: this protocol reads clocks, and an exploration has no clock time: %s",
			f.listed.Name, elsewhere(p))
	case f.step != grains[0] && p.Timing != parley.Synchronous:
		return parley.FlagErrorf("step", "%s has no rounds: allowed is message", p.Name)
	case f.pairs && p.Timing != parley.Synchronous:
		return parley.FlagErrorf("indistinguishable", "%s has no rounds: name a protocol in rounds", p.Name)
	case f.depth < 0:
		return parley.FlagErrorf("depth", "%d steps: allowed are 1 and more, or 0 for no limit", f.depth)
	case f.depth > 0 && f.order == "depth":
		return parley.FlagErrorf("depth", "a search depth first goes to the ends of runs: use --order breadth")
	case f.limit < 0:
		return parley.FlagErrorf("for", "%s is negative: allowed are durations from 0, which is no limit", f.limit)
	case f.walks < 1:
		return parley.FlagErrorf("walks", "%d is too small: at least 1 is allowed", f.walks)
	case f.memory < 1 || f.memory > 1<<20:
		return parley.FlagErrorf("memory", "%d GiB: allowed are 1 to %d", f.memory, 1<<20)
	case f.workers < 1 || f.workers > form.MostWorkers:
		return parley.FlagErrorf("workers", "%d threads: allowed are 1 to %d", f.workers, form.MostWorkers)
	case f.model.LostDisks > f.model.Restarts:
		return parley.FlagErrorf("lost-disks", "%d is more than --restarts, which is %d: raise --restarts", f.model.LostDisks,
			f.model.Restarts)
	case f.model.Restarts > f.model.Crashes:
		return parley.FlagErrorf("restarts", "%d is more than --crashes, which is %d: raise --crashes",
			f.model.Restarts, f.model.Crashes)
	}
	for _, c := range faultCounts(&f.model) {
		switch n := *c.n; {
		case n < 0 || n > 255:
			return parley.FlagErrorf(c.flag, "%d: allowed are 0 to 255", n)
		case n > 0 && f.pairs:
			return parley.FlagErrorf(c.flag, "--indistinguishable has no faults except lies: omit the flag")
		case n > 0 && f.step != grains[0]:
			return parley.FlagErrorf(c.flag, "a search by rounds has no faults except lies: use --step message")
		}
	}
	if f.model.Timeouts > 0 && p.Timing == parley.Synchronous {
		return parley.FlagErrorf("timeouts", "%s has rounds, whose timers expire when they are due: omit the flag", p.Name)
	}
	for _, other := range []string{"goal", "always", "eventually", "property", "step"} {
		if f.pairs && f.fs.Changed(other) {
			return parley.FlagErrorf("indistinguishable", "it is a search by rounds of its own: omit --%s", other)
		}
	}
	return nil
}

// circumstances fills in the possible faults, and how the search is made.
func (f *Flags) circumstances(s *Search) error {
	p, given := s.protocol, f.fs.Changed
	m := f.model
	if !given("fifo") {
		m.FIFO = p.Relies.FIFO
	}
	if !given("in-time") {
		m.InTime = p.Relies.Delay > 0 && m.Timeouts == 0 && p.Timing != parley.Synchronous
	}
	if m.InTime && m.Timeouts > 0 {
		return parley.FlagErrorf("timeouts", "with bounded delays timers expire when they are due: use --in-time=false, "+
			"which lets them expire at any time")
	}
	if !given("crash-notices") {
		m.Detect = s.bare
	}
	if m.Overtaking && (!m.Detect || m.Crashes == 0) {
		return parley.FlagErrorf("overtaking", "there is no notice of a crash: use --crash-notices and --crashes")
	}
	grain := explore.Messages
	if f.step != grains[0] {
		grain = explore.Rounds
		if given("crash-notices") && m.Detect {
			return parley.FlagErrorf("crash-notices", "a search by rounds has no crashes: use --step message")
		}
		m = explore.Model{FIFO: m.FIFO}
	}
	s.options = explore.Options{
		Model: m, Depth: f.depth, States: f.states, Walks: f.walks, Seed: f.seed, Workers: f.workers,
		Step: grain, Order: explore.Order(slices.Index(orders, f.order)),
		Unreduced: f.unreduced, Beyond: f.beyond, All: f.all, Naming: s.names.Full, Ordered: f.ordered,
	}
	if !given("ordered") {
		s.options.Ordered = slices.ContainsFunc(p.Properties, func(q parley.Property) bool {
			return q.Name == oneMachine
		})
	}
	return nil
}

// oneMachine is the property of replicas that depends on the order in which different processes submit and execute
// commands.
const oneMachine = "as one machine"

// aims fills in what to search for.
func (f *Flags) aims(s *Search) error {
	p := s.protocol
	all := lists.Of(p.Properties, nameOf)
	for _, name := range f.properties {
		if !slices.Contains(all, name) {
			return parley.FlagErrorf("property", "%s has no property %q: %s", p.Name, name, nearest.Names(name, all))
		}
	}
	s.options.Only = f.properties
	var named parley.Set // in the goal
	naming := func(text string) (parley.ID, error) {
		id, err := f.Naming(text)
		if err == nil {
			named.Add(id)
		}
		return id, err
	}
	flag, text := "", ""
	for _, one := range [][2]string{{"goal", f.goal}, {"always", f.always}, {"eventually", f.eventually}} {
		switch {
		case !f.fs.Changed(one[0]):
		case flag != "":
			return parley.FlagErrorf(one[0], "a search has one goal: omit this flag or --%s", flag)
		case len(f.properties) > 0:
			return parley.FlagErrorf(one[0], "a search has one goal: omit this flag or --property")
		default:
			flag, text = one[0], one[1]
		}
	}
	if flag == "eventually" && p.Timing != parley.Synchronous {
		return parley.FlagErrorf(flag, "%s has no rounds that end its runs, and explore does not check "+
			"endless runs: use --always or --goal", p.Name)
	}
	if flag != "" {
		g, err := goal.Parse(text, p, naming, s.names.Full)
		if err != nil {
			return &parley.FlagError{Flag: flag, Err: err}
		}
		s.aim, s.goal = flag, g
		s.options.Looks = g.Looks
		s.options.Goal = map[string]func(*explore.View) bool{
			"goal": g.Holds, "always": func(v *explore.View) bool { return !g.Holds(v) },
			"eventually": func(v *explore.View) bool { return v.History.Over && !g.Holds(v) },
		}[flag]
	}
	return f.symmetries(s, named)
}

// symmetries reads which processes are symmetric.
func (f *Flags) symmetries(s *Search, named parley.Set) error {
	const flag = "symmetry"
	if f.symmetry == "" {
		return nil
	}
	if s.protocol.Rename == nil {
		return parley.FlagErrorf(flag, "%s does not define how messages change with the names of processes: omit the flag",
			s.protocol.Name)
	}
	if f.model.Restarts > 0 {
		return parley.FlagErrorf(flag, "durable records do not change with the names of processes: omit --restarts")
	}
	for _, who := range strings.Split(f.symmetry, ",") {
		id, err := f.Naming(who)
		switch {
		case err != nil:
			return parley.FlagErrorf(flag, "%w", err)
		case !s.options.Alike.Add(id):
			return parley.FlagErrorf(flag, "%s is named twice: name it once", s.names.Full(id))
		case named.Has(id):
			return parley.FlagErrorf(flag, "%s is named in --%s: name processes that it leaves out",
				s.names.Full(id), s.aim)
		}
	}
	safe := s.options.Alike.Minus(f.model.CrashOnly)
	if f.model.CrashOnly != (parley.Set{}) && safe != (parley.Set{}) && safe != s.options.Alike {
		return parley.FlagErrorf(flag, "only some of these processes are in --crashes: all or none must be")
	}
	return nil
}
