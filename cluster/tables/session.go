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

// Session is a client of a table that numbers its commands, and asks again what it got no
// answer to. It has one command carried out after the other.
type Session struct {
	t    *Table
	lock chan struct{} // who has put something into it has all below

	id      uint64 // 0: not opened yet, or expired
	number  uint64 // of the last command
	unknown bool   // the last command may have been carried out
	last    []byte // it, then
}

// Session returns a new client of the table.
func (t *Table) Session() *Session { return &Session{t: t, lock: make(chan struct{}, 1)} }

// errOvertaken: a later command of the session was carried out.
var errOvertaken = errors.New("the session has gone on to a later command")

// Do has a command carried out, exactly once if there is no error. It goes on to ask until
// the context ends, while this node is no member too.
//
// After an error that is kernel.ErrUnknown, Again asks for the same command again. Do goes on to the next
// one in any case: what was unknown before stays so, and is not carried out any more once the next
// one has been.
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
		if !errors.Is(err, ErrExpired) || s.unknown { // else it was not carried out, and never is
			break
		}
	}
	if s.unknown {
		s.last = bytes.Clone(command)
	}
	return answer, position, err
}

// Again asks for the last command again, under its number, if its outcome is unknown: it is
// carried out once, however often it is asked for. If there is none such nothing is done, and the
// error is kernel.ErrRefused. Every other error is ErrUnknown: the outcome still is; with ErrExpired it
// stays so.
func (s *Session) Again(ctx context.Context) (answer []byte, position uint64, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, 0, err
	}
	defer s.leave()
	switch {
	case !s.unknown:
		return nil, 0, fmt.Errorf("%w: there is no command whose outcome is unknown", kernel.ErrRefused)
	case s.id == 0:
		return nil, 0, fmt.Errorf("%w, and %w", ErrExpired, kernel.ErrUnknown)
	}
	return s.try(ctx, s.last)
}

// enter waits until no other command is under way.
func (s *Session) enter(ctx context.Context) error {
	select {
	case s.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: another command of the session is under way: %w", kernel.ErrRefused, context.Cause(ctx))
	}
}

func (s *Session) leave() { <-s.lock }

// try asks for the last command until it is answered.
func (s *Session) try(ctx context.Context, command []byte) (answer []byte, position uint64, err error) {
	err = s.t.patiently(ctx, func() (err error) {
		answer, position, err = s.t.Do(ctx, s.id, s.number, command)
		s.unknown = s.unknown || errors.Is(err, kernel.ErrUnknown) && !errors.Is(err, ErrExpired)
		return err
	})
	if errors.Is(err, ErrExpired) {
		s.id = 0
	}
	switch {
	case err == nil:
		s.unknown, s.last = false, nil
	case s.unknown && !errors.Is(err, kernel.ErrUnknown):
		err = fmt.Errorf("%w: %w", kernel.ErrUnknown, err)
	}
	return answer, position, err
}

// unasked is an error of opening a session: whatever became of that, no command was asked for.
type unasked struct{ error }

// Error leaves out that an outcome is unknown.
func (e unasked) Error() string {
	return strings.ReplaceAll(e.error.Error(), kernel.ErrUnknown.Error()+": ", "")
}

// Is tells what else the error is.
func (e unasked) Is(target error) bool {
	return target != kernel.ErrUnknown && errors.Is(e.error, target)
}

// patiently tries until it is told something else than that this node is no member, or lost
// sight of what it asked.
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

// KeyValue is a client of a table of keys and values. All errors of commands are the errors of
// [Session.Do], and those of package keyvalue, in whose words a version counts the changes of
// a key: who holds a version can tell whether anything has happened to the key since.
type KeyValue struct {
	s     *Session
	other bool // the machine of the table is another
}

// KeyValue returns a new client of a table whose machine is that of package keyvalue. If it is
// another one all commands are refused.
func (t *Table) KeyValue() KeyValue {
	_, keys := t.c.New().(*keyvalue.Table)
	return KeyValue{t.Session(), !keys}
}

// errNoKeys is the error of a table with another machine.
var errNoKeys = errors.New("the machine of the table is not that of keys and values")

// Get returns the value that a key has now, and its version; keyvalue.ErrMissing if none.
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

// Put gives a key a value.
func (k KeyValue) Put(ctx context.Context, key, value []byte) (version uint64, err error) {
	a, err := k.do(ctx, keyvalue.Put(key, value))
	return a.Version, err
}

// Delete takes a key's value away; keyvalue.ErrMissing if it has none.
func (k KeyValue) Delete(ctx context.Context, key []byte) (version uint64, err error) {
	a, err := k.do(ctx, keyvalue.Delete(key))
	return a.Version, err
}

// Swap gives a key a value if it has a version, or with 0 if it has no value; else it
// returns keyvalue.ErrChanged, with the version and the value that it has.
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

// Again asks for the last change again if its outcome is unknown: see [Session.Again]. The answer is
// what the change itself returns: of Swap and Add the value, too.
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
	if !ok { // a machine of another version, perhaps
		return a, fmt.Errorf("%w: the answer is none of keys and values", kernel.ErrUnknown)
	}
	return a, a.Status.Err()
}
