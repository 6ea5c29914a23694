package interactive

import (
	"parley"
	"parley/lockstep"
	"parley/mux"
)

// forest is the trees of all agreements of one process as one tree. Below a root
// with an empty path, which has no input and the vector for its output, child i is
// the root of agreement i. So a path says by its first process which agreement it
// is of, and names the same node as in that agreement's own tree: what the process
// heard of source i stands at {i}, what q relayed to it of that at {i, q}.
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

// Root is the empty path.
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
