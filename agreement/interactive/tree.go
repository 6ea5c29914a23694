package interactive

import (
	"parley"
	"parley/lockstep"
	"parley/mux"
)

// forest joins the trees of all agreements of one process into one tree. Below a root
// with an empty path, which has no input and the vector as its output, child i is
// the root of agreement i. So the first process of a path names the agreement, and
// the path names the same node as in that agreement's own tree: what the process
// received from source i is at {i}, what q relayed to it about that at {i, q}.
type forest struct {
	p     *process
	trees []parley.Tree
}

func (p *process) forest(parts []lockstep.Protocol) parley.Tree {
	f := forest{p: p}
	for i, part := range parts {
		f.trees = append(f.trees, part.Tree(mux.Inside(p.agreements, i)))
	}
	return f
}

// Root returns the empty path.
func (f forest) Root() []parley.ID { return nil }

// Node returns the vector, or the node of the agreement that the path begins with.
func (f forest) Node(path []parley.ID) (in, out []byte, children []parley.ID) {
	if len(path) > 0 {
		return f.trees[path[0]].Node(path)
	}
	for i := range f.trees {
		children = append(children, parley.ID(i))
	}
	if f.p.done {
		out = EncodeVector(f.p.vector)
	}
	return nil, out, children
}
