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

// Subscription reads what a group delivers: at one node, and if that ends at the next one, from the position where
// the last one ended. It misses no delivery and repeats none, or fails with [ErrCutOff]. It is for one goroutine.
//
// It can be resumed in groups of levels total, atomic and Byzantine, where positions are the same at all nodes. In
// the others it is cut off when its connection ends. Groups that are in memory, as those of level Byzantine always
// are, count positions anew when all of their members have ended: a subscription goes on in such a group only if a
// node (m+1 with Byzantine) that was a member when it last began at a node is one yet, without a restart.
type Subscription struct {
	nodes []*Client
	group string
	begin uint64
	from  uint64 // what follows has this position at least
	at    int    // the node that delivers, or is to

	stood  bool              // it has been at a node: all from from on has to come
	lives  map[string]uint64 // which incarnations were members then
	stream *connect.ServerStreamForClient[parleyv1.SubscribeResponse]
	cancel context.CancelCauseFunc
	why    func() error // it was canceled
	short  int          // so many streams after another ended before they brought anything
	ended  error
}

// ErrCutOff is the error of a subscription that cannot be continued without a gap: what comes next is not kept any
// more at any node, or is not known. The reason is in its text; [Detail] has the first position that is kept, if a
// node has told it. What is there can be read by another subscription.
var ErrCutOff = errors.New("the subscription is cut off")

// Why a subscription is cut off, or a node is left.
var (
	errOwnOrder = errors.New("the group has another order at each node: where to go on at this one is not known")
	errAnew     = errors.New("the group is in memory, and no node is known to have been in it all the time: " +
		"its positions may have begun anew")
	errEnded  error = connect.NewError(connect.CodeUnavailable, errors.New("the node has ended the stream"))
	errSilent error = connect.NewError(connect.CodeUnavailable, fmt.Errorf("the node has said nothing for %v", silence))
	errLate   error = connect.NewError(connect.CodeUnavailable, errors.New("the node did not begin to deliver in time"))
)

const (
	// silence is how long a node may say nothing: it does every 5 s.
	silence = 15 * time.Second
	// standing is how long a node may take to begin.
	standing = 5 * time.Second
)

// Subscribe reads the deliveries of a group from a position on, 0 for those from now on, and returns when a node
// takes the subscription: the first, or the next one that can. A position that that node does not keep any more is
// ErrCutOff.
//
// A position above 1 means one of the first node, if the group's level gives each node its own.
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

// Node is the node that delivers, or that is called next.
func (s *Subscription) Node() *Client { return s.nodes[s.at] }

// Position is where the subscription goes on: to subscribe from it misses nothing.
func (s *Subscription) Position() uint64 { return s.from }

// Next returns the next delivery, and waits for it until ctx ends. If the node ends it goes on at the next one. If
// no node can deliver now it fails with [NodeErrors]; after that, as after the end of ctx, it can be called again,
// and misses nothing. After ErrCutOff it fails for good.
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
		if !Elsewhere(err) && reasonOf(err) != "slow" { // what is no longer kept there may be at another node
			return nil, wrong
		}
		s.at = (s.at + 1) % len(s.nodes)
		if s.short++; s.short > len(s.nodes) {
			s.short = 0
			return nil, wrong
		}
	}
}

// All returns the deliveries that follow, each of them as Next does. The last pair has the error that Next failed
// with, and no delivery. Another loop continues there.
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

// errClosed is the error of a subscription that was closed.
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
		_ = s.stream.Close() // what it still had is asked for again
		s.stream = nil
	}
}

// failure is what went wrong at the node whose turn it is. To subscribe changes nothing.
func (s *Subscription) failure(err error) *NodeError {
	return &NodeError{s.Node(), &marked{err, errRead}}
}

// reasonOf is the reason that a node gave.
func reasonOf(err error) string { return Detail(err).GetReason() }

// connect has a node deliver from the position on: the one whose turn it is, or the next one that can.
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

// stand subscribes at the node whose turn it is. So many nodes, it among them, have yet to be tried.
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

// open subscribes, and waits for the first message. Which incarnations are members is asked before it the first
// time, so that all from there on is of theirs, and then behind it: one that was a member before, and is yet, was
// one when the subscription went on.
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
		return stream, nil, errEnded // another configuration than a moment ago
	}
	group := status.GetGroups()[i]
	lives := livesOf(status, group)
	if err := s.follows(status, group, lives); err != nil {
		return stream, nil, err
	}
	s.lives = lives
	return stream, first, nil
}

// oneOrder are the levels with positions that are the same at all nodes.
var oneOrder = []parleyv1.Level{
	parleyv1.Level_LEVEL_TOTAL, parleyv1.Level_LEVEL_ATOMIC, parleyv1.Level_LEVEL_BYZANTINE,
}

// follows tells why what the node delivers may not be what follows.
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
	if !s.stood || status.GetDurable() && !lies {
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

// livesOf is which incarnations are members of a group, as far as the node knows.
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

// receive waits for a delivery of the stream, which is gone if it fails.
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
				s.drop() // ctx ended as it came
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
