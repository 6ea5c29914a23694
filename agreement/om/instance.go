package om

import (
	"parley"
)

// instance is one OM(k) as seen by one of its lieutenants: what its source sent
// this process, and the OM(k-1) of each other lieutenant.
type instance struct {
	source parley.ID
	held   bool // value is final: it has arrived, or the round is over and it is the default
	value  []byte
	below  []*instance // by source, nil where there is none; empty if k is 0
}

// newProcess makes room for all instances in which the process will take part.
func newProcess(c Config, self parley.ID) *process {
	p := &process{c: c, self: self, path: make([]byte, 0, c.Last())}
	if self == c.Source {
		return p
	}
	count, rank := 1, 1
	for r := range c.Last() {
		rank *= max(c.N-2-r, 0)
		count += rank
	}
	room := make([]instance, 1, count)
	room[0].source = c.Source
	p.top = &room[0]
	without := parley.SetOf(c.Source, self)
	grow(p.top, c.Last(), c.N, parley.Everyone(c.N).Minus(without), &room)
	return p
}

// grow makes the OM(k-1) below an OM(k): others are the processes that take
// part in it besides its source and this process.
func grow(om *instance, k, n int, others parley.Set, room *[]instance) {
	if k == 0 {
		return
	}
	om.below = make([]*instance, n)
	for j := range others.All() {
		*room = append(*room, instance{source: j})
		om.below[j] = &(*room)[len(*room)-1]
	}
	for j := range others.All() {
		rest := others
		rest.Remove(j)
		grow(om.below[j], k-1, n, rest, room)
	}
}

// at returns the instance at the end of a path that begins below this one. It returns nil if there is
// none: a process is on the path twice, is this process or the source, or does not exist.
func at[T byte | parley.ID](om *instance, path []T) *instance {
	for _, j := range path {
		if om == nil || int(j) >= len(om.below) {
			return nil
		}
		om = om.below[j]
	}
	return om
}

// each visits the instances the given number of levels below, with their paths
// from here, in lexicographic order. The path's memory is reused.
func (om *instance) each(levels int, path []byte, visit func(om *instance, path []byte)) {
	if levels == 0 {
		visit(om, path)
		return
	}
	for j, below := range om.below {
		if below != nil {
			below.each(levels-1, append(path, byte(j)), visit)
		}
	}
}

func (om *instance) state(v *parley.Vars) {
	v.Bool("held", &om.held)
	v.Bytes("value", &om.value)
	parley.PerProcess(v, "by", om.below, func(_ parley.ID, below **instance) {
		if *below != nil {
			(*below).state(v)
		}
	})
}

// view shows the instances of a process as a tree. A node is an
// instance, named by the path of sources that leads to it. Its input is the
// value that the process received from the instance's source directly, nil
// while the round is open; its output is what the instance gives the process by
// step 3 (for an OM(0) the same value), nil before the decision. Its children
// are the processes whose OM(k-1) it takes part in in the next round, never itself.
//
// So the votes of an instance are the input of its node, as the process's
// own vote, and the outputs of the children, as their sources' votes. At the root
// they are the vector of the final majority.
type view struct{ p *process }

// Root returns the source.
func (v view) Root() []parley.ID { return []parley.ID{v.p.c.Source} }

// Node returns input, output and children of the instance that the path names.
// For a path in which this process takes no part it returns nothing. The source has its
// value and no tree.
func (v view) Node(path []parley.ID) (in, out []byte, children []parley.ID) {
	p := v.p
	if len(path) == 0 || path[0] != p.c.Source || p.top == nil && len(path) > 1 {
		return nil, nil, nil
	}
	if p.top == nil {
		if p.decided {
			out = nonNil(p.value)
		}
		return nonNil(p.value), out, nil
	}
	om := at(p.top, path[1:])
	if om == nil {
		return nil, nil, nil
	}
	for j, below := range om.below {
		if below != nil {
			children = append(children, parley.ID(j))
		}
	}
	if om.held {
		in = nonNil(om.value)
	}
	if p.decided {
		out = nonNil(p.result(p.c.Last()-(len(path)-1), om))
	}
	return in, out, children
}

// nonNil returns a copy of v that is not nil, even if v is empty.
func nonNil(v []byte) []byte { return append([]byte{}, v...) }
