package client

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"parley/internal/lists"
)

// Nodes calls a cluster by any of some of its nodes: where one cannot be reached or cannot serve, the next one is
// called. It is safe for concurrent use.
type Nodes struct {
	list []*Client
	last atomic.Int64 // the one that answered last
}

// NewNodes returns a client of some nodes of one cluster. They are called in this order.
func NewNodes(nodes ...*Client) *Nodes { return &Nodes{list: slices.Clone(nodes)} }

// LoadNodes is NewNodes of nodes at some addresses, with the certificate of a name in a folder, see [Load].
func LoadNodes(dir, name string, addresses ...string) (*Nodes, error) {
	n := new(Nodes)
	for _, address := range addresses {
		c, err := Load(dir, name, address)
		if err != nil {
			return nil, err
		}
		n.list = append(n.list, c)
	}
	return n, nil
}

// Do calls one node after the other, beginning with the one that answered last, until one answers. ask makes the
// call, with the context and at the node that it is given. The next node is called only if another one may serve
// (see [Elsewhere]) and nothing was done at this one (see [Unknown]): what is asked for is done at most once. If a
// node's answer takes long it is waited for until ctx ends.
//
// If no node answers, Do returns the errors of all that were called, each a [NodeError]. The outcome is Unknown if it
// is so at the last of them.
func (n *Nodes) Do(ctx context.Context, ask func(context.Context, *Client) error) error {
	return n.each(ctx, false, ask)
}

// Read is [Nodes.Do] for what may be done twice, as to read: the next node is called also if the outcome at this one
// is unknown, or if it takes longer than its part of the time (see [Attempt]).
func (n *Nodes) Read(ctx context.Context, ask func(context.Context, *Client) error) error {
	return n.each(ctx, true, ask)
}

func (n *Nodes) each(ctx context.Context, again bool, ask func(context.Context, *Client) error) error {
	if len(n.list) == 0 {
		return &marked{errNobody, errUnasked}
	}
	var failed []*NodeError
	first := int(n.last.Load())
	for i := range n.list {
		at := (first + i) % len(n.list)
		own, cancel := ctx, context.CancelFunc(func() {})
		if again {
			own, cancel = Attempt(ctx, len(n.list)-i)
		}
		err := ask(own, n.list[at])
		late := own.Err() != nil && ctx.Err() == nil // the node was left because it took too long
		cancel()
		if err == nil {
			n.last.Store(int64(at))
			return nil
		}
		failed = append(failed, &NodeError{n.list[at], err})
		if !late && (!Elsewhere(err) || !again && Unknown(err)) {
			break
		}
	}
	return &NodeErrors{failed}
}

// Session returns a session of a table at these nodes, see [NewSession].
func (n *Nodes) Session(table string) *Session { return NewSession(table, n.list...) }

// Close ends the connections of all nodes that nothing uses. The error is always nil.
func (n *Nodes) Close() error {
	for _, c := range n.list {
		_ = c.Close()
	}
	return nil
}

// NodeError is what went wrong at one of several nodes.
type NodeError struct {
	Node *Client
	Err  error
}

func (e *NodeError) Error() string { return fmt.Sprintf("%s: %v", e.Node.Address(), e.Err) }

// Unwrap returns what went wrong.
func (e *NodeError) Unwrap() error { return e.Err }

// NodeErrors is what went wrong at each of the nodes that were called, in the order of the calls. Its text has a
// line for each. [Detail] of it is the detail of the last node that gave one.
type NodeErrors struct{ Nodes []*NodeError }

func (e *NodeErrors) Error() string {
	return strings.Join(lists.Of(e.Nodes, (*NodeError).Error), "\n")
}

// Unwrap returns the errors, the last one first: it is the one that ended the call.
func (e *NodeErrors) Unwrap() (errs []error) {
	for _, one := range slices.Backward(e.Nodes) {
		errs = append(errs, one)
	}
	return errs
}
