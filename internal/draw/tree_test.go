package draw_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/om"
	"parley/faulty"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/draw/term"
	"parley/lockstep"
	"parley/sim"
)

// fake is an information tree of n processes with the ranks 0..m and values by a rule. It counts its calls.
type fake struct {
	n, m  int
	value func(path []parley.ID) []byte
	asked *int
}

func newFake(n, m int, value func(path []parley.ID) []byte) fake { return fake{n, m, value, new(int)} }

func (f fake) Root() []parley.ID { return []parley.ID{0} }

func (f fake) Node(path []parley.ID) (in, out []byte, children []parley.ID) {
	*f.asked++
	if len(path) <= f.m {
		for id := range parley.ID(f.n) {
			if !slices.Contains(path, id) {
				children = append(children, id)
			}
		}
	}
	return f.value(path), f.value(path), children
}

func ones([]parley.ID) []byte { return []byte("1") }

func mixed(path []parley.ID) []byte {
	h := 0
	for _, id := range path {
		h = h*31 + int(id) + 1
	}
	return []byte{'0' + byte(h/3%2)}
}

// nodes returns L + L(L-1) + ..., the article's N-1, (N-1)(N-2), ..., and the root.
func nodes(n, m int) (sum int) {
	sum = 1
	for size, k := 1, 1; k <= m; k++ {
		size *= n - k
		sum += size
	}
	return sum
}

// Article, Figure 3: the tree of P2, and that of P6, whose root has another input.
func TestFigure3(t *testing.T) {
	p := figure3()
	var out strings.Builder
	for _, id := range []parley.ID{1, 5} {
		o := reading.TreeOptions{Style: p.style, Title: fmt.Sprintf("Information tree of P%d", id+1)}
		out.WriteString(term.Tree(p.tree(id), o) + "\n")
	}
	golden(t, "figure3.txt", out.String())
}

func TestTreeWidths(t *testing.T) {
	p := random(1)
	var out strings.Builder
	for _, width := range widths {
		p.style.Width = width
		text := term.Tree(p.tree(1), reading.TreeOptions{Style: p.style, MaxNodes: 40})
		lines(t, "tree", text, width)
		fmt.Fprintf(&out, "--- width %d\n%s\n", width, text)
	}
	golden(t, "tree.txt", out.String())
}

// Before the decision, outputs are unknown.
func TestTreeWithoutOutputs(t *testing.T) {
	text := term.Tree(open{newFake(4, 1, ones)}, reading.TreeOptions{})
	if n := strings.Count(text, "out ?"); n != 4 {
		t.Errorf("%d of 4 outputs are open:\n%s", n, text)
	}
	big := term.Tree(open{newFake(9, 3, mixed)}, reading.TreeOptions{MaxNodes: 12})
	if !strings.Contains(big, "rank 3: 336 nodes: in ") || strings.Contains(big, "–") {
		t.Errorf("open outputs are counted:\n%s", big)
	}
	well(t, treeSVG(open{newFake(4, 1, ones)}, reading.TreeOptions{}))
}

// open is a tree with unknown outputs.
type open struct{ fake }

func (o open) Node(path []parley.ID) (in, out []byte, children []parley.ID) {
	in, _, children = o.fake.Node(path)
	return in, nil, children
}

// Equal siblings are one line, and so are subtrees of one value; the ranks are counted.
func TestCollapse(t *testing.T) {
	cases := []struct {
		name string
		tree fake
		o    reading.TreeOptions
	}{
		{"all the same", newFake(9, 3, ones), reading.TreeOptions{MaxNodes: 12}},
		{"one lies", newFake(9, 3, func(path []parley.ID) []byte {
			if path[len(path)-1] == 4 {
				return []byte("0")
			}
			return []byte("1")
		}), reading.TreeOptions{MaxNodes: 12, Style: reading.Style{Faulty: parley.SetOf(4)}}},
		{"mixed", newFake(9, 3, mixed), reading.TreeOptions{MaxNodes: 12}},
		{"many values", newFake(9, 2, func(path []parley.ID) []byte {
			return []byte(fmt.Sprintf("value %d", path[len(path)-1]))
		}), reading.TreeOptions{MaxNodes: 12}},
		{"too many children", newFake(40, 2, mixed), reading.TreeOptions{MaxNodes: 8}},
	}
	var out strings.Builder
	for _, c := range cases {
		text := term.Tree(c.tree, c.o)
		lines(t, c.name, text, 80)
		fmt.Fprintf(&out, "--- %s\n%s\n", c.name, text)
		if !strings.Contains(text, "in all: "+prose.Number(uint64(nodes(c.tree.n, c.tree.m)))+" nodes") {
			t.Errorf("%s: the tree has %d nodes:\n%s", c.name, nodes(c.tree.n, c.tree.m), text)
		}
		if body, _, _ := strings.Cut(text, "\n\n"); strings.Count(body, "\n")+1 > c.o.MaxNodes {
			t.Errorf("%s: %d lines", c.name, strings.Count(body, "\n")+1)
		}
	}
	golden(t, "collapse.txt", out.String())
}

// Trees of ten million nodes and more are drawn after visiting few of their nodes, and counted exactly.
func TestBigTrees(t *testing.T) {
	const budget = 200_000
	for _, c := range []struct {
		n, m  int
		value func([]parley.ID) []byte
		want  []string
	}{
		{19, 6, mixed, []string{
			"in all: 14,472,901 nodes", "rank 6: 13,366,080 nodes, not counted by value", "rank 4: 73,440 nodes: in",
		}},
		{19, 6, ones, []string{"in all: 14,472,901 nodes", "1.3.2 … 1.3.19  17 nodes", "each with 47,296 below"}},
		{200, 3, mixed, []string{"in all: 7,801,796 nodes", "rank 3: 7,762,194 nodes, not counted by value", "… 13 more"}},
		{101, 33, ones, []string{"in all: > 1.8e19 nodes", "rank 2: 9,900 nodes: in", "22 ranks more", "rank 33: > 1.8e19"}},
		{30, 4, mixed, []string{"in all: 592,790 nodes", "rank 4: 570,024 nodes, not counted by value"}},
	} {
		f := newFake(c.n, c.m, c.value)
		text := term.Tree(f, reading.TreeOptions{})
		if *f.asked > budget+20_000 {
			t.Errorf("n=%d m=%d: %d nodes were looked at", c.n, c.m, *f.asked)
		}
		lines(t, "big tree", text, 80)
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("n=%d m=%d: no %q in\n%s", c.n, c.m, want, text)
			}
		}
		*f.asked = 0
		well(t, treeSVG(f, reading.TreeOptions{}))
		if *f.asked > budget+20_000 {
			t.Errorf("n=%d m=%d: %d nodes were looked at for the picture", c.n, c.m, *f.asked)
		}
	}
}

// In a tree of OM(m) the owner's own vote at a node is what it received there itself.
func TestOwnVote(t *testing.T) {
	p := om.New(om.Config{N: 4, M: 1, Default: []byte("0")}, lockstep.Simulated)
	s := sim.Run(sim.Options{Protocol: p, Faulty: map[parley.ID]faulty.Behavior{1: faulty.Flip}, Requests: []sim.Request{
		{At: 0, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("1")}},
	}})
	got := term.Tree(p.Tree(s.Machine(2)), reading.TreeOptions{Style: reading.Style{Faulty: parley.SetOf(1)}, Of: 2})
	want := `1        in 1  out 1
├─ 12 ✗  in 0  out 0
├─ 13    in 1  out 1  (own vote)
└─ 14    in 1  out 1
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
