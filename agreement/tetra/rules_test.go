package tetra

import (
	"flag"
	"fmt"
	"testing"
)

var ruleViews = flag.Int("rules.views", 1, "the last view of TestRules; 2 takes about 2 minutes and 2 GB")

// This file is a second statement of the rules of agreement, without messages, processes of this package or timers:
// three correct processes of four, and a faulty one that says to anybody at any time whatever helps. What was said may
// be known or not, so a rule applies when enough processes said so. Leaders may propose different values to different
// processes. Values are a, b and nothing. All reachable states are visited, up to the names of correct processes and
// of a and b.

// member is a correct process in 32 bits: its view, the value of its ECHO, of its READY, and of each vote, 2 bits
// each.
type member uint32

// The values in a member.
const (
	silent = iota // has said none
	nothing
	valueA
	valueB
)

func (p member) view() int            { return int(p & 3) }
func (p member) echo() int            { return int(p >> 2 & 3) }
func (p member) ready() int           { return int(p >> 4 & 3) }
func (p member) vote(view, k int) int { return int(p >> (6 + 2*((view-1)*phases+k-1)) & 3) }

func (p member) voting(view, k, v int) member { return p | member(v)<<(6+2*((view-1)*phases+k-1)) }

// swapped exchanges a and b.
func (p member) swapped() member {
	q := p & 3
	for i := 2; i < 32; i += 2 {
		v := p >> i & 3
		if v >= valueA {
			v ^= valueA ^ valueB
		}
		q |= v << i
	}
	return q
}

// last returns the last view below a view in which the process voted in phase k, and for which value.
func (p member) last(view, k int) (int, int) {
	for y := view - 1; y >= 1; y-- {
		if v := p.vote(y, k); v != silent {
			return y, v
		}
	}
	return 0, silent
}

type members [3]member

func (s members) sorted() members {
	for _, pair := range [][2]int{{0, 1}, {1, 2}, {0, 1}} {
		if s[pair[0]] > s[pair[1]] {
			s[pair[0]], s[pair[1]] = s[pair[1]], s[pair[0]]
		}
	}
	return s
}

// canonical is the representative of all states that differ only by names.
func (s members) canonical() members {
	a, b := s.sorted(), members{s[0].swapped(), s[1].swapped(), s[2].swapped()}.sorted()
	for i := range a {
		if a[i] != b[i] {
			if b[i] < a[i] {
				return b
			}
			break
		}
	}
	return a
}

func (s members) count(f func(p member) bool) (n int) {
	for _, p := range s {
		if f(p) {
			n++
		}
	}
	return n
}

// rules are the rules with at most one fault, which the search must find.
type rules struct {
	views int
	fault string
}

// need returns how many of the correct processes make a quorum with the help of the faulty one.
func (r rules) need() int {
	if r.fault == "quorum one too small" {
		return 1
	}
	return 2
}

// safe is Instance's rule. The numbers say how many correct processes are necessary: for a quorum, for m+1 processes,
// and for a quorum of claims about view 0. The faulty process adds one to each, or not.
func (r rules) safe(s members, v, view, a, b, quorum, some, claims int) bool {
	switch r.fault {
	case "everything is safe":
		return true
	case "one claim too few":
		claims--
	}
	entered := func(p member) bool { return p.view() >= view }
	if s.count(func(p member) bool { y, _ := p.last(view, a); return entered(p) && y == 0 }) >= quorum {
		claim := func(p member) bool {
			return p.view() >= 1 && (p.ready() == silent || p.ready() == v || r.fault == "claims are empty")
		}
		if r.fault == "no claims about view 0" || s.count(claim) >= claims {
			return true
		}
	}
	for r2 := 1; r2 < view; r2++ {
		fit := func(p member) bool {
			y, w := p.last(view, a)
			return entered(p) && (y < r2 || y == r2 && w == v)
		}
		backs := func(p member) bool {
			for y := r2; y < view; y++ {
				if p.vote(y, b) == v {
					return entered(p)
				}
			}
			return false
		}
		if s.count(fit) >= quorum && (r.fault == "no votes of phase b" || s.count(backs) >= some) {
			return true
		}
	}
	return false
}

// decided returns the values that some process may decide on, as bits.
func (r rules) decided(s members) (set int) {
	for v := nothing; v <= valueB; v++ {
		if v != nothing && s.count(func(p member) bool { return p.ready() == v }) >= r.need() {
			set |= 1 << v
		}
		for view := 1; view <= r.views; view++ {
			if s.count(func(p member) bool { return p.vote(view, phases) == v }) >= r.need() {
				set |= 1 << v
			}
		}
	}
	return set
}

// next calls yield for each state after one step of one process.
func (r rules) next(s members, yield func(members)) {
	for i, p := range s {
		with := func(p member) { t := s; t[i] = p; yield(t) }
		view := p.view()
		for later := view + 1; later <= r.views; later++ {
			with(p&^3 | member(later))
		}
		if view == 0 {
			r.first(s, p, with)
			continue
		}
		for v := nothing; v <= valueB; v++ {
			vouched := v == nothing || s.count(func(p member) bool { return p.echo() == v }) >= 1
			if p.vote(view, 1) == silent && vouched && r.safe(s, v, view, 4, 1, r.need(), 1, r.need()) {
				with(p.voting(view, 1, v))
			}
			for k := 2; k <= phases; k++ {
				before := k - 1
				if r.fault == "phase 4 follows phase 1" && k == phases {
					before = 1
				}
				votes := s.count(func(p member) bool { return p.vote(view, before) == v })
				if p.vote(view, k) == silent && votes >= r.need() {
					with(p.voting(view, k, v))
				}
			}
		}
	}
}

// first are the steps of a process in view 0.
func (r rules) first(s members, p member, with func(member)) {
	for v := valueA; v <= valueB; v++ {
		if p.echo() == silent {
			with(p | member(v)<<2)
		}
		echoed := s.count(func(p member) bool { return p.echo() == v }) >= r.need()
		if p.ready() == silent && (echoed || s.count(func(p member) bool { return p.ready() == v }) >= 1) {
			with(p | member(v)<<4)
		}
	}
}

// stuck returns why the last view might not decide: all correct processes are in it, none has voted, and a correct
// leader can choose no value without the help of the faulty process, or with its help a value that the others do not
// accept without it.
func (r rules) stuck(s members) string {
	view := r.views
	for _, p := range s {
		if p.view() != view || p.vote(view, 1) != silent {
			return ""
		}
	}
	a, b := 3, 2
	if r.fault == "leader counts phases 4 and 1" {
		a, b = 4, 1
	}
	some := false
	for v := nothing; v <= valueB; v++ {
		if v != nothing && s.count(func(p member) bool { return p.echo() == v }) == 0 {
			continue
		}
		some = some || r.safe(s, v, view, 3, 2, 3, 2, 3)
		if r.safe(s, v, view, a, b, 2, 1, 2) && !r.safe(s, v, view, 4, 1, 3, 2, 2) {
			return fmt.Sprintf("a leader may choose value %d, which the others do not accept", v)
		}
	}
	if !some {
		return "a leader may find nothing to choose"
	}
	return ""
}

// visited is a set of states, by open addressing: a map would take four times the memory.
type visited struct {
	slots []members
	n     int
}

func (x *visited) add(s members) bool {
	if 4*(x.n+1) > 3*len(x.slots) {
		old := x.slots
		x.slots, x.n = make([]members, max(1<<16, 2*len(old))), 0
		for _, s := range old {
			if s != (members{}) {
				x.insert(s)
			}
		}
	}
	s[0] |= 1 << 31 // so that no state is zero
	return x.insert(s)
}

func (x *visited) insert(s members) bool {
	h := uint64(s[0])*0x9E3779B97F4A7C15 ^ uint64(s[1])*0xC2B2AE3D27D4EB4F ^ uint64(s[2])*0x165667B19E3779F9
	h = (h ^ h>>29) * 0xBF58476D1CE4E5B9
	mask := uint64(len(x.slots) - 1)
	for i := (h ^ h>>32) & mask; ; i = (i + 1) & mask {
		switch x.slots[i] {
		case members{}:
			x.slots[i] = s
			x.n++
			return true
		case s:
			return false
		}
	}
}

// search visits all states, depth first. It returns what breaks, or "", and the numbers of states and transitions.
func (r rules) search() (broken string, states, moves int) {
	var seen visited
	stack := []members{{}}
	seen.add(stack[0])
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if d := r.decided(s); d&(d-1) != 0 {
			return "agreement", seen.n, moves
		}
		if why := r.stuck(s); why != "" {
			return why, seen.n, moves
		}
		r.next(s, func(t members) {
			moves++
			if t = t.canonical(); seen.add(t) {
				stack = append(stack, t)
			}
		})
	}
	return "", seen.n, moves
}

// The rules keep agreement in every reachable state of views 0 and 1 (and 2, with -rules.views 2), and in every state
// in which all correct processes are in the last view a correct leader can succeed.
func TestRules(t *testing.T) {
	want := map[int][2]int{1: {22_202, 84_403}, 2: {44_150_154, 169_524_176}}[*ruleViews]
	broken, states, moves := rules{views: *ruleViews}.search()
	if broken != "" || states != want[0] || moves != want[1] {
		t.Errorf("views 0 to %d: %q; %d states, %d transitions, %v are expected", *ruleViews, broken, states, moves,
			want)
	}
}

// The search finds faults in the rules, so it can find faults.
func TestRulesFindFaults(t *testing.T) {
	for fault, agreement := range map[string]bool{
		"quorum one too small": true, "everything is safe": true, "no claims about view 0": true,
		"claims are empty": true, "one claim too few": true, "no votes of phase b": true,
		"phase 4 follows phase 1": false, "leader counts phases 4 and 1": false,
	} {
		broken, states, _ := rules{views: 2, fault: fault}.search()
		if broken == "" || (broken == "agreement") != agreement {
			t.Errorf("%s: %q after %d states", fault, broken, states)
		}
	}
}
