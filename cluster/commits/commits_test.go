package commits

import (
	"context"
	"errors"
	"strings"
	"testing"

	"parley/cluster/kernel"
	"parley/cluster/kernel/kerneltest"
)

// slow blocks in Prepare until gate lets it return.
type slow struct{ gate chan struct{} }

func (s slow) Prepare(context.Context, string, []byte) (bool, error) {
	<-s.gate
	return true, nil
}
func (slow) Commit(string) {}
func (slow) Abort(string)  {}

// Commit refuses an invalid transaction, which has no effect.
func TestCommitRefuses(t *testing.T) {
	s, err := Open(kerneltest.New(t, 1, 0), Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(kernel.ErrClosed)
	one := map[string][]byte{"node1": nil}
	for tx, parts := range map[string]map[string][]byte{
		"": one, strings.Repeat("x", MaxTx+1): one, "nobody": nil,
		"stranger": {"node9": nil}, "long": {"node1": make([]byte, MaxPart+1)},
	} {
		if _, err := s.Commit(t.Context(), tx, parts); !errors.Is(err, kernel.ErrRefused) {
			t.Errorf("%q: %v", tx, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Commit(ctx, "late", one); err != nil && !errors.Is(err, kernel.ErrUnknown) && !errors.Is(err, kernel.ErrRefused) {
		t.Error(err)
	}
	for _, c := range []Config{{Protocol: 9}, {Votes: -1}, {Open: 1 << 20}} {
		if _, err := Open(kerneltest.New(t, 1, 0), c, nil); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

// Commit blocks while too many transactions are open, and is refused if its context ends first. A service that is
// closed ends all waiting calls.
func TestCommitWaitsForRoom(t *testing.T) {
	gate := make(chan struct{})
	s, err := Open(kerneltest.New(t, 1, 0), Config{Open: 1}, slow{gate})
	if err != nil {
		t.Fatal(err)
	}
	first := make(chan error, 1)
	one := map[string][]byte{"node1": nil}
	go func() {
		_, err := s.Commit(context.Background(), "first", one)
		first <- err
	}()
	for !s.Busy() || len(s.room) == 0 {
		select {
		case err := <-first:
			t.Fatal("the first one has ended", err)
		default:
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Commit(ctx, "second", one); !errors.Is(err, kernel.ErrRefused) {
		t.Errorf("without room: %v", err)
	}
	if _, err := s.Commit(ctx, "first", map[string][]byte{"node1": {1}}); !errors.Is(err, ErrTaken) {
		t.Errorf("another one of its name: %v", err)
	}
	s.Fail(kernel.ErrClosed)
	if err := <-first; !errors.Is(err, kernel.ErrUnknown) || !errors.Is(err, kernel.ErrClosed) {
		t.Errorf("when it is closed: %v", err)
	}
	close(gate)
	s.Close(kernel.ErrClosed)
}
