package explore

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
	"time"

	"parley"
	"parley/faulty"
	"parley/sim"
	"parley/trace"
)

// Outspoken is faulty.Any without silence: every answer but the last is the host's.
var Outspoken = faulty.Behaviour{Name: "outspoken", Model: faulty.Any.Model,
	Choose: func(s *parley.Step, _ *parley.Turn, _, n int) int { return s.Choose(n - 1) }}

// SplitReport is what a search with its last round split found out.
type SplitReport struct {
	Outcome Outcome
	// Limit says which budget was hit: "memory" or "for".
	Limit string
	// Stages is how many different states there are at the beginning of a round.
	Stages uint64
	// Evaluations is how often the machine of a correct process that may be told different
	// things in the last round was taken through it: loaded, told them, its timer run out.
	Evaluations uint64
	// Histories is how many different ones the properties were asked about.
	Histories uint64
	// Runs is how many adversaries there are, as in [Report], and Broken how many of
	// them break something that counts. Both are capped at the largest number.
	Runs, Broken uint64
	Judged       []Judged // as in [Report]
	Took         time.Duration
	Findings     []SplitFinding
}

// SplitFinding is a run that breaks a property, found again by a search by rounds from
// Liars alone.
type SplitFinding struct {
	Finding
	// Liars begins this run and no other: its faulty processes say what they say in it.
	Liars Root
}

// SplitLast is [Search] by rounds, for synchronous protocols, with the last round split
// by receiver. What the coalition tells a correct process in the last round matters to
// that process alone, since nobody hears from it again. So once everything has been
// tried that the coalition may say in the rounds before, each correct process is taken
// through the last round by itself, once for all that may be said to it; and the
// properties are checked on all combinations of the different ends that these come to.
// The cost of a last round is so the sum over the receivers of what may be said to each,
// and not the product; the verdict is the same.
//
// What faulty processes deliver is in no history here. Refused is what does not fit: a
// process that acts between the ends of rounds, such as one that closes them early, or
// that asks Choose itself, and a last round in which anything but a delivery is asked
// for. Of the options Step is taken to be Rounds, and Order to be of no matter.
func SplitLast(ctx context.Context, o Options) (SplitReport, error) {
	o.Step = Rounds
	if err := o.check(); err != nil {
		return SplitReport{}, err
	}
	if err := o.checkSplit(); err != nil {
		return SplitReport{}, err
	}
	x := &splitter{
		search:   &search{ctx: ctx, o: o, p: o.Protocol, timed: true, delay: within(o.Protocol), signer: sim.Ideal(1)},
		verdicts: make(map[string][]found), numbers: make(map[string]uint32), endings: make([][]event, 1),
	}
	for _, r := range o.Roots {
		x.roots = append(x.roots, newRoot(x.p, r))
		if len(r.Faulty) >= x.p.N {
			return SplitReport{}, fmt.Errorf("no process is correct")
		}
	}
	return x.run()
}

// checkSplit refuses options that have no meaning where the last round is split.
func (o *Options) checkSplit() error {
	m := o.Model
	m.FIFO, m.InTime = false, false // in rounds they are no matter
	var why string
	switch {
	case m != Model{}:
		why = "it knows no fault but those of faulty processes"
	case o.Goal != nil:
		why = "a goal looks at states, and of those the last round has none"
	case o.Depth > 0 || o.States > 0 || o.Order == RandomOrder:
		why = "it is made to the end"
	case o.Unreduced || o.Alike.Len() > 1:
		why = "it is no other reduction, and not without one"
	}
	if why != "" {
		return fmt.Errorf("a search with its last round split: %s", why)
	}
	return nil
}

// splitter is one search with its last round split.
type splitter struct {
	*search
	clock []parley.Tick // when timers of correct processes run out: rounds begin, and the last one ends
	alarm timer         // the one that each of them has
	wait  parley.Tick   // how long in a round the coalition hears the others before it speaks

	stages []*stage
	pieces table[piece]

	mu       sync.Mutex // guards what follows
	err      error
	numbers  map[string]uint32 // of endings
	endings  [][]event
	verdicts map[string][]found // by root, what was delivered, and whether the run is over
	broken   uint64
	found    []splitFound
}

// stage is a state at the beginning of a round: timers have run out, and nothing that was
// sent has arrived.
type stage struct {
	root, round int
	parts       [most]uint32 // pieces, by correct process
	liars       uint32       // the coalition's piece; 0: nobody is faulty
	past        []uint32     // endings, in order of time
	runs        uint64       // that come here

	from *stage
	told [most]*speech // what each correct process was told in the round before
}

// piece is the state of one seat at the beginning of a round.
type piece struct {
	machine []byte
	sends   []message // of this round; of a correct process
	timers  []timer   // of the coalition
}

// key appends what tells stages apart.
func (s *stage) key(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(s.root))
	b = binary.AppendUvarint(b, uint64(s.liars))
	for _, part := range s.parts {
		b = binary.AppendUvarint(b, uint64(part))
	}
	return s.keyOfPast(b)
}

func (s *stage) keyOfPast(b []byte) []byte {
	for _, number := range s.past {
		b = binary.LittleEndian.AppendUint32(b, number)
	}
	return b
}

// deliver adds what a process delivered.
func (s *stage) deliver(end uint32) {
	if end != 0 {
		s.past = append(s.past, end)
	}
}

// piece returns the number of a piece of one process, or one that is told apart by a
// negative number.
func (x *splitter) piece(of int, p piece) uint32 {
	c := component{seat: of, machine: p.machine, timers: p.timers}
	key := c.key(nil)
	for i := range p.sends {
		key = p.sends[i].key(key)
	}
	return x.pieces.number(key, func(at *piece) { *at = p })
}

// correct goes through the correct processes of n.
func (r *root) correct(n int) iter.Seq[parley.ID] { return parley.Everyone(n).Minus(r.faulty).All() }

// times multiplies, and stays at the largest number.
func times(a, b uint64) uint64 {
	over, product := bits.Mul64(a, b)
	if over != 0 {
		return math.MaxUint64
	}
	return product
}

// splitFound is what was found, and how it came about.
type splitFound struct {
	found
	at   *stage
	told [most]*speech // in the last round
}

func (x *splitter) run() (SplitReport, error) {
	defer x.limited()()
	defer x.watch()()
	w := x.teller()
	for number := range x.roots {
		if w.survey(number); x.over() {
			break
		}
	}
	switch {
	case x.err != nil:
		return SplitReport{}, x.err
	case x.over():
		return x.report(), nil
	}
	w = x.teller()
	w.seat()
	for number := range x.roots {
		if s := w.begin(number); x.err == nil {
			x.stages = append(x.stages, s)
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
		return SplitReport{}, x.err
	}
	return x.report(), nil
}

// round goes from the stages of one round to those of the next one.
func (x *splitter) round(w *teller) {
	var list []*stage
	known := make(map[string]*stage)
	var key []byte
	for _, s := range x.stages {
		w.round(s, func(next *stage) {
			key = next.key(key[:0])
			if same := known[string(key)]; same != nil {
				same.runs = plus(same.runs, next.runs)
				return
			}
			known[string(key)] = next
			list = append(list, next)
			x.enter(next)
		})
		if x.over() {
			break
		}
	}
	x.stages = list
}

// enter takes in a new stage. What has been delivered by then is judged for itself.
func (x *splitter) enter(s *stage) {
	x.states.Add(1)
	if len(s.past) > 0 {
		x.settle(s, nil, 0, func(*[most]*speech) {})
	}
}

// last takes all stages through the last round.
func (x *splitter) last() {
	var taken atomic.Int64
	var all sync.WaitGroup
	for range x.o.Workers {
		all.Go(func() {
			w := x.teller()
			w.seat()
			for k := int(taken.Add(1)) - 1; k < len(x.stages) && !x.over(); k = int(taken.Add(1)) - 1 {
				w.last(x.stages[k])
				x.waiting.Store(int64(len(x.stages) - k - 1))
			}
		})
	}
	all.Wait()
}

// fail ends the search: the protocol does not fit.
func (x *splitter) fail(form string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err == nil {
		x.err = fmt.Errorf("the last round of %s cannot be split by receiver: %s", x.p.Name, fmt.Sprintf(form, args...))
	}
	x.stop.Store(true)
}

// ending returns the number of what one process delivered in one step. The key tells it.
func (x *splitter) ending(key []byte, at parley.ID, effects []parley.Effect) uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if number, known := x.numbers[string(key)]; known {
		return number
	}
	var list []event
	for i := range effects {
		if e := &effects[i]; e.Op == parley.OpDeliver {
			list = append(list, event{trace.Deliver, parley.Happening{At: at, From: e.To, Path: e.Path, Msg: e.Msg}})
		}
	}
	number := uint32(len(x.endings))
	x.numbers[string(key)] = number
	x.endings = append(x.endings, list)
	return number
}

// settle judges the history of a stage that is followed by the given endings, or with
// none of them the stage itself. That many runs have it, in which told fills in what was
// said in the last round.
func (x *splitter) settle(s *stage, ends []uint32, runs uint64, told func(*[most]*speech)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.o.All && len(x.found) > 0 {
		return // another thread was faster
	}
	over := byte(0)
	if len(ends) > 0 {
		over = 1
	}
	key := s.keyOfPast(append(binary.AppendUvarint(nil, uint64(s.root)), over))
	for _, number := range ends {
		key = binary.LittleEndian.AppendUint32(key, number)
	}
	list, known := x.verdicts[string(key)]
	if !known {
		list = x.judged(s, ends)
		x.verdicts[string(key)] = list
		for _, f := range list[:min(len(list), enough-len(x.found))] {
			one := splitFound{found: f, at: s}
			told(&one.told)
			x.found = append(x.found, one)
		}
	}
	if len(list) == 0 {
		return
	}
	x.broken = plus(x.broken, runs)
	if !x.o.All {
		x.stop.Store(true)
	}
}

// judged returns which properties that count do not hold.
func (x *splitter) judged(s *stage, ends []uint32) []found {
	r := x.roots[s.root]
	h := &parley.History{N: x.p.N, Faulty: r.faulty, Over: len(ends) > 0}
	for _, q := range x.o.Roots[s.root].Requests {
		add(h, &event{trace.Request, parley.Happening{At: q.At, From: q.At, Msg: q.Msg}})
	}
	for _, number := range slices.Concat(s.past, ends) {
		for i := range x.endings[number] {
			add(h, &x.endings[number][i])
		}
	}
	return x.search.broken(&question{root: uint16(s.root)}, h)
}

func (x *splitter) report() SplitReport {
	r := SplitReport{
		Stages: x.states.Load(), Evaluations: x.moves.Load(), Histories: uint64(len(x.verdicts)),
		Runs: x.runs.Load(), Broken: x.broken, Took: time.Since(x.began),
		Judged: x.judge.judged,
	}
	for i := range x.found {
		r.Findings = append(r.Findings, x.finding(&x.found[i]))
	}
	switch {
	case len(r.Findings) > 0:
		r.Outcome = Found
	case x.ctx.Err() != nil:
		r.Outcome = Interrupted
	case x.limit.Load() != nil:
		r.Outcome, r.Limit = BudgetHit, *x.limit.Load()
	}
	return r
}

// finding looks for what was found by a search of the one run.
func (x *splitter) finding(f *splitFound) SplitFinding {
	liars := x.replayed(f)
	r, err := Search(context.WithoutCancel(x.ctx), Options{
		Protocol: x.p, Roots: []Root{liars}, Step: Rounds, Beyond: true, Only: []string{f.property}, Workers: 1,
	})
	if err != nil || len(r.Findings) == 0 || r.Runs > 1 {
		panic(fmt.Sprintf("explore: %s breaks where the last round is split, and not where it is not: %v", f.property, err))
	}
	out := SplitFinding{r.Findings[0], liars}
	out.Run.Root = f.root
	return out
}
