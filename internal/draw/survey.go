package draw

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
	"strings"

	"parley"
)

// walkBudget is how many nodes of an information tree are looked at to count
// values. Trees have millions of nodes soon.
const walkBudget = 200_000

// survey is what is known of a whole tree.
type survey struct {
	t      parley.Tree
	ranks  []rank
	total  uint64
	dotted bool
	// alike tells of inner nodes, by path, whether all nodes beneath have the
	// node's own input and output. It is nil if the tree is too big to know.
	alike map[string]beneath
}

type beneath struct {
	nodes uint64
	alike bool
}

// rank is one rank of a tree.
type rank struct {
	nodes   uint64
	counted bool // by value; else nodes follows from the number of children
	in, out tally
}

// tally counts values; "" stands for no value, and values have a byte in front.
type tally map[string]uint64

func (t tally) add(v []byte) {
	key := ""
	if v != nil {
		key = "=" + string(v)
	}
	t[key]++
}

func (t tally) equal(u tally) bool {
	if len(t) != len(u) {
		return false
	}
	for v, n := range t { // order: only whether all are equal is told
		if u[v] != n {
			return false
		}
	}
	return true
}

// value is one value of a tally and how often it is there.
type value struct {
	v []byte
	n uint64
}

// values returns the values, the most frequent first.
func (t tally) values() []value {
	var out []value
	for key, n := range t { // order: sorted below
		v := value{n: n}
		if key != "" {
			v.v = []byte(key[1:])
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b value) int {
		switch {
		case a.n > b.n:
			return -1
		case a.n < b.n:
			return 1
		}
		return bytes.Compare(a.v, b.v)
	})
	return out
}

// look surveys a tree. The ranks are counted by value as far as the budget goes;
// beyond it their sizes are products of the numbers of children along one path.
func look(t parley.Tree, s Style) survey {
	var all survey
	all.t = t
	path := slices.Clone(t.Root())
	for size := uint64(1); ; {
		all.ranks = append(all.ranks, rank{nodes: size, in: tally{}, out: tally{}})
		all.total = saturated(all.total, size)
		_, _, children := t.Node(path)
		all.dotted = all.dotted || s.dotted(path) || s.dotted(children)
		if len(children) == 0 {
			break
		}
		if over, product := bits.Mul64(size, uint64(len(children))); over == 0 {
			size = product
		} else {
			size = math.MaxUint64
		}
		path = append(path, children[0])
	}
	last, sum := 0, uint64(0)
	for i := range all.ranks {
		if sum = saturated(sum, all.ranks[i].nodes); sum > walkBudget {
			break
		}
		last = i
	}
	if all.total <= walkBudget {
		all.alike = make(map[string]beneath)
		all.total = 0
		for i := range all.ranks {
			all.ranks[i].nodes = 0
		}
	}
	for i := range last + 1 {
		all.ranks[i].counted = true
	}
	all.walk(slices.Clone(t.Root()), 0, last)
	return all
}

func saturated(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

// walk counts what is at and beneath a node, down to the last rank that is to be
// counted.
func (s *survey) walk(path []parley.ID, depth, last int) (in, out []byte, below beneath) {
	in, out, children := s.t.Node(path)
	if depth == len(s.ranks) { // deeper than the first path was
		s.ranks = append(s.ranks, rank{counted: true, in: tally{}, out: tally{}})
	}
	s.ranks[depth].in.add(in)
	s.ranks[depth].out.add(out)
	if s.alike != nil {
		s.ranks[depth].nodes++
		s.total++
	} else if depth == last {
		return in, out, beneath{}
	}
	below.alike = true
	for _, child := range children {
		i, o, under := s.walk(append(path[:len(path):len(path)], child), depth+1, last)
		below.nodes += 1 + under.nodes
		below.alike = below.alike && under.alike && equal(i, in) && equal(o, out)
	}
	if s.alike != nil && len(children) > 0 {
		s.alike[key(path)] = below
	}
	return in, out, below
}

// equal tells values apart, and no value from an empty one.
func equal(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func key(path []parley.ID) string {
	var b strings.Builder
	for _, id := range path {
		b.WriteByte(byte(id >> 8))
		b.WriteByte(byte(id))
	}
	return b.String()
}

// below is how many nodes there are beneath a node of a rank.
func (s *survey) below(path []parley.ID, depth int) beneath {
	if s.alike != nil {
		return s.alike[key(path)]
	}
	sum, size := uint64(0), s.ranks[depth].nodes
	for _, r := range s.ranks[min(depth+1, len(s.ranks)):] {
		if r.nodes == math.MaxUint64 {
			return beneath{nodes: math.MaxUint64}
		}
		sum = saturated(sum, r.nodes/max(size, 1))
	}
	return beneath{nodes: sum}
}

// upTo is how many nodes the ranks before the given one have.
func (s *survey) upTo(depth int) uint64 {
	sum := uint64(0)
	for _, r := range s.ranks[:depth] {
		sum = saturated(sum, r.nodes)
	}
	return sum
}
