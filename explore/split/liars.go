package split

import (
	"slices"
	"sort"

	"parley"
	"parley/explore"
	"parley/explore/internal/timer"
	"parley/faulty"
)

// lieMessages is what the coalition tells one receiver in one round, and what its members
// chose for that.
type lieMessages struct {
	letters []message
	chosen  []chosen
}

// chosen is what one member chose in its turn.
type chosen struct {
	by    parley.ID
	picks []choiceAnswer
}

// choiceAnswer is an answer to Choose, and which of the choices of the turn it was for.
type choiceAnswer struct{ choice, answer, of int }

// choiceEnumerator goes through all that one member may say to one receiver: it is asked for one
// answer after another, and then for the next sequence of them.
type choiceEnumerator struct {
	picks []choiceAnswer
	asked int
	over  bool
	said  []lieMessages
}

// mostSpeeches is how many things may be said to one receiver in one round.
const (
	mostSpeeches = 1 << 16
	muchToSay    = "process %d, and those of the coalition before it, may say too much to process %d in one round"
)

// talk is all that the coalition may say in a round, by receiver.
type talk struct{ to [most][]lieMessages }

// watched is a behaviour whose choices are known to be those of a turn.
func (w *worker) watched(how faulty.Behavior) faulty.Behavior {
	return within(how, func(_ *parley.Step, t *parley.Turn, k int) func() {
		w.asking, w.choice = int(t.Self)*w.x.p.N+int(t.To), k
		return func() { w.asking = -1 }
	})
}

// within is a behaviour that enters something at each choice k of a turn, and leaves it afterwards.
func within(how faulty.Behavior, enter func(s *parley.Step, t *parley.Turn, k int) (leave func())) faulty.Behavior {
	out := how
	if how.Choose != nil {
		out.Choose = func(s *parley.Step, t *parley.Turn, k, n int) int {
			defer enter(s, t, k)()
			return how.Choose(s, t, k, n)
		}
	}
	if how.Tell != nil {
		out.Tell = func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
			defer enter(s, t, 0)()
			return how.Tell(s, t)
		}
	}
	return out
}

// Choose gives the next answer of the script that is followed.
func (w *worker) Choose(n int) int {
	if w.asking < 0 {
		w.x.fail("a process chooses, and not what it says in a liar's turn")
		return 0
	}
	s := &w.scripts[w.asking]
	if s.asked == len(s.picks) {
		s.picks = append(s.picks, choiceAnswer{w.choice, 0, n})
	}
	s.asked++
	if p := s.picks[s.asked-1]; p.of == n && p.choice == w.choice {
		return p.answer
	}
	panic("split: a liar chooses otherwise after the same choices")
}

// Refused counts nothing.
func (w *worker) Refused(_, _ parley.ID, _ string) {}

// liar makes one step of the coalition, and returns what it sends in it.
func (w *worker) liar(
	r *root, now parley.Tick, id parley.ID, timers *[]timer.Timer, clause func(*parley.Step),
) (sends []message) {
	s := w.at(id, r.faulty, now)
	clause(s)
	for i := range s.Effects {
		switch e := &s.Effects[i]; e.Op {
		case parley.OpSend:
			sends = append(sends, message{from: e.From, to: e.To, epoch: e.Epoch, path: e.Path, msg: e.Msg})
		case parley.OpSetTimer:
			*timers = timer.Set(*timers, timer.Timer{Of: e.From, Number: e.Timer, Path: e.Path, Due: now + e.After})
		case parley.OpStopTimer:
			*timers = timer.Stop(*timers, timer.Timer{Of: e.From, Number: e.Timer, Path: e.Path})
		case parley.OpKeep, parley.OpDeliver, parley.OpIndicate:
		default:
			w.x.fail("process %d asks for more than to send, to deliver and to be woken", e.From)
		}
	}
	return sends
}

// wake lets the timers of the coalition run out that are due, and returns what it sends.
func (w *worker) wake(r *root, c *faulty.Coalition, now parley.Tick, timers *[]timer.Timer) (sends []message) {
	for len(*timers) > 0 && (*timers)[0].Due <= now && !w.x.Over() {
		t := (*timers)[0]
		*timers = slices.Delete(*timers, 0, 1)
		sends = append(sends, w.liar(r, now, t.Of, timers, func(s *parley.Step) {
			s.Path = t.Path
			c.Timeout(s, t.Number)
		})...)
	}
	return sends
}

// listens lets the members of the coalition receive what is for them.
func (w *worker) listens(r *root, c *faulty.Coalition, now parley.Tick, timers *[]timer.Timer, sends []message) {
	for id := range r.faulty.All() {
		for _, q := range addressed(sends, id) {
			w.liar(r, now, id, timers, func(s *parley.Step) {
				s.Path, s.Epoch = q.path, q.epoch
				c.Receive(s, q.from, q.msg)
			})
		}
	}
}

// talk returns what the coalition may say in the round that a stage begins. If it does
// not overhear the others it says what it would say anyway.
func (w *worker) talk(s *roundState) *talk {
	x, r := w.x, w.x.roots[s.root]
	t := &talk{}
	if s.liars == 0 {
		for id := range r.correct(x.p.N) {
			t.to[id] = []lieMessages{{}}
		}
		return t
	}
	overhears := x.p.Overhears
	for id := range r.faulty.All() {
		overhears = overhears || r.Faulty[id].Overhears
	}
	if known := w.talks[s.liars]; known != nil && !overhears {
		return known
	}
	c, p := w.liars[s.root], &x.pieces[s.liars]
	before, armed := p.machine, slices.Clone(p.timers)
	if overhears {
		load(c, before)
		w.listens(r, c, x.clock[s.round], &armed, w.sent(s))
		before = parley.Save(c, 0, nil)
	}
	clear(w.scripts)
	for more := true; more && !x.Over(); {
		load(c, before)
		timers := slices.Clone(armed)
		more = w.record(r, w.wake(r, c, x.clock[s.round]+x.wait, &timers))
	}
	for to := range r.correct(x.p.N) {
		t.to[to] = []lieMessages{{}}
		for by := range r.faulty.All() {
			said := w.scripts[int(by)*x.p.N+int(to)].said
			if len(t.to[to])*len(said) > mostSpeeches {
				x.fail(muchToSay, by, to)
				return t
			}
			t.to[to] = together(t.to[to], said)
		}
	}
	w.talks[s.liars] = t
	return t
}

// record writes down what was said, and has every script go on to what is said next: all
// of them at once, for no turn depends on another. It tells whether there is more.
func (w *worker) record(r *root, sends []message) (more bool) {
	for by := range r.faulty.All() {
		for to := range r.correct(w.x.p.N) {
			s := &w.scripts[int(by)*w.x.p.N+int(to)]
			if !s.over {
				one := lieMessages{chosen: []chosen{{by, slices.Clone(s.picks[:s.asked])}}}
				for _, q := range sends {
					if q.from == by && q.isFor(to) {
						one.letters = append(one.letters, q)
					}
				}
				s.said = append(s.said, one)
				w.x.said.Add(1)
				if s.next(); len(s.said) > mostSpeeches {
					w.x.fail(muchToSay, by, to)
				}
				more = more || !s.over
			} else {
				s.picks = s.picks[:0]
			}
			s.asked = 0
		}
	}
	return more
}

// next goes on to the next sequence of answers: the last one that can be another is.
func (s *choiceEnumerator) next() {
	last := s.asked - 1
	for last >= 0 && s.picks[last].answer == s.picks[last].of-1 {
		last--
	}
	if s.picks = s.picks[:last+1]; last < 0 {
		s.over = true
		return
	}
	s.picks[last].answer++
}

// together is what is said if one member says one thing, and another one another.
func together(one, other []lieMessages) []lieMessages {
	var out []lieMessages
	for _, a := range one {
		for _, b := range other {
			out = append(out, lieMessages{slices.Concat(a.letters, b.letters), slices.Concat(a.chosen, b.chosen)})
		}
	}
	return out
}

// goesOn returns the coalition's piece at the beginning of the next round. What it says to
// correct processes makes no difference to it, and to its own it is honest.
func (w *worker) goesOn(s *roundState) uint32 {
	if s.liars == 0 {
		return 0
	}
	x, r := w.x, w.x.roots[s.root]
	c, p := w.liars[s.root], &x.pieces[s.liars]
	timers := slices.Clone(p.timers)
	clear(w.scripts)
	load(c, p.machine)
	w.listens(r, c, x.clock[s.round], &timers, w.sent(s))
	now := x.clock[s.round] + x.wait
	w.listens(r, c, now, &timers, w.wake(r, c, now, &timers))
	if w.wake(r, c, x.clock[s.round+1], &timers) != nil {
		x.fail("liars speak before they have heard the others")
	}
	return x.piece(-1-s.root, roundProcess{machine: parley.Save(c, 0, nil), timers: timers})
}

// replayed is the root of a run that was found: liars recite what they chose in it.
func (x *search) replayed(f *breach) explore.Root {
	words := make(map[turnOf][]choiceAnswer)
	tell := func(round int, told *[most]*lieMessages) {
		for to, said := range told {
			if said == nil {
				continue
			}
			for _, c := range said.chosen {
				words[turnOf{round, c.by, parley.ID(to)}] = c.picks
			}
		}
	}
	tell(f.at.round, &f.told)
	for s := f.at; s.from != nil; s = s.from {
		tell(s.from.round, &s.told)
	}
	r := x.roots[f.at.root]
	out := explore.Root{Faulty: make(map[parley.ID]faulty.Behavior), Requests: r.Requests}
	for id := range r.faulty.All() {
		out.Faulty[id] = x.recited(r.Faulty[id], words)
	}
	return out
}

// turnOf names the turn of one liar to one receiver.
type turnOf struct {
	round  int
	by, to parley.ID
}

// recited is a behaviour with its choices made: as in the words, and honest where they end.
func (x *search) recited(how faulty.Behavior, words map[turnOf][]choiceAnswer) faulty.Behavior {
	return within(how, func(s *parley.Step, t *parley.Turn, k int) func() {
		round := sort.Search(len(x.clock), func(i int) bool { return x.clock[i] > s.Now }) - 1
		host := s.Host
		s.Host = &replayHost{Host: host, choice: k, picks: words[turnOf{round, t.Self, t.To}]}
		return func() { s.Host = host }
	})
}

// replayHost is a host whose answers are known beforehand.
type replayHost struct {
	parley.Host
	choice int
	picks  []choiceAnswer
}

// Choose gives the next answer to the choice of the turn that is made.
func (r *replayHost) Choose(n int) int {
	for len(r.picks) > 0 {
		p := r.picks[0]
		if r.picks = r.picks[1:]; p.choice == r.choice {
			return min(p.answer, n-1)
		}
	}
	return 0
}
