package ballot_test

import (
	"math/bits"
	"testing"

	"parley"
	"parley/agreement/ballot"
	"parley/explore"
	"parley/parleytest"
)

// TestExplored explores two and three processes that propose different values, with crashes
// in the middle of steps, restarts, losses and timers.
func TestExplored(t *testing.T) {
	system := func(n int, m explore.Model, values string) explore.Options {
		return explore.Options{
			Protocol: ballot.New(ballot.Config{N: n, M: (n - 1) / 2}), Model: m, Roots: parleytest.Proposals(values),
		}
	}
	parleytest.Explored(t, []parleytest.System{
		{Name: "two with a restart", Options: system(2, explore.Model{Crashes: 1, Restarts: 1, Timeouts: 1}, "ab"),
			States: 19856, Ends: 364},
		{Name: "three rivals", Options: system(3, explore.Model{}, "ab"), States: 750, Ends: 2},
		{Name: "three with a crash", Options: system(3, explore.Model{Crashes: 1}, "ab"), States: 2141, Ends: 19},
		{Name: "three with a restart", Options: system(3, explore.Model{Crashes: 1, Restarts: 1}, "a"),
			States: 75740, Ends: 70},
		{Name: "three with a loss", Options: system(3, explore.Model{Losses: 1}, "ab"), States: 1957, Ends: 8},
		{Name: "three with a double", Options: system(3, explore.Model{Doubles: 1}, "ab"), States: 6508, Ends: 4},
		{Name: "three with a timer", Options: system(3, explore.Model{Timeouts: 1}, "a"), States: 69437, Ends: 3},
	})
}

// letter is a message in flight, in wire form. A decision is the same whatever its sender and
// receiver: it may come from any process to all.
type letter struct {
	from, to parley.ID
	m        string
}

// letters are a set of letters, by number.
type letters [8]uint64

func (l *letters) add(other letters) {
	for k := range l {
		l[k] |= other[k]
	}
}

func (l letters) all(yield func(int) bool) {
	for k, word := range l {
		for ; word != 0; word &= word - 1 {
			if !yield(k*64 + bits.TrailingZeros64(word)) {
				return
			}
		}
	}
}

// world is a state of three processes and the network. A message may be received never, once
// or often, in any order: the network is the set of all messages ever sent.
type world struct {
	procs   [3]int // states, by number
	started int    // ballots so far
	decided byte   // any decision so far, 0 if none
	sent    letters
}

// What a process may do besides receiving a letter.
const (
	start   = -1
	restart = -2
)

type move struct {
	state int
	who   parley.ID
	what  int // a letter, start or restart
}

type result struct {
	state   int
	sent    letters
	decided []byte
	// idle means that a letter changed nothing, and that it had no answer except a
	// decision. What a process has promised and its progress only grow: the
	// letter is idle forever.
	idle bool
}

// network explores all worlds, breadth first.
type network struct {
	t       *testing.T
	states  numbered[string]
	letters numbered[letter]
	moves   map[move]result
	seen    map[world]bool
	queue   []world
}

// numbered is a list without duplicates.
type numbered[T comparable] struct {
	list  []T
	known map[T]int
}

// number returns the index of one in the list, to which it appends one if it is new.
func (l *numbered[T]) number(one T) int {
	i, ok := l.known[one]
	if !ok {
		i = len(l.list)
		l.list, l.known[one] = append(l.list, one), i
	}
	return i
}

func (x *network) number(p *seeker) int { return x.states.number(string(parley.Save(p, 0, nil))) }

func (x *network) load(ok bool) {
	if !ok {
		x.t.Fatal("a state does not load")
	}
}

// do makes a transition, once for all worlds in which it occurs. Refusals only raise the
// number of the next ballot, and are not sent.
func (x *network) do(m move) result {
	r, ok := x.moves[m]
	if ok {
		return r
	}
	p, s := newSeeker(m.who, 3), &parley.Step{Self: m.who, N: 3, Host: quiet{}}
	x.load(parley.Load(p, 0, []byte(x.states.list[m.state])))
	switch m.what {
	case start:
		p.in.Propose(s)
	case restart:
		durable := parley.SaveDurable(p, 0, nil)
		p = newSeeker(m.who, 3)
		x.load(parley.LoadDurable(p, 0, durable))
	default:
		l := x.letters.list[m.what]
		if l.from == parley.All {
			l.from = (m.who + 1) % 3
		}
		_, msg, err := parley.Decode([]byte(l.m))
		x.load(err == nil)
		p.in.Receive(s, l.from, msg)
	}
	r = result{state: x.number(p), decided: p.decided}
	r.idle = r.state == m.state
	for _, e := range s.Effects {
		if e.Op != parley.OpSend || e.Msg.Kind == ballot.Refuse {
			continue
		}
		l := letter{m.who, e.To, string(parley.Encode(nil, parley.Env{}, e.Msg))}
		if e.Msg.Kind == ballot.Decision {
			l.from, l.to = parley.All, parley.All
		} else {
			r.idle = false
		}
		i := x.letters.number(l)
		r.sent[i/64] |= 1 << (i % 64)
	}
	x.moves[m] = r
	return r
}

// arrive enters a world, without the letters that are idle forever.
func (x *network) arrive(w world) {
	for i := range w.sent.all {
		if to := x.letters.list[i].to; to != parley.All {
			if r := x.do(move{w.procs[to], to, i}); r.idle {
				w.sent[i/64] &^= 1 << (i % 64)
				w.sent.add(r.sent)
			}
		}
	}
	if !x.seen[w] {
		x.seen[w] = true
		x.queue = append(x.queue, w)
	}
}

// step makes a transition in a world, and checks agreement and validity.
func (x *network) step(w world, who parley.ID, what int) {
	r := x.do(move{w.procs[who], who, what})
	w.procs[who] = r.state
	if what == start {
		w.started++
	}
	w.sent.add(r.sent)
	for _, v := range r.decided {
		if w.decided != 0 && w.decided != v || v < 'a' || v > 'c' {
			x.t.Fatalf("%q was decided, and %q too", w.decided, v)
		}
		w.decided = v
	}
	x.arrive(w)
}

// TestAnyNetwork is the one search of this package besides the explorer, as an independent oracle
// and because its network has no budget: any number of messages is lost, doubled and overtaken, and
// processes restart any number of times with their durable state. Three processes start three ballots
// in all, at any time.
func TestAnyNetwork(t *testing.T) {
	x := &network{t: t, moves: make(map[move]result), seen: make(map[world]bool)}
	x.states.known, x.letters.known = make(map[string]int), make(map[letter]int)
	var w world
	for id := range w.procs {
		w.procs[id] = x.number(newSeeker(parley.ID(id), 3))
	}
	most, want := 3, 279_542
	if testing.Short() {
		most, want = 2, 12_914
	}
	for x.arrive(w); len(x.queue) > 0; {
		w, x.queue = x.queue[0], x.queue[1:]
		for id := range parley.ID(len(w.procs)) {
			x.step(w, id, restart)
			if w.started < most {
				x.step(w, id, start)
			}
			for i := range w.sent.all {
				if to := x.letters.list[i].to; to == id || to == parley.All {
					x.step(w, id, i)
				}
			}
		}
	}
	if len(x.seen) != want {
		t.Errorf("%d ballots have %d states, %d are expected", most, len(x.seen), want)
	}
}
