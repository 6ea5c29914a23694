package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"connectrpc.com/connect"

	"parley/internal/lists"
)

// Nodes calls a cluster through any of several nodes. If one node cannot be reached or cannot serve, it calls the
// next node. Nodes is safe for concurrent use.
type Nodes struct {
	list []*Client
	last atomic.Int64 // index of the node that answered last
}

// NewNodes returns a client of several nodes of one cluster. It calls the nodes in this order.
func NewNodes(nodes ...*Client) *Nodes { return &Nodes{list: slices.Clone(nodes)} }

// LoadNodes does the same as NewNodes, for nodes at the given addresses. It reads the client's certificate from a
// folder, as [Load] does.
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

// Do calls one node after another until a node answers, beginning with the node that answered last. The function ask
// makes one call, to the node and with the context that it is given. Do calls the next node only if another node may
// serve (see [Elsewhere]), and if the request had no effect at the last node (see [Unknown]). So the request takes
// effect at most once. Do waits for a slow node until ctx ends.
//
// If no node answers, Do returns the errors of all calls, each a [NodeError]. The outcome is Unknown if the outcome
// of the last call is Unknown.
func (n *Nodes) Do(ctx context.Context, ask func(context.Context, *Client) error) error {
	return n.each(ctx, false, ask)
}

// Read does the same as [Nodes.Do], for requests that are safe to repeat, such as reads. It also calls the next node
// if the outcome at a node is unknown, or if a node takes too long (see [Attempt]).
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
		// The call was given up because it took too long. The node's clock may end first.
		late := again && ctx.Err() == nil && (own.Err() != nil || connect.CodeOf(err) == connect.CodeDeadlineExceeded)
		cancel()
		if err == nil {
			n.last.Store(int64(at))
			return nil
		}
		failed = append(failed, &NodeError{n.list[at], err})
		if errors.Is(ctx.Err(), context.Canceled) { // the caller has given up
			break
		}
		if !late && (!Elsewhere(err) || !again && Unknown(err)) {
			break
		}
	}
	return &NodeErrors{failed}
}

// Session returns a session of a table at these nodes (see [NewSession]).
func (n *Nodes) Session(table string) *Session { return NewSession(table, n.list...) }

// Close closes the idle connections of all nodes. The error is always nil.
func (n *Nodes) Close() error {
	for _, c := range n.list {
		_ = c.Close()
	}
	return nil
}

// NodeError is the error of one of several nodes.
type NodeError struct {
	Node *Client
	Err  error
}

func (e *NodeError) Error() string { return fmt.Sprintf("%s: %v", e.Node.Address(), e.Err) }

// Unwrap returns the error of the node.
func (e *NodeError) Unwrap() error { return e.Err }

// NodeErrors are the errors of all nodes that were called, in the order of the calls. The text has one line for each
// error. [Detail] returns the last detail that a node gave.
type NodeErrors struct{ Nodes []*NodeError }

func (e *NodeErrors) Error() string {
	return strings.Join(lists.Of(e.Nodes, (*NodeError).Error), "\n")
}

// Unwrap returns the errors, the last one first, because it ended the call.
func (e *NodeErrors) Unwrap() (errs []error) {
	for _, one := range slices.Backward(e.Nodes) {
		errs = append(errs, one)
	}
	return errs
}
