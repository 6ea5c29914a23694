package reading

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
)

// drawnTree has random values and, for some seeds, random children.
type drawnTree struct {
	n, m int
	seed uint64
}

func (d drawnTree) Root() []parley.ID { return []parley.ID{0} }

func (d drawnTree) Node(path []parley.ID) (in, out []byte, children []parley.ID) {
	h := d.seed
	for _, id := range path[:max(1, len(path)-int(d.seed%2))] {
		h = h*0x9E3779B97F4A7C15 + uint64(id) + 1
	}
	draw := rand.New(rand.NewPCG(h, d.seed))
	v := []byte{'0' + byte(draw.IntN(40)/39)}
	if len(path) <= d.m {
		for id := range parley.ID(d.n) {
			if !slices.Contains(path, id) {
				children = append(children, id)
			}
		}
	}
	return v, v, children
}

// Whatever is collapsed, each node of the tree is accounted for exactly once: it is drawn, or one of several equal
// siblings, or below a drawn node. A node that stands for others has their values.
func TestPlanAccountsForAll(t *testing.T) {
	collapsed := 0
	for seed := range uint64(300) {
		tree := drawnTree{n: 3 + int(seed%7), m: int(seed % 4), seed: seed}
		s := Look(tree, Style{})
		o := TreeOptions{Style: Style{Faulty: parley.SetOf(2)}, MaxNodes: 5 + int(seed%40)}
		root, whole := o.Plan(s, func(*Node) bool { return true })
		if root.Kids != nil && slices.ContainsFunc(root.Kids, func(k *Node) bool { return k.Rest > 0 }) {
			continue
		}
		if !whole {
			collapsed++
		}
		sum, drawn := uint64(0), 0
		var visit func(n *Node)
		visit = func(n *Node) {
			drawn++
			sum += n.Times * (1 + n.Below.Nodes)
			for _, kid := range n.Kids {
				visit(kid)
			}
			stands(t, tree, n)
		}
		visit(root)
		if sum != s.total || whole && drawn != int(sum) {
			t.Fatalf("%+v: %d of %d nodes are accounted for", tree, sum, s.total)
		}
	}
	if collapsed < 50 {
		t.Errorf("only %d trees were collapsed", collapsed)
	}
}

// stands checks a node that stands for its siblings, or for what is below it.
func stands(t *testing.T, tree parley.Tree, n *Node) {
	t.Helper()
	if n.Times > 1 {
		up := n.Path[:len(n.Path)-1]
		_, _, all := tree.Node(up)
		first, last := slices.Index(all, n.Relay()), slices.Index(all, n.Last[len(n.Last)-1])
		if last-first+1 != int(n.Times) {
			t.Fatalf("%v to %v are said to be %d siblings", n.Path, n.Last, n.Times)
		}
		for _, id := range all[first : last+1] {
			in, out, _ := tree.Node(append(up[:len(up):len(up)], id))
			if !Equal(in, n.In) || !Equal(out, n.Out) || (id == 2) != (n.Relay() == 2) {
				t.Fatalf("%v stands for %v %d, which is not alike", n.Path, up, id)
			}
		}
	}
	if n.Below.Alike {
		var visit func(path []parley.ID) uint64
		visit = func(path []parley.ID) uint64 {
			in, out, children := tree.Node(path)
			if !Equal(in, n.In) || !Equal(out, n.Out) {
				t.Fatalf("%v is below %v and not the same", path, n.Path)
			}
			sum := uint64(1)
			for _, child := range children {
				sum += visit(append(path[:len(path):len(path)], child))
			}
			return sum
		}
		if got := visit(n.Path) - 1; got != n.Below.Nodes {
			t.Fatalf("%v: %d nodes below, said to be %d", n.Path, got, n.Below.Nodes)
		}
	}
}

// The survey's counts by value equal those of a full enumeration.
func TestSurvey(t *testing.T) {
	tree := drawnTree{n: 7, m: 3, seed: 5}
	s := Look(tree, Style{})
	counts := make(map[string]uint64)
	var visit func(path []parley.ID)
	visit = func(path []parley.ID) {
		in, _, children := tree.Node(path)
		counts[fmt.Sprint(len(path)-1, string(in))]++
		for _, child := range children {
			visit(append(path[:len(path):len(path)], child))
		}
	}
	visit(tree.Root())
	for r, rank := range s.ranks {
		sum := uint64(0)
		for _, v := range rank.in.values() {
			if counts[fmt.Sprint(r, string(v.v))] != v.n {
				t.Errorf("rank %d: %d × %s, want %d", r, v.n, v.v, counts[fmt.Sprint(r, string(v.v))])
			}
			sum += v.n
		}
		if !rank.counted || sum != rank.nodes {
			t.Errorf("rank %d: %d of %d nodes", r, sum, rank.nodes)
		}
	}
}
