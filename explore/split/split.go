// Package split explores synchronous protocols faster: it explores their last round separately for each receiver.
// This is possible because processes send nothing after the last round. So a lie in the last round affects only its
// receiver. The number of lies to try in the last round is then the sum over the receivers, instead of the product.
package split

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"parley"
	"parley/explore"
	"parley/explore/internal/budget"
	"parley/explore/internal/timer"
	"parley/faulty"
	"parley/sim"
	"parley/trace"
)

// most is the maximum number of processes of a system.
const most = explore.MaxProcesses

// Search does what [explore.Search] does by rounds, but splits the last round. First it tries everything that the
// coalition may send in the earlier rounds. Then it takes each correct process through the last round separately,
// once for each set of lies to this process. It checks the properties on all combinations of the different results.
// The verdict is the same as the verdict of [explore.Search].
//
// No history contains what faulty processes deliver. Search returns an error if the protocol does not fit. Three
// things do not fit: a process that acts within a round, for example by closing the round early; a process that calls
// Choose itself; and a last round with an effect other than a delivery. Search ignores the option Order. It also
// ignores the option Step, and uses step size Rounds.
func Search(ctx context.Context, o explore.Options) (Report, error) {
	x, err := newSearch(ctx, o)
	if err != nil {
		return Report{}, err
	}
	x.verdicts = make(map[string][]string)
	return x.run()
}

// newSearch returns an error if the options do not fit.
func newSearch(ctx context.Context, o explore.Options) (*search, error) {
	o.Step = explore.Rounds
	if err := o.Check(); err != nil {
		return nil, err
	}
	if err := check(&o); err != nil {
		return nil, err
	}
	x := &search{
		Budget: budget.Budget{Context: ctx, Time: o.For, Memory: o.Memory}, o: o, p: o.Protocol,
		signer: sim.Ideal(1), processNumbers: make(map[string]uint32), processes: make([]roundProcess, 1),
		numbers: make(map[string]uint32), endings: make([][]parley.ExternalEvent, 1),
	}
	for _, r := range o.Roots {
		x.roots = append(x.roots, newRoot(r))
		if len(r.Faulty) >= x.p.N {
			return nil, fmt.Errorf("no process is correct")
		}
	}
	return x, nil
}

// check returns an error if an option has no meaning where the last round is split.
func check(o *explore.Options) error {
	m := o.Model
	m.FIFO, m.InTime = false, false // they make no difference in rounds
	var why string
	switch {
	case m != explore.Model{}:
		why = "it has no faults except lies"
	case o.Goal != nil:
		why = "a goal is about states, which it does not visit in the last round"
	case o.Depth > 0 || o.States > 0 || o.Order == explore.RandomOrder:
		why = "it has no limit of depth or states, and no random order"
	case o.Unreduced || o.Alike.Len() > 1:
		why = "it cannot be combined with symmetry, or be unreduced"
	}
	if why != "" {
		return fmt.Errorf("a search that splits the last round: %s", why)
	}
	return nil
}

// search is one search with its last round split.
type search struct {
	budget.Budget
	o      explore.Options
	p      parley.Protocol
	signer sim.Signer
	roots  []*root

	clock []parley.Tick // when timers of correct processes expire: rounds begin, and the last one ends
	alarm timer.Timer   // the timer that each correct process has
	wait  parley.Tick   // how long the coalition receives in a round before it sends

	states         []*roundState
	processes      []roundProcess    // states of one process, by number from 1
	processNumbers map[string]uint32 // numbers of processes
	tally          explore.Tally

	entered   atomic.Uint64 // states
	evaluated atomic.Uint64 // correct processes taken through a last round
	said      atomic.Uint64
	waiting   atomic.Int64 // states

	mu       sync.Mutex // guards the fields below
	err      error
	numbers  map[string]uint32 // of endings
	endings  [][]parley.ExternalEvent
	verdicts map[string][]string // violated properties, by root, deliveries, and whether the run is over
	runs     uint64
	broken   uint64
	found    []breach
}

// root is one way a run may begin.
type root struct {
	explore.Root
	faulty   parley.Set
	worst    parley.FaultModel
	requests [most][]parley.Msg
}

func newRoot(r explore.Root) *root {
	out := &root{Root: r}
	out.faulty, out.worst = faulty.Cast(r.Faulty)
	for _, q := range r.Requests {
		out.requests[q.At] = append(out.requests[q.At], q.Msg)
	}
	return out
}

// roundState is a state at the beginning of a round: timers have expired, and nothing that was sent has
// arrived.
type roundState struct {
	root, round int
	parts       [most]uint32 // numbers of process states, by correct process
	liars       uint32       // the number of the coalition's state; 0: no process is faulty
	past        []uint32     // numbers of endings, in order of time
	runs        uint64       // the number of runs that lead here

	from *roundState
	told [most]*lieMessages // the lies to each correct process in the round before
}

// roundProcess is the state of one seat at the beginning of a round.
type roundProcess struct {
	machine []byte
	sends   []message     // of this round; of a correct process
	timers  []timer.Timer // of the coalition
}

// key appends a key that identifies the state.
func (s *roundState) key(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(s.root))
	b = binary.AppendUvarint(b, uint64(s.liars))
	for _, part := range s.parts {
		b = binary.AppendUvarint(b, uint64(part))
	}
	return s.pastKey(b)
}

func (s *roundState) pastKey(b []byte) []byte {
	for _, number := range s.past {
		b = binary.LittleEndian.AppendUint32(b, number)
	}
	return b
}

// deliver adds the deliveries of a process.
func (s *roundState) deliver(end uint32) {
	if end != 0 {
		s.past = append(s.past, end)
	}
}

// numberProcess returns the number of the state of one process, or of the coalition of a root, which has a
// negative number. Only one thread may add states.
func (x *search) numberProcess(of int, p roundProcess) uint32 {
	key := binary.AppendVarint(nil, int64(of))
	key = parley.AppendBytes(key, p.machine)
	key = timer.Key(key, p.timers)
	for i := range p.sends {
		key = p.sends[i].key(key)
	}
	number, known := x.processNumbers[string(key)]
	if !known {
		number = uint32(len(x.processes))
		x.processNumbers[string(key)] = number
		x.processes = append(x.processes, p)
	}
	return number
}

// correct returns the correct processes of n.
func (r *root) correct(n int) iter.Seq[parley.ID] { return parley.Everyone(n).Minus(r.faulty).All() }

// times returns a*b, saturating at the largest uint64.
func times(a, b uint64) uint64 {
	over, product := bits.Mul64(a, b)
	if over != 0 {
		return math.MaxUint64
	}
	return product
}

// plus returns a+b, saturating at the largest uint64.
func plus(a, b uint64) uint64 {
	if a+b < a {
		return math.MaxUint64
	}
	return a + b
}

// breach is a violated property, and the run that violates it.
type breach struct {
	property string
	at       *roundState
	told     [most]*lieMessages // in the last round
}

// progress returns the function that reports the progress, or nil.
func (x *search) progress() func() {
	if x.o.Progress == nil {
		return nil
	}
	return func() {
		x.o.Progress(explore.Progress{
			States: x.entered.Load(), Moves: x.evaluated.Load(), Outcomes: x.said.Load(),
			Frontier: uint64(max(0, x.waiting.Load())), Took: x.Took(),
		})
	}
}

func (x *search) run() (Report, error) {
	defer x.Start(x.progress())()
	w := x.newWorker()
	for number := range x.roots {
		if w.learnClock(number); x.Over() {
			break
		}
	}
	switch {
	case x.err != nil:
		return Report{}, x.err
	case x.Over():
		return x.report(), nil
	}
	w = x.newWorker()
	w.seat()
	for number := range x.roots {
		if s := w.begin(number); x.err == nil {
			x.states = append(x.states, s)
			x.enter(s)
		}
	}
	for range len(x.clock) - 2 {
		x.round(w)
	}
	if x.err == nil {
		x.last()
	}
	if x.err != nil {
		return Report{}, x.err
	}
	return x.report(), nil
}

// round replaces the states of one round by those of the next one.
func (x *search) round(w *worker) {
	var list []*roundState
	known := make(map[string]*roundState)
	var key []byte
	for _, s := range x.states {
		w.round(s, func(next *roundState) {
			key = next.key(key[:0])
			if same := known[string(key)]; same != nil {
				same.runs = plus(same.runs, next.runs)
				return
			}
			known[string(key)] = next
			list = append(list, next)
			x.enter(next)
		})
		if x.Over() {
			break
		}
	}
	x.states = list
}

// enter counts a new state, and judges the deliveries before it.
func (x *search) enter(s *roundState) {
	x.entered.Add(1)
	if len(s.past) > 0 {
		x.judgeOnce(s, nil, 0, func(*[most]*lieMessages) {})
	}
}

// last takes all states through the last round.
func (x *search) last() {
	var taken atomic.Int64
	var all sync.WaitGroup
	for range x.o.Workers {
		all.Go(func() {
			w := x.newWorker()
			w.seat()
			for k := int(taken.Add(1)) - 1; k < len(x.states) && !x.Over(); k = int(taken.Add(1)) - 1 {
				w.last(x.states[k])
				x.waiting.Store(int64(len(x.states) - k - 1))
			}
		})
	}
	all.Wait()
}

// fail ends the search because the protocol does not fit.
func (x *search) fail(form string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err == nil {
		x.err = fmt.Errorf("the last round of %s cannot be split by receiver: %s", x.p.Name, fmt.Sprintf(form, args...))
	}
	x.Stop()
}

// ending returns the number of the deliveries of one process in one step, which key identifies.
func (x *search) ending(key []byte, at parley.ID, effects []parley.Effect) uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if number, known := x.numbers[string(key)]; known {
		return number
	}
	var list []parley.ExternalEvent
	for i := range effects {
		if e := &effects[i]; e.Op == parley.OpDeliver {
			list = append(list, parley.ExternalEvent{At: at, From: e.To, Path: e.Path, Msg: e.Msg})
		}
	}
	number := uint32(len(x.endings))
	x.numbers[string(key)] = number
	x.endings = append(x.endings, list)
	return number
}

// judgeOnce judges the history of a state with the given endings or, without any, of the state itself. runs
// is the number of runs that have this history; told sets the lies of one of them in the last round.
func (x *search) judgeOnce(s *roundState, ends []uint32, runs uint64, told func(*[most]*lieMessages)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.o.All && len(x.found) > 0 {
		return // another thread found a violation first
	}
	over := byte(0)
	if len(ends) > 0 {
		over = 1
	}
	key := s.pastKey(append(binary.AppendUvarint(nil, uint64(s.root)), over))
	for _, number := range ends {
		key = binary.LittleEndian.AppendUint32(key, number)
	}
	list, known := x.verdicts[string(key)]
	if !known {
		list = x.violations(s, ends)
		x.verdicts[string(key)] = list
		for _, name := range list[:min(len(list), enough-len(x.found))] {
			one := breach{property: name, at: s}
			told(&one.told)
			x.found = append(x.found, one)
		}
	}
	if len(list) == 0 {
		return
	}
	x.broken = plus(x.broken, runs)
	if !x.o.All {
		x.Stop()
	}
}

// addRuns adds runs to the count.
func (x *search) addRuns(runs uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.runs = plus(x.runs, runs)
}

// violations returns the violated properties that the search looks for.
func (x *search) violations(s *roundState, ends []uint32) (names []string) {
	h := x.roots[s.root].history(x.p.N)
	h.Over = len(ends) > 0
	for _, number := range slices.Concat(s.past, ends) {
		for _, e := range x.endings[number] {
			add(h, trace.Deliver, e)
		}
	}
	a := trace.Facts{Worst: x.roots[s.root].worst}
	a.Processes.Minority = 2*(x.p.N-h.Faulty.Len()) <= x.p.N
	all := parley.Judge(x.p, a.RunConditions(x.p, h), h)
	x.tally.Add(all, h.Over, x.o.Beyond)
	for _, v := range all {
		if v.Property.Mode != parley.Sometimes && v.Broken != nil && x.o.Counts(v) {
			names = append(names, v.Property.Name)
		}
	}
	return names
}

// history returns a history that contains only the requests.
func (r *root) history(n int) *parley.History {
	h := &parley.History{N: n, Faulty: r.faulty}
	for _, q := range r.Requests {
		add(h, trace.Request, parley.ExternalEvent{At: q.At, From: q.At, Msg: q.Msg})
	}
	return h
}

// add appends the next event to a history.
func add(h *parley.History, op trace.Op, e parley.ExternalEvent) {
	e.Order = uint64(len(h.Requests) + len(h.Deliveries) + 1)
	trace.Record(h, op, e)
}

// enough is how many findings are kept at most.
const enough = 100

func (x *search) report() Report {
	r := Report{
		Stages: x.entered.Load(), Evaluations: x.evaluated.Load(), Histories: uint64(len(x.verdicts)),
		Runs: x.runs, Broken: x.broken, Took: x.Took(), Judged: x.tally.Judged(),
	}
	for i := range x.found {
		r.Findings = append(r.Findings, x.finding(&x.found[i]))
	}
	switch {
	case len(r.Findings) > 0:
		r.Outcome = explore.Found
	case x.Interrupted():
		r.Outcome = explore.Interrupted
	case x.Limit() != "":
		r.Outcome, r.Limit = explore.BudgetHit, x.Limit()
	}
	return r
}

// finding finds the violation again by a search of its single run.
func (x *search) finding(f *breach) Finding {
	liars := x.replayRoot(f)
	r, err := explore.Search(context.WithoutCancel(x.Context), explore.Options{
		Protocol: x.p, Roots: []explore.Root{liars}, Step: explore.Rounds, Beyond: true, Only: []string{f.property},
		Workers: 1,
	})
	if err != nil || len(r.Findings) == 0 || r.Runs > 1 {
		panic(fmt.Sprintf("split: %s breaks where the last round is split, and not where it is not: %v", f.property, err))
	}
	out := Finding{r.Findings[0], liars}
	out.Run.Root = f.at.root
	return out
}
