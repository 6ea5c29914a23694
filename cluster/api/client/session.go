package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/cluster/api/parleyv1"
)

// Session is a client of a table that numbers its commands, and asks again, at one node
// after the other, what it got no answer to: each command is carried out once. It has one
// command carried out after the other.
type Session struct {
	nodes []*Client
	table string
	lock  chan struct{} // who has put something into it has all below

	at     int // the node that is asked
	id     uint64
	number uint64
	last   Ask // the last command, if its outcome is unknown
}

// Ask asks a node for a command, under a session and a number.
type Ask = func(context.Context, *Client, *parleyv1.Call) error

// NewSession returns a client of a table that asks any of some nodes.
func NewSession(table string, nodes ...*Client) *Session {
	return &Session{nodes: nodes, table: table, lock: make(chan struct{}, 1)}
}

// The errors of a session that asks nobody.
var (
	errNobody  = errors.New("client: there is no node to ask")
	errNothing = errors.New("client: there is no command whose outcome is unknown")
	errExpired = errors.New("client: the session has expired")
)

// Do has a command carried out that a function asks a node for, under the session and the
// number it is given, with the context that it is given. It asks until it has an answer, or
// an error after which asking again is of no use, or the context ends.
//
// After an error by which the outcome is Unknown, Again asks for the same command again. Do goes on
// to the next one in any case: what was unknown before stays so, and is not carried out any more
// once the next one has been.
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

// Again asks for the last command again, by its function and under its number, if its outcome is
// unknown: it is carried out once, however often it is asked for. If there is none such nobody is
// asked, and the outcome of that is not Unknown. Of every other error it is, unless the error is an
// answer; of a session that has expired it stays so.
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

// enter waits until no other command is under way.
func (s *Session) enter(ctx context.Context) error {
	if len(s.nodes) == 0 {
		return &marked{errNobody, errUnasked}
	}
	select {
	case s.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		err := fmt.Errorf("client: another command of the session is under way: %w", context.Cause(ctx))
		return &marked{err, errUnasked}
	}
}

func (s *Session) leave() { <-s.lock }

// try asks for the last command, whose outcome may be unknown already.
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

// final are the reasons of failures that are answers to a command itself.
var final = map[string]bool{"no value": true, "no number": true, "too large": true, "no such command": true}

// each asks one node after the other, as long as another one may do better. A node that
// stands still is left after a while.
func (s *Session) each(ctx context.Context, unknown bool, ask func(context.Context, *Client) error) error {
	for tries := 1; ; tries++ {
		own, cancel := Attempt(ctx, len(s.nodes)-(tries-1)%len(s.nodes))
		err := ask(own, s.nodes[s.at])
		late := own.Err() != nil
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
