package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"parley/cluster/api/parleyv1"
)

// Session is a client of a table that numbers its commands, and asks again, at one node
// after the other, what it got no answer to: each command is carried out once. It has one
// command carried out after the other.
type Session struct {
	nodes []*Client
	table string

	mu     sync.Mutex
	at     int // the node that is asked
	id     uint64
	number uint64
}

// NewSession returns a client of a table that asks any of some nodes.
func NewSession(table string, nodes ...*Client) *Session { return &Session{nodes: nodes, table: table} }

// errNobody is the error of a session without nodes.
var errNobody = errors.New("client: there is no node to ask")

// Do has a command carried out that a function asks a node for, under the session and the
// number it is given, with the context that it is given. It asks until it has an answer, or
// an error after which asking again is of no use, or the context ends.
func (s *Session) Do(ctx context.Context, ask func(context.Context, *Client, *parleyv1.Call) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.nodes) == 0 {
		return errNobody
	}
	if s.id == 0 {
		err := s.each(ctx, func(ctx context.Context, c *Client) error {
			r, err := c.Table.Open(ctx, &parleyv1.OpenRequest{Table: s.table})
			s.id, s.number = r.GetSession(), 0
			return err
		})
		if err != nil {
			return err
		}
	}
	s.number++
	return s.each(ctx, func(ctx context.Context, c *Client) error {
		err := ask(ctx, c, &parleyv1.Call{Session: s.id, Number: s.number})
		if d := Detail(err); d.GetReason() == "expired" {
			s.id = 0
		}
		return err
	})
}

// final are the reasons of failures that are answers to a command itself.
var final = map[string]bool{"no value": true, "no number": true, "too large": true, "no such command": true}

// lost is an error after one with an unknown outcome.
type lost struct{ error }

// Unwrap returns the last error.
func (l *lost) Unwrap() error { return l.error }

// each asks one node after the other, as long as another one may do better. A node that
// stands still is left after a while.
func (s *Session) each(ctx context.Context, ask func(context.Context, *Client) error) error {
	unknown := false
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
				err = &lost{err}
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
