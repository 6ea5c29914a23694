package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"

	"parley/cluster/api/parleyv1"
)

// QuorumSession is a client of a table of level byzantine that numbers its commands. It sends each command to several
// nodes, under the same number, and accepts an answer that m+1 of them give. The table applies the command at most
// once, and the nodes that applied it give the same answer. The commands of a session run one after another, so
// concurrent calls wait for each other.
//
// A faulty node may send commands in any session. It cannot make the session accept the answer to another command. It
// can use the session up: then the outcome of a command may be Unknown, and the next command opens another session.
type QuorumSession struct {
	q     *Quorum
	table string
	lock  chan struct{} // its holder owns the fields below

	opener int // index of the node that opens the next session
	id     uint64
	number uint64
	last   AskAlike // the last command, if its outcome is unknown
}

// AskAlike sends a command to a node, with its session and number. Calls are concurrent.
type AskAlike = func(context.Context, *Client, *parleyv1.Call) (proto.Message, error)

// Session returns a new session of a table. Before its first command, it opens a session at one node. Then it sends an
// empty command to several nodes, to find out whether that node was honest. An empty command must change nothing.
func (q *Quorum) Session(table string) *QuorumSession {
	return &QuorumSession{q: q, table: table, lock: make(chan struct{}, 1)}
}

// Do applies a command. It retries until m+1 nodes give the same answer, or ctx ends. The answer may be an error of a
// node, such as "no value". After an error whose outcome is Unknown, Again retries the same command.
func (s *QuorumSession) Do(ctx context.Context, ask AskAlike) (proto.Message, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	s.last = nil
	for {
		if s.id == 0 || s.number > 1<<62 { // nodes refuse a number above 1<<63
			if err := s.open(ctx); err != nil {
				return nil, &marked{err, errUnasked}
			}
		}
		s.next()
		answer, err := s.try(ctx, ask)
		if s.id != 0 || Unknown(err) || ctx.Err() != nil { // otherwise it is never applied
			return answer, err
		}
	}
}

// Again retries the last command, with the same function and number, if its outcome is unknown. Every error is
// Unknown, unless it is the answer to the command, or there is no such command.
func (s *QuorumSession) Again(ctx context.Context) (proto.Message, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	switch {
	case s.last == nil:
		return nil, &marked{errNothing, errUnasked}
	case s.id == 0:
		return nil, &marked{errExpired, errLost}
	}
	return s.try(ctx, s.last)
}

func (s *QuorumSession) enter(ctx context.Context) error {
	select {
	case s.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		err := fmt.Errorf("client: another command of the session is in flight: %w", context.Cause(ctx))
		return &marked{err, errUnasked}
	}
}

func (s *QuorumSession) leave() { <-s.lock }

// next selects the number of the next command. A faulty node cannot guess it, and so cannot have a command applied
// under this number before this client sends its own.
func (s *QuorumSession) next() { s.number += 1 + rand.Uint64N(1<<40) }

// open opens a session at one node, and checks it at several. If the node fails or its session does not exist, it tries
// the next one.
func (s *QuorumSession) open(ctx context.Context) (err error) {
	refused := make(map[*Client]bool)
	for {
		c := s.q.nodes[s.opener%len(s.q.nodes)]
		s.opener++
		var r *parleyv1.OpenResponse
		own, cancel := Attempt(ctx, 1)
		r, err = c.Table.Open(own, &parleyv1.OpenRequest{Table: s.table})
		cancel()
		if err == nil {
			s.id, s.number = r.GetSession(), 0
			s.next()
			_, err = s.try(ctx, func(ctx context.Context, c *Client, call *parleyv1.Call) (proto.Message, error) {
				return c.Table.Do(ctx, &parleyv1.DoRequest{Table: s.table, Call: call})
			})
			if s.last = nil; s.id != 0 && (err == nil || Detail(err).GetReason() == "no such command") {
				return nil
			}
			s.id = 0
		} else if _, answered := (reply{err: err}).key(); answered {
			refused[c] = true
		}
		if len(refused) > s.q.m || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// try sends the last command to several nodes, until there is an answer.
func (s *QuorumSession) try(ctx context.Context, ask AskAlike) (proto.Message, error) {
	call := &parleyv1.Call{Session: s.id, Number: s.number}
	answer, err := s.q.agree(ctx, func(ctx context.Context, c *Client) (proto.Message, error) { return ask(ctx, c, call) })
	if _, none := errors.AsType[*NoQuorumError](err); none {
		err = &marked{err, errLost}
	} else if reason := Detail(err).GetReason(); reason == "expired" || reason == "session taken" {
		s.id = 0
	}
	if s.last = nil; Unknown(err) {
		s.last = ask
	}
	return answer, err
}
