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

// Pair is two runs that look the same to one process, which is correct in both: it
// starts with the same and receives the same, and so it decides the same.
type Pair struct {
	Same       parley.ID
	One, Other *Case
}

// Case is one run of a chain of pairs.
type Case struct {
	Run explore.Run
	// Liars begins this run and no other: its faulty processes say what they say in it.
	Liars  explore.Root
	Faulty parley.Set
	// Lies are what liars tell correct processes and honestly would not, by round, liar
	// and receiver.
	Lies []Lie
	// Forced is what a property makes a correct process decide, whatever the others do.
	// Of those that are not there nothing is demanded.
	Forced map[parley.ID]Forced
	// Binds is the property that breaks if those do not decide the same to whom this run
	// looks like the one before it and like the one after it; empty at the ends.
	Binds string
	// History is what was asked and delivered in the run: what the machines decide.
	History *parley.History
}

// Forced is the only decision that a property allows.
type Forced struct {
	Value []byte
	By    string // the property
}

// Lie is what a liar tells one correct process in one round, and what it honestly
// would: of either there may be nothing.
type Lie struct {
	Round        int
	From, To     parley.ID
	Said, Honest []parley.Outgoing
}

// ErrUnfinished tells that a search for pairs ended before an answer.
var ErrUnfinished = errors.New("the search ended before an answer")

// Indistinguishable looks, in a synchronous protocol with more liars than it tolerates,
// for the argument that no rule of decision can help: a chain of runs, of which each
// looks the same as the next one to some process that is correct in both. In the first
// run validity forces the process of the first pair to decide one value, in the last run
// it forces that of the last pair to decide another. In each run between them agreement
// demands that the two processes which it shares with its neighbours decide the same. So
// whatever the processes make of what they see, a property breaks in one of the runs.
//
// With three processes and one liar this is the lecture's proof: case one, in which a
// lieutenant lies; case two, in which the source does, and which looks the same to the
// other lieutenant; and case one once more, with the parts of the lieutenants exchanged.
//
// The pairs are returned in order: the second run of each is the first run of the next
// one. Of all chains it is a shortest one, and of these one with the fewest liars and
// choices to lie. If there is none, neither pairs nor an error are returned; that is so if
// some rule of decision breaks nothing in any run that begins with the roots.
//
// Of the options Protocol and Roots count, and Memory, For, Progress and States, which is how
// many views are taken in: of a process in a round of a run. If such a limit is hit or
// the context ends, the error is [ErrUnfinished]. As in [Search], whose conditions
// hold, what liars tell one process in the last round is gone through by itself.
func Indistinguishable(ctx context.Context, o explore.Options) ([]Pair, error) {
	views := o.States
	o.States = 0
	x, err := newSearch(ctx, o)
	if err != nil {
		return nil, err
	}
	defer x.Start(x.progress())()
	f := &pairSearch{search: x, known: make(map[string]uint32), most: views, bonds: make(map[pairConstraint]string)}
	if err := f.look(); err != nil {
		return nil, err
	}
	if err := f.demand(); err != nil {
		return nil, err
	}
	c := f.shortest()
	if err := f.unfinished(); err != nil || c == nil {
		return nil, err
	}
	return f.told(ctx, c), nil
}

// pairSearch is one search for pairs.
type pairSearch struct {
	*search
	w      *worker
	most   uint64            // views
	known  map[string]uint32 // views by what is seen
	of     []parley.ID       // whose view it is
	key    []byte
	scenes []*roundViews     // of the last round
	rules  []forcedDecisions // by root
	values []string          // that are forced in some run
	bonds  map[pairConstraint]string
}

// roundViews is a stage, with what each correct process has seen before. At the beginning of
// the last round it also has all that each may have seen in the end.
type roundViews struct {
	at    *roundState
	views [most]uint32
	cost  int
	ends  []end
}

// end is all that one correct process may see in the last round, beginning with what it
// does if liars are honest.
type end struct {
	of   parley.ID
	seen []runView
}

// runView is a view of a whole run, and what the process was told in the last round.
type runView struct {
	view uint32
	told *lieMessages
	cost int
}

// dear is what a liar or a lie costs: more than any number of a process, which tells
// chains apart that cost the same.
const dear = most

// cost is how far what is told is from what is honest. Each answer to a Choose counts by
// its number: silence, the last one, for more than a word.
func (s *lieMessages) cost() (sum int) {
	for _, c := range s.chosen {
		for _, p := range c.picks {
			sum += dear * p.answer
		}
	}
	return sum
}

// view returns the number of what a process has seen, in a round after other rounds. How
// messages are sorted does not matter within a round.
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

// look goes through all runs up to the last round, and through that process by process.
func (f *pairSearch) look() error {
	f.w = f.teller()
	for number := range f.roots {
		if f.w.survey(number); f.Over() {
			break
		}
	}
	switch {
	case f.err != nil:
		return f.err
	case f.Over():
		return f.unfinished()
	}
	f.w = f.teller()
	f.w.seat()
	for number := range f.roots {
		f.scenes = append(f.scenes, f.first(number))
	}
	for range len(f.clock) - 2 {
		var next []*roundViews
		for _, s := range f.scenes {
			next = append(next, f.after(s)...)
		}
		f.scenes = next
	}
	for _, s := range f.scenes {
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

// unfinished is the error of a search that has ended before an answer, if it has.
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

// first is the scene that a root begins with. A process has seen what it was asked.
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

// after returns the scenes one round later.
func (f *pairSearch) after(s *roundViews) (list []*roundViews) {
	if f.Over() {
		return nil
	}
	sent := f.w.sent(s.at)
	f.w.round(s.at, func(next *roundState) {
		f.entered.Add(1)
		t := &roundViews{at: next, cost: s.cost}
		for id := range f.roots[next.root].correct(f.p.N) {
			t.views[id] = f.view(s.views[id], id, slices.Concat(addressed(sent, id), next.told[id].letters))
			t.cost += next.told[id].cost()
		}
		list = append(list, t)
	})
	return list
}

// last takes in what each process may see in the last round.
func (f *pairSearch) last(s *roundViews) {
	f.entered.Add(1)
	sent, talk := f.w.sent(s.at), f.w.talk(s.at)
	for id := range f.roots[s.at.root].correct(f.p.N) {
		e := end{of: id}
		for i := range talk.to[id] {
			if f.Over() {
				return
			}
			told := &talk.to[id][i]
			view := f.view(s.views[id], id, slices.Concat(addressed(sent, id), told.letters))
			e.seen = append(e.seen, runView{view, told, told.cost()})
		}
		s.ends = append(s.ends, e)
	}
}
