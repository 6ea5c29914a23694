package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"parley/replica/keyvalue"
)

// Session is a client of a table that numbers its commands, and asks again what it got no
// answer to. It has one command carried out after the other.
type Session struct {
	t *Table

	mu     sync.Mutex
	id     uint64 // 0: not opened yet
	number uint64 // of the last command
}

// Session returns a new client of the table.
func (t *Table) Session() *Session { return &Session{t: t} }

// errOvertaken: a later command of the session was carried out.
var errOvertaken = errors.New("the session has gone on to a later command")

// Do has a command carried out, exactly once if there is no error. It goes on to ask until
// the context ends, while this node is no member too.
func (s *Session) Do(ctx context.Context, command []byte) (answer []byte, position uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for unknown := false; ; { // it may have been carried out
		if s.id == 0 {
			err := s.t.patiently(ctx, func() (err error) {
				s.id, err = s.t.Open(ctx)
				return err
			})
			switch {
			case errors.Is(err, ErrExpelled):
				return nil, 0, fmt.Errorf("%w: there is no session: %w", ErrRefused, ErrExpelled)
			case err != nil:
				return nil, 0, fmt.Errorf("%w: there is no session: %w", ErrRefused, plain(err))
			}
			s.number = 0
		}
		if !unknown {
			s.number++
		}
		err = s.t.patiently(ctx, func() (err error) {
			answer, position, err = s.t.Do(ctx, s.id, s.number, command)
			unknown = unknown || errors.Is(err, ErrUnknown) && !errors.Is(err, ErrExpired)
			return err
		})
		if errors.Is(err, ErrExpired) {
			s.id = 0
			if !unknown {
				continue // it was not, and never is
			}
		}
		if err != nil && unknown && !errors.Is(err, ErrUnknown) {
			err = fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		return answer, position, err
	}
}

// plain is an error that says what the other says, but not that anything was asked.
func plain(err error) error { return errors.New(err.Error()) }

// patiently tries until it is told something else than that this node is no member, or lost
// sight of what it asked.
func (t *Table) patiently(ctx context.Context, try func() error) error {
	for {
		t.mu.Lock()
		joined := t.joined
		t.mu.Unlock()
		err := try()
		lost := errors.Is(err, ErrUnknown) && !errors.Is(err, ErrExpired) && !errors.Is(err, errOvertaken)
		final := errors.Is(err, ErrClosed) || errors.Is(err, ErrExpelled)
		if ctx.Err() != nil || final || !lost && !errors.Is(err, ErrOut) {
			return err
		}
		select {
		case <-joined:
		case <-ctx.Done():
			return err
		}
	}
}

// KeyValue is a client of a table of keys and values. All errors of commands are those of
// [Session.Do], and those of package keyvalue, in whose words a version counts the changes of
// a key: who holds a version can tell whether anything has happened to the key since.
type KeyValue struct{ s *Session }

// KeyValue returns a new client of a table whose machine is that of package keyvalue.
func (t *Table) KeyValue() KeyValue { return KeyValue{t.Session()} }

// Get returns the value that a key has now, and its version; keyvalue.ErrMissing if none.
func (k KeyValue) Get(ctx context.Context, key []byte) (value []byte, version uint64, err error) {
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

func (k KeyValue) do(ctx context.Context, command []byte) (keyvalue.Answer, error) {
	b, _, err := k.s.Do(ctx, command)
	return answered(b, err)
}

func answered(b []byte, err error) (keyvalue.Answer, error) {
	if err != nil {
		return keyvalue.Answer{}, err
	}
	a, ok := keyvalue.ReadAnswer(b)
	if !ok {
		return a, errors.New("the machine of the table is not that of keys and values")
	}
	return a, a.Status.Err()
}
