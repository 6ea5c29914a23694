package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"connectrpc.com/connect"

	"parley/cluster/api/parleyv1"
)

// Subscription reads the deliveries of a group at one node. If this node fails, it continues at the next node, from
// the position that it has reached. It skips no delivery and repeats none. If this is not possible, it fails with
// [ErrCutOff]. A Subscription is not safe for concurrent use.
//
// In groups of levels total, atomic, and Byzantine, positions are the same at all nodes, so a subscription can
// continue at another node. In all other groups, a subscription is cut off when its connection ends. A group in
// memory restarts its positions when all of its members have ended. In a group in memory, a subscription continues
// only if at least one node (m+1 nodes with level Byzantine) has been a member, without a restart, since the
// subscription last connected.
type Subscription struct {
	nodes []*Client
	group string
	begin uint64
	from  uint64 // the next delivery has at least this position
	at    int    // index of the node that delivers, or is called next

	stood  bool              // it was connected once: no delivery from position from on may be missed
	lives  map[string]uint64 // incarnations of the members at that time
	stream *connect.ServerStreamForClient[parleyv1.SubscribeResponse]
	cancel context.CancelCauseFunc
	why    func() error // why the stream was canceled
	short  int          // number of consecutive streams that ended without a message
	ended  error
}

// ErrCutOff is the error of a subscription that cannot continue without a gap: no node retains the next delivery, or
// the position of the next delivery is not known. The text has the reason. [Detail] has the first retained position,
// if a node reported it. You can read the retained deliveries with another subscription.
var ErrCutOff = errors.New("the subscription is cut off")

// Why a subscription is cut off, or a node is given up.
var (
	errOwnOrder = errors.New("each node has its own order of this group: the next position at this node is not known")
	errAnew     = errors.New("the group is in memory, and no node is known to have been a member all the time: " +
		"its positions may have begun again")
	errEnded  error = connect.NewError(connect.CodeUnavailable, errors.New("the node has ended the stream"))
	errSilent error = connect.NewError(connect.CodeUnavailable, fmt.Errorf("the node was silent for %v", silence))
	errLate   error = connect.NewError(connect.CodeUnavailable, errors.New("the node did not begin to deliver in time"))
)

const (
	// silence is how long a node may send nothing; it sends a message every 5 s.
	silence = 15 * time.Second
	// standing is how long a node may take to begin.
	standing = 5 * time.Second
)

// Subscribe returns a subscription to the deliveries of a group from a position on. Position 0 means new deliveries
// only. Subscribe tries one node after another, and returns when a node accepts the subscription. If this node no
// longer retains the position, the error matches ErrCutOff.
//
// If the group's level gives each node its own positions, a position above 1 is a position of the first node.
func (n *Nodes) Subscribe(ctx context.Context, group string, from uint64) (*Subscription, error) {
	if len(n.list) == 0 {
		return nil, &marked{errNobody, errUnasked}
	}
	s := &Subscription{nodes: n.list, group: group, begin: from, from: from}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Node returns the node that delivers, or that is called next.
func (s *Subscription) Node() *Client { return s.nodes[s.at] }

// Position returns the position from which a new subscription continues without a gap.
func (s *Subscription) Position() uint64 { return s.from }

// Next waits for the next delivery until ctx ends, and returns it. If the node fails, Next continues at the next
// node. If no node can deliver now, Next fails with [NodeErrors]. After that, or after the end of ctx, you can call
// Next again without missing a delivery. ErrCutOff is permanent.
func (s *Subscription) Next(ctx context.Context) (*parleyv1.Delivery, error) {
	for {
		switch {
		case s.ended != nil:
			return nil, s.ended
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		if s.stream == nil {
			if err := s.connect(ctx); err != nil {
				return nil, err
			}
		}
		d, err := s.receive(ctx)
		if err == nil {
			s.short = 0
			return d, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		wrong := &NodeErrors{[]*NodeError{s.failure(err)}}
		if !Elsewhere(err) && reasonOf(err) != "slow" { // another node may still retain it
			return nil, wrong
		}
		s.at = (s.at + 1) % len(s.nodes)
		if s.short++; s.short > len(s.nodes) {
			s.short = 0
			return nil, wrong
		}
	}
}

// All iterates over the following deliveries, as Next returns them. The last pair of the loop holds the error of
// Next, and no delivery. Another loop continues at the position where this loop ended.
func (s *Subscription) All(ctx context.Context) iter.Seq2[*parleyv1.Delivery, error] {
	return func(yield func(*parleyv1.Delivery, error) bool) {
		for {
			d, err := s.Next(ctx)
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// errClosed is the error of a closed subscription.
var errClosed = errors.New("client: the subscription is closed")

// Close ends the subscription. The error is always nil.
func (s *Subscription) Close() error {
	s.drop()
	s.ended = cmp.Or(s.ended, errClosed)
	return nil
}

// drop ends the stream.
func (s *Subscription) drop() {
	if s.stream != nil {
		s.cancel(errClosed)
		_ = s.stream.Close() // unread messages are requested again
		s.stream = nil
	}
}

// failure returns the error of the current node. Subscribing changes nothing.
func (s *Subscription) failure(err error) *NodeError {
	return &NodeError{s.Node(), &marked{err, errRead}}
}

// reasonOf returns the reason in a node's detail.
func reasonOf(err error) string { return Detail(err).GetReason() }

// connect subscribes at the current node, or at the next one that can deliver from the position.
func (s *Subscription) connect(ctx context.Context) error {
	var failed []*NodeError
	gone := 0
	for i := range s.nodes {
		err := s.stand(ctx, len(s.nodes)-i)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		failed = append(failed, s.failure(err))
		switch {
		case errors.Is(err, ErrCutOff):
			s.ended = &marked{&NodeErrors{failed}, ErrCutOff}
			return s.ended
		case reasonOf(err) == "gone" && !s.stood:
			return &marked{&NodeErrors{failed}, ErrCutOff}
		case reasonOf(err) == "gone":
			gone++
		case !Elsewhere(err):
			return &NodeErrors{failed}
		}
		s.at = (s.at + 1) % len(s.nodes)
	}
	if gone == len(s.nodes) {
		s.ended = &marked{&NodeErrors{failed}, ErrCutOff}
		return s.ended
	}
	return &NodeErrors{failed}
}

// stand subscribes at the current node. left is how many nodes, including this one, are yet to be tried.
func (s *Subscription) stand(ctx context.Context, left int) error {
	most := standing
	if end, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(end)/time.Duration(left))
	}
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	defer time.AfterFunc(most, func() { cancel(errLate) }).Stop()
	stream, first, err := s.open(own)
	if cause := context.Cause(own); cause != nil {
		err = cause
	}
	if err != nil {
		cancel(err)
		if stream != nil {
			_ = stream.Close()
		}
		return err
	}
	s.stood, s.stream, s.cancel, s.from = true, stream, cancel, first.GetNext()
	s.why = func() error { return context.Cause(own) }
	return nil
}

// open subscribes, and waits for the first message. It reads the incarnations of the members before subscribing
// for the first time, and later after subscribing: a member that was one before the first subscription and still
// is one was a member when the subscription continued.
func (s *Subscription) open(ctx context.Context) (
	stream *connect.ServerStreamForClient[parleyv1.SubscribeResponse], first *parleyv1.SubscribeResponse, err error,
) {
	c := s.Node()
	var status *parleyv1.StatusResponse
	if !s.stood {
		if status, err = c.Admin.Status(ctx, &parleyv1.StatusRequest{}); err != nil {
			return nil, nil, err
		}
	}
	if stream, err = c.Group.Subscribe(ctx, &parleyv1.SubscribeRequest{Group: s.group, From: s.from}); err != nil {
		return nil, nil, err
	}
	if !stream.Receive() {
		return stream, nil, cmp.Or(stream.Err(), errEnded)
	}
	first = stream.Msg()
	if s.stood {
		if status, err = c.Admin.Status(ctx, &parleyv1.StatusRequest{}); err != nil {
			return stream, nil, err
		}
	}
	i := slices.IndexFunc(status.GetGroups(), func(g *parleyv1.GroupStatus) bool { return g.GetName() == s.group })
	if i < 0 {
		return stream, nil, errEnded // the configuration has changed
	}
	group := status.GetGroups()[i]
	lives := livesOf(status, group)
	if err := s.follows(status, group, lives); err != nil {
		return stream, nil, err
	}
	s.lives = lives
	return stream, first, nil
}

// oneOrder are the levels whose positions are the same at all nodes.
var oneOrder = []parleyv1.Level{
	parleyv1.Level_LEVEL_TOTAL, parleyv1.Level_LEVEL_ATOMIC, parleyv1.Level_LEVEL_BYZANTINE,
}

// follows returns an error if the node's deliveries may not be the continuation.
func (s *Subscription) follows(
	status *parleyv1.StatusResponse, group *parleyv1.GroupStatus, lives map[string]uint64,
) error {
	if s.from <= 1 || !s.stood && s.at == 0 {
		return nil // nothing was delivered yet, or the caller knows
	}
	if !slices.Contains(oneOrder, group.GetLevel()) {
		return &marked{errOwnOrder, ErrCutOff}
	}
	lies := group.GetLevel() == parleyv1.Level_LEVEL_BYZANTINE
	if !s.stood || status.GetDurable() {
		return nil
	}
	same, need := uint32(0), uint32(1)
	if lies {
		need = status.GetM() + 1
	}
	for name, life := range lives {
		if s.lives[name] == life {
			same++
		}
	}
	if same < need {
		return &marked{errAnew, ErrCutOff}
	}
	return nil
}

// livesOf returns the incarnations of a group's members, as far as the node knows.
func livesOf(status *parleyv1.StatusResponse, group *parleyv1.GroupStatus) map[string]uint64 {
	lives := make(map[string]uint64)
	views := group.GetLevel() != parleyv1.Level_LEVEL_BYZANTINE
	for _, m := range status.GetMembers() {
		life := m.GetIncarnation()
		if m.GetSelf() {
			life = status.GetIncarnation()
		}
		if life > 0 && (m.GetSelf() || m.GetConnected()) &&
			(!views || slices.Contains(group.GetView().GetMembers(), m.GetName())) {
			lives[m.GetName()] = life
		}
	}
	return lives
}

// receive waits for a delivery of the stream, and drops the stream if it fails.
func (s *Subscription) receive(ctx context.Context) (*parleyv1.Delivery, error) {
	cancel := s.cancel
	stays := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer stays()
	quiet := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer quiet.Stop()
	for s.stream.Receive() {
		m := s.stream.Msg()
		s.from = m.GetNext()
		if d := m.GetDelivery(); d != nil {
			if !stays() {
				s.drop() // ctx ended at the same time
			}
			return d, nil
		}
		s.short = 0
		quiet.Reset(silence)
	}
	err := cmp.Or(s.why(), s.stream.Err(), errEnded)
	s.drop()
	return nil, err
}
