package tables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"parley/cluster/kernel"
	"parley/replica/keyvalue"
)

// Session is a client of a table. It numbers its commands, and retries commands that got no answer. The commands of a
// session run one after another, so concurrent calls wait for each other.
type Session struct {
	t    *Table
	lock chan struct{} // its holder owns the fields below

	id      uint64 // 0: not opened yet, or expired
	number  uint64 // of the last command
	unknown bool   // the last command may have been applied
	last    []byte // the last command, if unknown
}

// Session returns a new session with the table. The first command opens the session.
func (t *Table) Session() *Session { return &Session{t: t, lock: make(chan struct{}, 1)} }

// errOvertaken: a later command of the session was carried out.
var errOvertaken = errors.New("the session already has a later command")

// Do applies a command. If the error is nil, the command was applied exactly once. Do retries until ctx ends, even
// while this node is not a member.
//
// After an error that matches kernel.ErrUnknown, Again retries the same command. The next Do gives this
// command up: its outcome stays unknown. When the next command has been applied, the earlier command can no
// longer be applied.
func (s *Session) Do(ctx context.Context, command []byte) (answer []byte, position uint64, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, 0, err
	}
	defer s.leave()
	s.unknown, s.last = false, nil
	for {
		if s.id == 0 {
			err := s.t.patiently(ctx, func() (err error) {
				s.id, err = s.t.Open(ctx)
				return err
			})
			if err != nil {
				return nil, 0, fmt.Errorf("%w: there is no session: %w", kernel.ErrRefused, unasked{err})
			}
			s.number = 0
		}
		s.number++
		answer, position, err = s.try(ctx, command)
		if s.id != 0 || s.unknown { // otherwise it is never applied
			break
		}
	}
	if s.unknown {
		s.last = bytes.Clone(command)
	}
	return answer, position, err
}

// Again retries the last command, under its number, if its outcome is unknown. The command is applied at most once,
// however often it is retried. If no outcome is unknown, Again has no effect and the error matches kernel.ErrRefused.
// Every other error matches ErrUnknown, and the outcome is still unknown. With ErrExpired it remains unknown forever.
func (s *Session) Again(ctx context.Context) (answer []byte, position uint64, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, 0, err
	}
	defer s.leave()
	switch {
	case !s.unknown:
		return nil, 0, fmt.Errorf("%w: no command of this session has an unknown outcome", kernel.ErrRefused)
	case s.id == 0:
		return nil, 0, fmt.Errorf("%w, and %w", ErrExpired, kernel.ErrUnknown)
	}
	return s.try(ctx, s.last)
}

// enter waits until no other command of the session is in flight.
func (s *Session) enter(ctx context.Context) error {
	select {
	case s.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: another command of the session is in flight: %w", kernel.ErrRefused, context.Cause(ctx))
	}
}

func (s *Session) leave() { <-s.lock }

// try retries the last command until it is answered.
func (s *Session) try(ctx context.Context, command []byte) (answer []byte, position uint64, err error) {
	err = s.t.patiently(ctx, func() (err error) {
		answer, position, err = s.t.Do(ctx, s.id, s.number, command)
		s.unknown = s.unknown || errors.Is(err, kernel.ErrUnknown) && !errors.Is(err, ErrExpired)
		return err
	})
	taken := errors.Is(err, ErrSessionTaken)
	if errors.Is(err, ErrExpired) || taken {
		s.id = 0
	}
	switch {
	case err == nil, taken && !errors.Is(err, kernel.ErrUnknown): // applied, or never applied
		s.unknown, s.last = false, nil
	case s.unknown && !errors.Is(err, kernel.ErrUnknown):
		err = fmt.Errorf("%w: %w", kernel.ErrUnknown, err)
	}
	return answer, position, err
}

// unasked is an error of opening a session: whatever happened to that, no command was sent.
type unasked struct{ error }

// Error returns the text without that of ErrUnknown.
func (e unasked) Error() string {
	return strings.ReplaceAll(e.error.Error(), kernel.ErrUnknown.Error()+": ", "")
}

// Is matches what the error matches, except ErrUnknown.
func (e unasked) Is(target error) bool {
	return target != kernel.ErrUnknown && errors.Is(e.error, target)
}

// patiently calls try until the result is something other than that this node is not a member, or lost track of
// what it sent.
func (t *Table) patiently(ctx context.Context, try func() error) error {
	for {
		t.mu.Lock()
		joined := t.joined
		t.mu.Unlock()
		err := try()
		lost := errors.Is(err, kernel.ErrUnknown) && !errors.Is(err, ErrExpired) && !errors.Is(err, errOvertaken)
		final := errors.Is(err, kernel.ErrClosed) || errors.Is(err, kernel.ErrExpelled) || errors.Is(err, ErrStopped)
		if ctx.Err() != nil || final || !lost && !errors.Is(err, kernel.ErrNotMember) {
			return err
		}
		select {
		case <-joined:
		case <-ctx.Done():
			return err
		}
	}
}

// KeyValue is a client of a table of keys and values. Its commands return the errors of [Session.Do] and of
// package keyvalue. The version of a key counts the changes of the key. So a caller that knows a version can
// detect whether the key has changed since then.
type KeyValue struct {
	s     *Session
	other bool // the table has another machine
}

// KeyValue returns a new client of a table that runs the machine of package keyvalue. With another machine it
// refuses all commands.
func (t *Table) KeyValue() KeyValue {
	_, keys := t.c.New().(*keyvalue.Table)
	return KeyValue{t.Session(), !keys}
}

// errNoKeys is the error of a table with another machine.
var errNoKeys = errors.New("the table is not one of keys and values")

// Get returns the value of a key and its version. It returns keyvalue.ErrMissing if the key has no value.
func (k KeyValue) Get(ctx context.Context, key []byte) (value []byte, version uint64, err error) {
	if k.other {
		return nil, 0, fmt.Errorf("%w: %w", kernel.ErrRefused, errNoKeys)
	}
	var b []byte
	err = k.s.t.patiently(ctx, func() (err error) {
		b, _, err = k.s.t.Query(ctx, keyvalue.Get(key))
		return err
	})
	a, err := answered(b, err)
	return a.Value, a.Version, err
}

// Put sets the value of a key.
func (k KeyValue) Put(ctx context.Context, key, value []byte) (version uint64, err error) {
	a, err := k.do(ctx, keyvalue.Put(key, value))
	return a.Version, err
}

// Delete removes the value of a key. It returns keyvalue.ErrMissing if the key has no value.
func (k KeyValue) Delete(ctx context.Context, key []byte) (version uint64, err error) {
	a, err := k.do(ctx, keyvalue.Delete(key))
	return a.Version, err
}

// Swap sets the value of a key if the key has the given version. Version 0 means that the key must have no value.
// Otherwise Swap returns keyvalue.ErrChanged with the current version and value.
func (k KeyValue) Swap(ctx context.Context, key []byte, version uint64, value []byte) (
	now uint64, has []byte, err error,
) {
	a, err := k.do(ctx, keyvalue.Swap(key, version, value))
	return a.Version, a.Value, err
}

// Add adds to a counter, and returns the sum.
func (k KeyValue) Add(ctx context.Context, key []byte, by int64) (sum int64, err error) {
	a, err := k.do(ctx, keyvalue.Add(key, by))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(a.Value), 10, 64)
}

// Again retries the last change if its outcome is unknown: see [Session.Again]. It returns the answer of the
// change itself. The answers of Swap and Add include the value.
func (k KeyValue) Again(ctx context.Context) (keyvalue.Answer, error) {
	b, _, err := k.s.Again(ctx)
	return answered(b, err)
}

func (k KeyValue) do(ctx context.Context, command []byte) (keyvalue.Answer, error) {
	if k.other {
		return keyvalue.Answer{}, fmt.Errorf("%w: %w", kernel.ErrRefused, errNoKeys)
	}
	b, _, err := k.s.Do(ctx, command)
	return answered(b, err)
}

func answered(b []byte, err error) (keyvalue.Answer, error) {
	if err != nil {
		return keyvalue.Answer{}, err
	}
	a, ok := keyvalue.ReadAnswer(b)
	if !ok { // possibly a machine of another version
		return a, fmt.Errorf("%w: the answer is not one of a table of keys and values", kernel.ErrUnknown)
	}
	return a, a.Status.Err()
}
