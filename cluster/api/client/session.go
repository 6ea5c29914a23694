package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"parley/cluster/api/parleyv1"
)

// Session is a client of a table that numbers its commands. If a command gets no answer, the session retries it at
// one node after another. Each command is applied at most once. The commands of a session run one after another, so
// concurrent calls wait for each other.
type Session struct {
	nodes []*Client
	table string
	lock  chan struct{} // its holder owns the fields below

	at     int // index of the node that is called
	id     uint64
	number uint64
	last   Ask // the last command, if its outcome is unknown
}

// Ask sends a command to a node, with its session and number.
type Ask = func(context.Context, *Client, *parleyv1.Call) error

// NewSession returns a session with a table through any of the given nodes.
func NewSession(table string, nodes ...*Client) *Session {
	return &Session{nodes: nodes, table: table, lock: make(chan struct{}, 1)}
}

// The errors of a session that called no node.
var (
	errNobody  = errors.New("client: there is no node to ask")
	errNothing = errors.New("client: there is no command whose outcome is unknown")
	errExpired = errors.New("client: the session has expired")
)

// Do applies a command. The function ask sends the command to a node, with the session, number, and context that it
// is given. Do retries until it has an answer, or an error that a retry cannot change, or until ctx ends.
//
// After an error whose outcome is Unknown, Again retries the same command. The next Do gives the command up, so its
// outcome stays unknown. When the next command has been applied, the old command can no longer be applied.
func (s *Session) Do(ctx context.Context, ask Ask) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	s.last = nil
	if s.id == 0 {
		err := s.each(ctx, false, func(ctx context.Context, c *Client) error {
			r, err := c.Table.Open(ctx, &parleyv1.OpenRequest{Table: s.table})
			s.id, s.number = r.GetSession(), 0
			return err
		})
		if err != nil {
			return &marked{err, errUnasked}
		}
	}
	s.number++
	return s.try(ctx, false, ask)
}

// Again retries the last command, with the same function and number, if its outcome is unknown. The command is
// applied at most once, however often it is retried. In two cases, Again calls no node, and its error is not Unknown:
// there is no such command, or ctx ends while another command of the session is in flight. Every other error is
// Unknown, unless it is the answer to the command. If the session has expired, the outcome stays unknown.
func (s *Session) Again(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	switch {
	case s.last == nil:
		return &marked{errNothing, errUnasked}
	case s.id == 0:
		return &marked{errExpired, errLost}
	}
	return s.try(ctx, true, s.last)
}

// enter waits until no other command is in flight.
func (s *Session) enter(ctx context.Context) error {
	if len(s.nodes) == 0 {
		return &marked{errNobody, errUnasked}
	}
	select {
	case s.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		err := fmt.Errorf("client: another command of the session is in flight: %w", context.Cause(ctx))
		return &marked{err, errUnasked}
	}
}

func (s *Session) leave() { <-s.lock }

// try retries the last command. unknown says that its outcome is already unknown.
func (s *Session) try(ctx context.Context, unknown bool, ask Ask) error {
	err := s.each(ctx, unknown, func(ctx context.Context, c *Client) error {
		err := ask(ctx, c, &parleyv1.Call{Session: s.id, Number: s.number})
		if d := Detail(err); d.GetReason() == "expired" {
			s.id = 0
		}
		return err
	})
	if s.last = nil; Unknown(err) {
		s.last = ask
	}
	return err
}

// final are the reasons of failures that are answers to the command itself.
var final = map[string]bool{"no value": true, "no number": true, "too large": true, "no such command": true}

// each calls one node after another, as long as another one may be able to serve. It gives up a node that does
// not answer in its part of the time.
func (s *Session) each(ctx context.Context, unknown bool, ask func(context.Context, *Client) error) error {
	for tries := 1; ; tries++ {
		own, cancel := Attempt(ctx, len(s.nodes)-(tries-1)%len(s.nodes))
		err := ask(own, s.nodes[s.at])
		late := own.Err() != nil || connect.CodeOf(err) == connect.CodeDeadlineExceeded // the node's clock may end first
		cancel()
		if err == nil {
			return nil
		}
		unknown = unknown || Unknown(err)
		if !Elsewhere(err) && !late || ctx.Err() != nil {
			if unknown && !final[Detail(err).GetReason()] {
				err = &marked{err, errLost}
			}
			return err
		}
		s.at = (s.at + 1) % len(s.nodes)
		if tries%len(s.nodes) == 0 {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}
