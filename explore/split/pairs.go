package split

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"parley"
	"parley/explore"
	"parley/explore/internal/budget"
)

// Pair is two runs that look the same to one process, which is correct in both runs. In both runs, the process starts
// with the same state and receives the same messages, so it decides the same.
type Pair struct {
	Same       parley.ID
	One, Other *Case
}

// Case is one run of a chain of pairs.
type Case struct {
	Run explore.Run
	// Liars begins only this run: its faulty processes send what they send in it.
	Liars  explore.Root
	Faulty parley.Set
	// Lies are the messages from liars to correct processes that differ from the honest messages, by round, liar and
	// receiver.
	Lies []Lie
	// Forced holds, for each correct process, the decision that a property demands, whatever the others do. A process
	// without an entry is not forced.
	Forced map[parley.ID]Forced
	// Binds is a property that breaks if two processes decide differently in this run. One process is the process to
	// which this run looks like the previous run. The other is the process to which it looks like the next run. Binds
	// is empty in the first run and in the last run.
	Binds string
	// History is the requests and deliveries of the run, with the decisions of the machines.
	History *parley.History
}

// Forced is the only decision that a property allows.
type Forced struct {
	Value []byte
	By    string // the property
}

// Lie is what a liar sends to one correct process in one round, and what it would honestly send. Either may
// be empty.
type Lie struct {
	Round        int
	From, To     parley.ID
	Said, Honest []parley.Outgoing
}

// ErrUnfinished reports that a search for pairs ended before an answer.
var ErrUnfinished = errors.New("the search ended before an answer")

// Indistinguishable searches, in a synchronous protocol with more liars than it tolerates, for a proof that no
// decision rule can help. The proof is a chain of runs. Each run looks the same as the next run to some process that
// is correct in both: the two runs are a pair. In the first run validity forces the process of the first pair to
// decide one value. In the last run validity forces the process of the last pair to decide another value. In each run
// between them, agreement demands that the processes of its two pairs decide the same. So a property breaks in one of
// the runs, whatever the processes decide from what they receive.
//
// With three processes and one liar this is the lecture's proof. In case one, a lieutenant lies. In case two, the
// source lies, and this looks the same to the other lieutenant. The third case is case one again, with the roles of
// the lieutenants exchanged.
//
// The result has the pairs in order: the second run of each pair is the first run of the next pair. The chain has the
// fewest runs that are possible. Of the chains with so few runs, it is one with the fewest liars and choices to lie.
// If there is no chain, both results are nil. Then some decision rule breaks nothing in any run that begins with the
// roots.
//
// Indistinguishable uses the options Protocol, Roots, Memory, For, Progress and States. States bounds the number of
// views. A view is what a process has received up to a round of a run. If a limit is hit or the context ends, the
// error is [ErrUnfinished]. Indistinguishable has the same conditions as [Search]. It also enumerates the lies to
// each process in the last round separately.
func Indistinguishable(ctx context.Context, o explore.Options) ([]Pair, error) {
	views := o.States
	o.States = 0
	x, err := newSearch(ctx, o)
	if err != nil {
		return nil, err
	}
	defer x.Start(x.progress())()
	f := &pairSearch{search: x, known: make(map[string]uint32), most: views, constraints: make(map[pairConstraint]string)}
	if err := f.collectViews(); err != nil {
		return nil, err
	}
	if err := f.findForced(); err != nil {
		return nil, err
	}
	c := f.shortest()
	if err := f.unfinished(); err != nil || c == nil {
		return nil, err
	}
	return f.pairs(ctx, c), nil
}

// pairSearch is one search for pairs.
type pairSearch struct {
	*search
	w           *worker
	most        uint64            // views
	known       map[string]uint32 // views by their contents
	of          []parley.ID       // by view: the process that has it
	key         []byte
	views       []*roundViews     // of the last round
	rules       []forcedDecisions // by root
	values      []string          // forced in some run
	constraints map[pairConstraint]string
}

// roundViews is a state with the views of the correct processes. At the beginning of the last round it also
// has all views that each may have at the end.
type roundViews struct {
	at    *roundState
	views [most]uint32
	cost  int
	ends  []end
}

// end is all views that one correct process may have after the last round, the one with honest liars first.
type end struct {
	of   parley.ID
	seen []runView
}

// runView is a view of a whole run, and the lies to the process in the last round.
type runView struct {
	view uint32
	told *lieMessages
	cost int
}

// dear is the cost of a liar or a lie. It is larger than any process number: these numbers only break ties.
const dear = most

// cost returns how far lies are from the honest messages. Each answer to a Choose costs its number, so
// silence, the last answer, costs more than a message.
func (s *lieMessages) cost() (sum int) {
	for _, c := range s.chosen {
		for _, p := range c.picks {
			sum += dear * p.answer
		}
	}
	return sum
}

// view returns the number of a view, after one more round. The order of messages within a round does not
// matter.
func (f *pairSearch) view(before uint32, id parley.ID, letters []message) uint32 {
	keys := make([][]byte, len(letters))
	for i, q := range letters {
		q.to = id
		keys[i] = q.key(nil)
	}
	slices.SortFunc(keys, bytes.Compare)
	key := binary.AppendUvarint(binary.AppendUvarint(f.key[:0], uint64(before)), uint64(id))
	for _, k := range keys {
		key = parley.AppendBytes(key, k)
	}
	f.key = key
	if f.evaluated.Add(1) == f.most {
		f.End("views")
	}
	number, known := f.known[string(key)]
	if !known {
		f.of = append(f.of, id)
		number = uint32(len(f.of))
		f.known[string(key)] = number
	}
	return number
}

// collectViews goes through all runs up to the last round, and through that round process by process.
func (f *pairSearch) collectViews() error {
	f.w = f.newWorker()
	for number := range f.roots {
		if f.w.learnClock(number); f.Over() {
			break
		}
	}
	switch {
	case f.err != nil:
		return f.err
	case f.Over():
		return f.unfinished()
	}
	f.w = f.newWorker()
	f.w.seat()
	for number := range f.roots {
		f.views = append(f.views, f.first(number))
	}
	for range len(f.clock) - 2 {
		var next []*roundViews
		for _, s := range f.views {
			next = append(next, f.after(s)...)
		}
		f.views = next
	}
	for _, s := range f.views {
		if f.Over() {
			break
		}
		f.last(s)
	}
	if f.err != nil {
		return f.err
	}
	return f.unfinished()
}

// unfinished returns the error of a search that ended before an answer, nil for another one.
func (f *pairSearch) unfinished() error {
	if !f.Over() {
		return nil
	}
	limit := f.Limit()
	if limit == "" || limit == budget.Time {
		limit = "time"
	}
	return fmt.Errorf("%w: out of %s, with %d views taken in", ErrUnfinished, limit, f.evaluated.Load())
}

// first returns the views at the beginning of a root. A process has seen its requests.
func (f *pairSearch) first(number int) *roundViews {
	r := f.roots[number]
	s := &roundViews{at: f.w.begin(number), cost: dear * r.faulty.Len()}
	for id := range r.correct(f.p.N) {
		var asked []message
		for _, m := range r.requests[id] {
			asked = append(asked, message{from: id, msg: m})
		}
		s.views[id] = f.view(0, id, asked)
	}
	return s
}

// after returns the views one round later.
func (f *pairSearch) after(s *roundViews) (list []*roundViews) {
	if f.Over() {
		return nil
	}
	sent := f.w.correctSends(s.at)
	f.w.round(s.at, func(next *roundState) {
		f.entered.Add(1)
		t := &roundViews{at: next, cost: s.cost}
		for id := range f.roots[next.root].correct(f.p.N) {
			t.views[id] = f.view(s.views[id], id, slices.Concat(addressed(sent, id), next.told[id].messages))
			t.cost += next.told[id].cost()
		}
		list = append(list, t)
	})
	return list
}

// last adds what each process may see in the last round.
func (f *pairSearch) last(s *roundViews) {
	f.entered.Add(1)
	sent, talk := f.w.correctSends(s.at), f.w.possibleLies(s.at)
	for id := range f.roots[s.at.root].correct(f.p.N) {
		e := end{of: id}
		for i := range talk.to[id] {
			if f.Over() {
				return
			}
			told := &talk.to[id][i]
			view := f.view(s.views[id], id, slices.Concat(addressed(sent, id), told.messages))
			e.seen = append(e.seen, runView{view, told, told.cost()})
		}
		s.ends = append(s.ends, e)
	}
}
