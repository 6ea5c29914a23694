package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"parley/internal/lists"
)

// Quorum calls several nodes, of which at most m may be faulty, and accepts only an answer that m+1 of them give: at
// least one of them is correct. Use it for tables of level byzantine. Quorum is safe for concurrent use.
type Quorum struct {
	nodes []*Client
	m     int
}

// NewQuorum returns a client of nodes of which at most m may be faulty. With all nodes of the cluster, calls succeed
// despite m faulty nodes. The name of each node must be in its Config: otherwise one faulty node could answer at the
// addresses of others.
func NewQuorum(m int, nodes ...*Client) (*Quorum, error) {
	names := make(map[string]bool)
	for _, c := range nodes {
		if c.node == "" || names[c.node] {
			return nil, fmt.Errorf("client: node %q at %s: each node needs a name of its own in Config.Node", c.node,
				c.address)
		}
		names[c.node] = true
	}
	if m < 0 || len(nodes) <= 2*m {
		return nil, fmt.Errorf("client: m = %d faulty nodes of %d: allowed are 0 to %d, because m+1 correct nodes must "+
			"answer", m, len(nodes), max(0, len(nodes)-1)/2)
	}
	return &Quorum{slices.Clone(nodes), m}, nil
}

// NoQuorumError is the error of a call to which too few nodes gave the same answer.
type NoQuorumError struct {
	Need      int          // how many nodes had to give the same answer
	Different int          // how many different answers there were
	Nodes     []*NodeError // the last errors of the nodes without an answer
	cause     error
}

func (e *NoQuorumError) Error() string {
	text := fmt.Sprintf("client: no %d nodes gave the same answer; there were %d different answers", e.Need, e.Different)
	return strings.Join(append([]string{text}, lists.Of(e.Nodes, (*NodeError).Error)...), "\n")
}

// Unwrap returns why the call ended, and no error of a node: a faulty node may have made it up.
func (e *NoQuorumError) Unwrap() error { return e.cause }

// Agreed calls nodes of q until m+1 of them give the same answer, and returns it. The function ask makes one call, to
// the node and with the context that it is given. Nodes may be called more than once, and concurrently, so the call
// must change nothing. An error that a node gives as its answer, such as "no value", counts like an answer. The
// function ask must remove from an answer what differs between correct nodes, such as the position of a Query.
//
// If the table is of level byzantine and at most m nodes are faulty, the answer is linearizable: a correct node has
// given it, and its call took effect between the beginning and the end of Agreed. If others change the same key all the
// time, the nodes may give different answers. Agreed then asks again until ctx ends.
func Agreed[T proto.Message](ctx context.Context, q *Quorum, ask func(context.Context, *Client) (T, error)) (T, error) {
	answer, err := q.agree(ctx, func(ctx context.Context, c *Client) (proto.Message, error) { return ask(ctx, c) })
	if _, none := errors.AsType[*NoQuorumError](err); none {
		err = &marked{err, errUnasked} // whatever the nodes did, it had no effect
	}
	t, _ := answer.(T)
	return t, err
}

// reply is what a node answered.
type reply struct {
	node   *Client
	answer proto.Message
	err    error
}

// key returns a text that is the same for the same answers, and false if the reply is no answer.
func (r reply) key() (key string, ok bool) {
	if r.err == nil {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(r.answer)
		return "answer " + string(b), err == nil
	}
	d, code := Detail(r.err), connect.CodeOf(r.err)
	local := d.GetReason() == "busy" || d.GetReason() == "refused" // says nothing about the other nodes
	if d == nil || local || Elsewhere(r.err) || code == connect.CodeDeadlineExceeded || code == connect.CodeCanceled {
		return "", false
	}
	return fmt.Sprintf("error %v %v %s", code, d.GetOutcome(), d.GetReason()), true
}

// count holds which nodes gave which answers during one call of Quorum.
type count struct {
	need   int
	by     map[string]map[*Client]bool // by key
	failed map[*Client]error           // the last errors that are no answers
}

// add counts a reply, and reports whether enough nodes gave this answer.
func (x *count) add(r reply) bool {
	key, ok := r.key()
	if !ok {
		x.failed[r.node] = r.err
		return false
	}
	delete(x.failed, r.node)
	if x.by[key] == nil {
		x.by[key] = make(map[*Client]bool)
	}
	x.by[key][r.node] = true
	return len(x.by[key]) >= x.need
}

// err returns the error of a call that got no quorum.
func (x *count) err(nodes []*Client, cause error) error {
	e := &NoQuorumError{Need: x.need, Different: len(x.by), cause: cause}
	for _, c := range nodes {
		if err := x.failed[c]; err != nil {
			e.Nodes = append(e.Nodes, &NodeError{c, err})
		}
	}
	return e
}

// hedge is how long 2m+1 nodes may take to answer before all others are called, too.
const hedge = 200 * time.Millisecond

// agree calls nodes until m+1 of them give the same answer, or ctx ends. What a node answered in an earlier round
// counts: it was an answer during this call, too.
func (q *Quorum) agree(ctx context.Context, ask func(context.Context, *Client) (proto.Message, error)) (
	proto.Message, error,
) {
	x := &count{need: q.m + 1, by: make(map[string]map[*Client]bool), failed: make(map[*Client]error)}
	for {
		if r, ok := q.round(ctx, x, ask); ok {
			return r.answer, r.err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, x.err(q.nodes, context.Cause(ctx))
		}
	}
}

// round calls each node at most once, and returns an answer that enough nodes gave. It first calls 2m+1 nodes. It calls
// another one for each that failed or gave another answer, and all after some time. When it has an answer, it ends the
// other calls.
func (q *Quorum) round(ctx context.Context, x *count, ask func(context.Context, *Client) (proto.Message, error)) (
	reply, bool,
) {
	ctx, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	defer func() {
		cancel()
		calls.Wait()
	}()
	replies, called := make(chan reply, len(q.nodes)), 0
	call := func(count int) {
		for ; count > 0 && called < len(q.nodes); count-- {
			c := q.nodes[called]
			called++
			calls.Go(func() {
				own, cancel := Attempt(ctx, 1)
				defer cancel()
				answer, err := ask(own, c)
				replies <- reply{c, answer, err}
			})
		}
	}
	call(2*q.m + 1)
	late := time.NewTimer(hedge)
	defer late.Stop()
	for done := 0; done < called; {
		select {
		case r := <-replies:
			done++
			if x.add(r) {
				return r, true
			}
			if _, answered := r.key(); !answered || len(x.by) > 1 {
				call(1)
			}
		case <-late.C:
			call(len(q.nodes))
		}
	}
	return reply{}, false
}

// Close closes the idle connections of all nodes.
func (q *Quorum) Close() error {
	for _, c := range q.nodes {
		_ = c.Close()
	}
	return nil
}
