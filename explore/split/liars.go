package split

import (
	"slices"
	"sort"

	"parley"
	"parley/explore"
	"parley/explore/internal/timer"
	"parley/faulty"
)

// lieMessages is what the coalition sends to one receiver in one round, and the choices of its members.
type lieMessages struct {
	messages []message
	chosen   []chosen
}

// chosen is the choices of one member in its turn.
type chosen struct {
	by    parley.ID
	picks []choiceAnswer
}

// choiceAnswer is an answer to Choose, and the number of the turn's choice that it belongs to.
type choiceAnswer struct{ choice, answer, of int }

// choiceEnumerator enumerates everything that one member may send to one receiver: it gives one answer
// after another, and then starts the next sequence of answers.
type choiceEnumerator struct {
	picks []choiceAnswer
	asked int
	over  bool
	said  []lieMessages
}

// mostSpeeches is the maximum number of different message lists to one receiver in one round.
const (
	mostSpeeches = 1 << 16
	muchToSay    = "process %d, and those of the coalition before it, may say too much to process %d in one round"
)

// possibleLies is everything that the coalition may send in a round, by receiver.
type possibleLies struct{ to [most][]lieMessages }

// trackChoices returns a behavior that records which turn each of its choices belongs to.
func (w *worker) trackChoices(how faulty.Behavior) faulty.Behavior {
	return wrapChoice(how, func(_ *parley.Step, t *parley.Turn, k int) func() {
		w.asking, w.choice = int(t.Self)*w.x.p.N+int(t.To), k
		return func() { w.asking = -1 }
	})
}

// wrapChoice returns a behavior that calls enter before each choice k of a turn, and leave after it.
func wrapChoice(how faulty.Behavior, enter func(s *parley.Step, t *parley.Turn, k int) (leave func())) faulty.Behavior {
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

// Choose returns the next answer of the current script.
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

// stepLiar makes one step of the coalition, and returns what it sends in it.
func (w *worker) stepLiar(
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

// wakeLiars expires the timers of the coalition that are due, and returns what it sends.
func (w *worker) wakeLiars(r *root, c *faulty.Coalition, now parley.Tick, timers *[]timer.Timer) (sends []message) {
	for len(*timers) > 0 && (*timers)[0].Due <= now && !w.x.Over() {
		t := (*timers)[0]
		*timers = slices.Delete(*timers, 0, 1)
		sends = append(sends, w.stepLiar(r, now, t.Of, timers, func(s *parley.Step) {
			s.Path = t.Path
			c.Timeout(s, t.Number)
		})...)
	}
	return sends
}

// deliverToLiars delivers to the members of the coalition what is for them.
func (w *worker) deliverToLiars(r *root, c *faulty.Coalition, now parley.Tick, timers *[]timer.Timer, sends []message) {
	for id := range r.faulty.All() {
		for _, q := range addressed(sends, id) {
			w.stepLiar(r, now, id, timers, func(s *parley.Step) {
				s.Path, s.Epoch = q.path, q.epoch
				c.Receive(s, q.from, q.msg)
			})
		}
	}
}

// possibleLies returns what the coalition may send in the round that a state begins. A coalition that does
// not overhear the others sends the same in all states in which its own state is the same.
func (w *worker) possibleLies(s *roundState) *possibleLies {
	x, r := w.x, w.x.roots[s.root]
	t := &possibleLies{}
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
	if known := w.lies[s.liars]; known != nil && !overhears {
		return known
	}
	c, p := w.liars[s.root], &x.processes[s.liars]
	before, armed := p.machine, slices.Clone(p.timers)
	if overhears {
		load(c, before)
		w.deliverToLiars(r, c, x.clock[s.round], &armed, w.correctSends(s))
		before = parley.Save(c, 0, nil)
	}
	clear(w.scripts)
	for more := true; more && !x.Over(); {
		load(c, before)
		timers := slices.Clone(armed)
		more = w.record(r, w.wakeLiars(r, c, x.clock[s.round]+x.wait, &timers))
	}
	for to := range r.correct(x.p.N) {
		t.to[to] = []lieMessages{{}}
		for by := range r.faulty.All() {
			said := w.scripts[int(by)*x.p.N+int(to)].said
			if len(t.to[to])*len(said) > mostSpeeches {
				x.fail(muchToSay, by, to)
				return t
			}
			t.to[to] = combineLies(t.to[to], said)
		}
	}
	w.lies[s.liars] = t
	return t
}

// record records what was sent, and advances every script to its next sequence: all of them at once,
// because no turn depends on another. It returns whether any script has more.
func (w *worker) record(r *root, sends []message) (more bool) {
	for by := range r.faulty.All() {
		for to := range r.correct(w.x.p.N) {
			s := &w.scripts[int(by)*w.x.p.N+int(to)]
			if !s.over {
				one := lieMessages{chosen: []chosen{{by, slices.Clone(s.picks[:s.asked])}}}
				for _, q := range sends {
					if q.from == by && q.isFor(to) {
						one.messages = append(one.messages, q)
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

// next advances to the next sequence of answers: the last answer that is not the largest is increased.
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

// combineLies returns every combination of the messages of one member and of another.
func combineLies(one, other []lieMessages) []lieMessages {
	var out []lieMessages
	for _, a := range one {
		for _, b := range other {
			out = append(out, lieMessages{slices.Concat(a.messages, b.messages), slices.Concat(a.chosen, b.chosen)})
		}
	}
	return out
}

// nextCoalition returns the number of the coalition's state at the beginning of the next round. What it
// sends to correct processes does not change it, and to its own members it is honest.
func (w *worker) nextCoalition(s *roundState) uint32 {
	if s.liars == 0 {
		return 0
	}
	x, r := w.x, w.x.roots[s.root]
	c, p := w.liars[s.root], &x.processes[s.liars]
	timers := slices.Clone(p.timers)
	clear(w.scripts)
	load(c, p.machine)
	w.deliverToLiars(r, c, x.clock[s.round], &timers, w.correctSends(s))
	now := x.clock[s.round] + x.wait
	w.deliverToLiars(r, c, now, &timers, w.wakeLiars(r, c, now, &timers))
	if w.wakeLiars(r, c, x.clock[s.round+1], &timers) != nil {
		x.fail("liars speak before they have heard the others")
	}
	return x.numberProcess(-1-s.root, roundProcess{machine: parley.Save(c, 0, nil), timers: timers})
}

// replayRoot returns the root of a run that was found: the liars choose as in it.
func (x *search) replayRoot(f *breach) explore.Root {
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
		out.Faulty[id] = x.replayBehavior(r.Faulty[id], words)
	}
	return out
}

// turnOf identifies the turn of one liar to one receiver.
type turnOf struct {
	round  int
	by, to parley.ID
}

// replayBehavior returns a behavior with given choices, which is honest where they end.
func (x *search) replayBehavior(how faulty.Behavior, words map[turnOf][]choiceAnswer) faulty.Behavior {
	return wrapChoice(how, func(s *parley.Step, t *parley.Turn, k int) func() {
		round := sort.Search(len(x.clock), func(i int) bool { return x.clock[i] > s.Now }) - 1
		host := s.Host
		s.Host = &replayHost{Host: host, choice: k, picks: words[turnOf{round, t.Self, t.To}]}
		return func() { s.Host = host }
	})
}

// replayHost is a host with predetermined answers.
type replayHost struct {
	parley.Host
	choice int
	picks  []choiceAnswer
}

// Choose returns the next answer to the current choice of the turn.
func (r *replayHost) Choose(n int) int {
	for len(r.picks) > 0 {
		p := r.picks[0]
		if r.picks = r.picks[1:]; p.choice == r.choice {
			return min(p.answer, n-1)
		}
	}
	return 0
}
