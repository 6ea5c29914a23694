package forwarding

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"parley"
)

// tree is a tree of n processes: it has the parent of each, and for the root the root itself. A parent is one
// byte, because there are at most 256 processes.
type tree []byte

// heap returns the tree in which process i has the children k*i+1 to k*i+k: a chain for k = 1, a star for k =
// n-1.
func heap(n, k int) tree {
	t := make(tree, n)
	for i := 1; i < n; i++ {
		t[i] = byte((i - 1) / k)
	}
	return t
}

// ofChildren makes a tree from the children of each process.
func ofChildren(n int, root parley.ID, children [][]parley.ID) (tree, error) {
	t := make(tree, n)
	t[root] = byte(root)
	have := parley.SetOf(root)
	for parent, list := range children {
		for _, child := range list {
			if int(child) >= n || parent >= n {
				return nil, fmt.Errorf("process %d is a child of %d, and there are %d processes", child, parent, n)
			}
			if !have.Add(child) {
				return nil, fmt.Errorf("process %d has two parents, or is the root", child)
			}
			t[child] = byte(parent)
		}
	}
	for id := range parley.Everyone(n).Minus(have).All() {
		return nil, fmt.Errorf("process %d is not in the tree", id)
	}
	return t, t.check(root)
}

var errTree = errors.New("no tree of all processes")

// check returns an error unless every process reaches the root by going up.
func (t tree) check(root parley.ID) error {
	n := len(t)
	if int(root) >= n || t.parent(root) != root {
		return errTree
	}
	above := parley.SetOf(root) // known to come to the root
	for id := range parley.ID(n) {
		q := id
		for steps := 0; !above.Has(q); steps++ {
			if q = t.parent(q); int(q) >= n || steps == n {
				return errTree
			}
		}
		for q = id; above.Add(q); {
			q = t.parent(q)
		}
	}
	return nil
}

func (t tree) parent(q parley.ID) parley.ID { return parley.ID(t[q]) }

// of returns the tree of another initiator: it and the root change places.
func (t tree) of(initiator, root parley.ID) tree {
	place := func(q parley.ID) parley.ID {
		switch q {
		case root:
			return initiator
		case initiator:
			return root
		}
		return q
	}
	out := make(tree, len(t))
	for id := range parley.ID(len(t)) {
		out[place(id)] = byte(place(t.parent(id)))
	}
	return out
}

// body encodes what a message carries: up to which number the sender's broadcasts are complete, the tree, and
// the payload.
func body(done uint64, t tree, payload []byte) []byte {
	b := make([]byte, 0, binary.MaxVarintLen64+len(t)+len(payload))
	b = binary.AppendUvarint(b, done)
	b = append(b, t...)
	return append(b, payload...)
}

// read decodes a body.
func read(b []byte, n int) (done uint64, t tree, payload []byte, ok bool) {
	r := parley.Reader{Rest: b}
	if done = r.Number(math.MaxUint64); r.Bad || len(r.Rest) < n {
		return 0, nil, nil, false
	}
	return done, tree(r.Rest[:n]), r.Rest[n:], true
}
