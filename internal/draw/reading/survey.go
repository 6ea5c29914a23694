package reading

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/prose"
)

// walkBudget is the maximum number of nodes of an information tree that are visited to count values. Small systems
// already have trees with millions of nodes.
const walkBudget = 200_000

// Survey is a summary of a whole tree.
type Survey struct {
	t      parley.Tree
	ranks  []rank
	total  uint64
	Dotted bool // some process has a number of two digits, so that paths need dots
	// alike has, by path, whether all nodes below an inner node have that node's input and output. It is nil if the
	// tree is too big to know.
	alike map[string]Beneath
}

// Beneath is a summary of the nodes below one node.
type Beneath struct {
	Nodes uint64
	Alike bool // they equal the node itself
}

// rank is one rank of a tree.
type rank struct {
	nodes   uint64
	counted bool // by value; otherwise nodes follows from the numbers of children
	in, out tally
}

// tally counts values. The key "" means no value, and the keys of values have a byte in front.
type tally map[string]uint64

func (t tally) add(v []byte) {
	key := ""
	if v != nil {
		key = "=" + string(v)
	}
	t[key]++
}

// value is one value of a tally with its count.
type value struct {
	v []byte
	n uint64
}

// values returns the values, most frequent first.
func (t tally) values() []value {
	var out []value
	for key, n := range t { // order: sorted below
		v := value{n: n}
		if key != "" {
			v.v = []byte(key[1:])
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b value) int { return cmp.Or(cmp.Compare(b.n, a.n), bytes.Compare(a.v, b.v)) })
	return out
}

// Look surveys a tree. It counts the ranks by value as far as the budget allows. The sizes of deeper ranks are
// products of the numbers of children along one path.
func Look(t parley.Tree, s Style) *Survey {
	all := &Survey{t: t}
	path := slices.Clone(t.Root())
	for size := uint64(1); ; {
		all.ranks = append(all.ranks, rank{nodes: size, in: tally{}, out: tally{}})
		all.total = Sum(all.total, size)
		_, _, children := t.Node(path)
		all.Dotted = all.Dotted || s.Dotted(path) || s.Dotted(children)
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
		if sum = Sum(sum, all.ranks[i].nodes); sum > walkBudget {
			break
		}
		last = i
	}
	if all.total <= walkBudget {
		all.alike = make(map[string]Beneath)
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

// Sum adds counts. It returns the largest number if the sum is too large to count.
func Sum(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

// walk counts the values at and below a node, down to the last rank to count.
func (s *Survey) walk(path []parley.ID, depth, last int) (in, out []byte, below Beneath) {
	in, out, children := s.t.Node(path)
	if depth == len(s.ranks) { // deeper than the first path
		s.ranks = append(s.ranks, rank{counted: true, in: tally{}, out: tally{}})
	}
	s.ranks[depth].in.add(in)
	s.ranks[depth].out.add(out)
	if s.alike != nil {
		s.ranks[depth].nodes++
		s.total++
	} else if depth == last {
		return in, out, Beneath{}
	}
	below.Alike = true
	for _, child := range children {
		i, o, under := s.walk(append(path[:len(path):len(path)], child), depth+1, last)
		below.Nodes += 1 + under.Nodes
		below.Alike = below.Alike && under.Alike && Equal(i, in) && Equal(o, out)
	}
	if s.alike != nil && len(children) > 0 {
		s.alike[key(path)] = below
	}
	return in, out, below
}

// Equal reports whether two values are equal. No value differs from an empty one.
func Equal(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func key(path []parley.ID) string {
	var b strings.Builder
	for _, id := range path {
		b.WriteByte(byte(id >> 8))
		b.WriteByte(byte(id))
	}
	return b.String()
}

// below returns a summary of the nodes below a node at the given rank.
func (s *Survey) below(path []parley.ID, depth int) Beneath {
	if s.alike != nil {
		return s.alike[key(path)]
	}
	sum, size := uint64(0), s.ranks[depth].nodes
	for _, r := range s.ranks[min(depth+1, len(s.ranks)):] {
		if r.nodes == math.MaxUint64 {
			return Beneath{Nodes: math.MaxUint64}
		}
		sum = Sum(sum, r.nodes/max(size, 1))
	}
	return Beneath{Nodes: sum}
}

// upTo returns the number of nodes in the ranks before the given one.
func (s *Survey) upTo(depth int) uint64 {
	sum := uint64(0)
	for _, r := range s.ranks[:depth] {
		sum = Sum(sum, r.nodes)
	}
	return sum
}

// Summary describes the ranks of a tree with their counts, by value if those are known. Of many ranks it lists the
// first ones and the last.
func (s *Survey) Summary(style Style) []string {
	const most = 12
	var out []string
	for i, r := range s.ranks {
		if left := len(s.ranks) - most; left > 0 && i >= most-1 && i < len(s.ranks)-1 {
			if i == most-1 {
				out = append(out, prose.Count(uint64(left), "rank more", "ranks more"))
			}
			continue
		}
		line := fmt.Sprintf("rank %d: %s", i, prose.Count(r.nodes, "node", "nodes"))
		switch {
		case !r.counted:
			line += ", not counted by value"
		case len(r.out) == 1 && r.out[""] > 0:
			line += ": in " + r.in.words(style)
		case maps.Equal(r.in, r.out):
			line += ": in and out " + r.in.words(style)
		default:
			line += ": in " + r.in.words(style) + "; out " + r.out.words(style)
		}
		out = append(out, line)
	}
	return append(out, "in all: "+prose.Count(s.total, "node", "nodes"))
}

// words formats counts such as 1,204 × 1, 512 × 0. Rare values are counted together.
func (t tally) words(s Style) string {
	const most = 4
	var parts []string
	others := uint64(0)
	all := t.values()
	for i, v := range all {
		if i >= most && len(all) > most+1 {
			others += v.n
			continue
		}
		parts = append(parts, prose.Number(v.n)+" × "+s.Value(v.v))
	}
	if others > 0 {
		values := prose.Count(uint64(len(all)-most), "other value", "other values")
		parts = append(parts, values+" "+prose.Number(others)+" times")
	}
	return strings.Join(parts, ", ")
}
