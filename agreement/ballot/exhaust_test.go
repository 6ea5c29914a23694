package ballot_test

import (
	"flag"
	"fmt"
	"math/bits"
	"testing"

	"parley"
	"parley/agreement/ballot"
)

// go test -run Exhaust -ballots 4 goes through one ballot more, which takes minutes.
var ballots = flag.Int("ballots", 3, "ballots in the exhaustive test of three processes")

// seeker is the least machine around an instance: its choice is its own name.
type seeker struct {
	parley.Base
	in      *ballot.Instance
	self    parley.ID
	decided []byte // scratch: in the present clause
}

func newSeeker(self parley.ID, n int) *seeker {
	p := &seeker{self: self}
	p.in = ballot.NewInstance(self, parley.Everyone(n), p)
	return p
}

func (p *seeker) Report() []byte                { return nil }
func (p *seeker) Choose([]ballot.Report) []byte { return []byte{byte('a' + p.self)} }
func (p *seeker) Enough([]ballot.Report) bool   { return true }
func (p *seeker) State(v *parley.Vars)          { p.in.State(v) }
func (p *seeker) Decided(_ *parley.Step, _ parley.ID, v []byte) {
	p.decided = append(p.decided, v...)
}

// quiet is a host of which nothing is asked.
type quiet struct{}

func (quiet) Choose(int) int                        { return 0 }
func (quiet) Sign(parley.ID, []byte) []byte         { return nil }
func (quiet) Verify(parley.ID, []byte, []byte) bool { return false }
func (quiet) Refused(parley.ID, parley.ID, string)  {}

// letter is a message on its way. A decision, and that a ballot came too late, is
// the same whoever says it: those may come from anybody to all.
type letter struct {
	from, to parley.ID
	m        string // in wire form
}

// letters is a set of them, by number. What was sent may be received never, once or
// often, in any order: so the network is the set of all that was ever sent.
type letters [8]uint64

func (l *letters) add(i int) { l[i/64] |= 1 << (i % 64) }

func (l *letters) addAll(other letters) {
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

// world is a state of three processes and the network.
type world struct {
	procs   [3]int32 // saved states, by number
	started int8     // ballots so far
	decided byte     // what was ever decided, 0 if nothing
	sent    letters
}

// What a process may do beside receiving a letter.
const (
	start   = -1
	restart = -2
)

type move struct {
	state int32
	who   int32
	what  int // a letter, start or restart
}

type result struct {
	state   int32
	sent    letters
	decided []byte
	// idle tells that the letter changed nothing, and made nobody answer but that it
	// came too late or was decided long since. What a process promised, the ballot it
	// owns and how far it has come only grow: so the letter is idle for ever.
	idle bool
}

// search goes through all worlds, breadth first.
type search struct {
	t       *testing.T
	limit   int8
	deaf    bool // to refusals, which do no more than raise the number of the next ballot
	states  []string
	numbers map[string]int32
	letters []letter
	known   map[letter]int
	moves   map[move]result
	seen    map[world]bool
	queue   []world
}

func newSearch(t *testing.T, limit int, deaf bool) *search {
	return &search{
		t: t, limit: int8(limit), deaf: deaf, numbers: make(map[string]int32), known: make(map[letter]int),
		moves: make(map[move]result), seen: make(map[world]bool),
	}
}

func (x *search) number(p *seeker) int32 {
	state := parley.Save(p, 0, nil)
	n, ok := x.numbers[string(state)]
	if !ok {
		n = int32(len(x.states))
		x.states = append(x.states, string(state))
		x.numbers[string(state)] = n
	}
	return n
}

// do makes a move, once for all worlds in which it comes up.
func (x *search) do(m move) result {
	r, ok := x.moves[m]
	if ok {
		return r
	}
	self := parley.ID(m.who)
	p := newSeeker(self, 3)
	if !parley.Load(p, 0, []byte(x.states[m.state])) {
		x.t.Fatal("a state does not load")
	}
	s := &parley.Step{Self: self, N: 3, Host: quiet{}}
	switch m.what {
	case start:
		p.in.Propose(s)
	case restart:
		durable := parley.SaveDurable(p, 0, nil)
		p = newSeeker(self, 3)
		if !parley.LoadDurable(p, 0, durable) {
			x.t.Fatal("a durable state does not load")
		}
	default:
		l := x.letters[m.what]
		if l.from == parley.All {
			l.from = (self + 1) % 3
		}
		_, msg, err := parley.Decode([]byte(l.m))
		if err != nil {
			x.t.Fatal(err)
		}
		p.in.Receive(s, l.from, msg)
	}
	r = result{state: x.number(p), decided: p.decided}
	r.idle = r.state == m.state
	for _, e := range s.Effects {
		if e.Op == parley.OpSend {
			late := e.Msg.Kind == ballot.Refuse || e.Msg.Kind == ballot.Decision
			r.idle = r.idle && late
			if x.deaf && e.Msg.Kind == ballot.Refuse {
				continue
			}
			r.sent.add(x.letter(self, e.To, e.Msg, late))
		}
	}
	x.moves[m] = r
	return r
}

func (x *search) letter(from, to parley.ID, m parley.Msg, anybody bool) int {
	if anybody {
		from, to = parley.All, parley.All
	}
	l := letter{from, to, string(parley.Encode(nil, parley.Env{}, m))}
	i, ok := x.known[l]
	if !ok {
		i = len(x.letters)
		x.letters = append(x.letters, l)
		x.known[l] = i
	}
	return i
}

// arrive enters a world, with the letters taken away that are idle for ever.
func (x *search) arrive(w world) {
	sent := w.sent
	for i := range sent.all {
		if to := x.letters[i].to; to != parley.All {
			if r := x.do(move{w.procs[to], int32(to), i}); r.idle {
				w.sent[i/64] &^= 1 << (i % 64)
				w.sent.addAll(r.sent)
			}
		}
	}
	if !x.seen[w] {
		x.seen[w] = true
		x.queue = append(x.queue, w)
	}
}

// step makes a move in a world.
func (x *search) step(w world, who, what int) error {
	r := x.do(move{w.procs[who], int32(who), what})
	w.procs[who] = r.state
	if what == start {
		w.started++
	}
	w.sent.addAll(r.sent)
	for _, v := range r.decided {
		if w.decided != 0 && w.decided != v || v < 'a' || v > 'c' {
			return fmt.Errorf("%q was decided, and %q too", w.decided, v)
		}
		w.decided = v
	}
	x.arrive(w)
	return nil
}

// explore returns how many worlds there are, or what breaks in one of them.
func (x *search) explore() (int, error) {
	var w world
	for id := range w.procs {
		w.procs[id] = x.number(newSeeker(parley.ID(id), 3))
	}
	x.arrive(w)
	for len(x.queue) > 0 {
		w, x.queue = x.queue[0], x.queue[1:]
		for id := range w.procs {
			if err := x.step(w, id, restart); err != nil {
				return 0, err
			}
			if w.started < x.limit {
				if err := x.step(w, id, start); err != nil {
					return 0, err
				}
			}
			for i := range w.sent.all {
				if to := x.letters[i].to; to == parley.ID(id) || to == parley.All {
					if err := x.step(w, id, i); err != nil {
						return 0, err
					}
				}
			}
		}
	}
	return len(x.seen), nil
}

// Agreement and validity hold in every state of three processes that start so many
// ballots between them, whenever they like, with messages lost, doubled and in any
// order, while processes restart at any time with what is durable.
func TestExhaust(t *testing.T) {
	for _, c := range []struct {
		ballots int
		deaf    bool
		states  int
	}{{1, false, 328}, {2, false, 90579}, {2, true, 12914}, {3, true, 279542}, {4, true, 4036854}} {
		if c.ballots > *ballots || testing.Short() && c.ballots > 2 {
			continue
		}
		got, err := newSearch(t, c.ballots, c.deaf).explore()
		if err != nil {
			t.Fatalf("%d ballots: %v", c.ballots, err)
		}
		if got != c.states {
			t.Errorf("%d ballots have %d states, expected %d", c.ballots, got, c.states)
		}
	}
}
