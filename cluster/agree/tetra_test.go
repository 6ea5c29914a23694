package agree

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"parley"
	"parley/agreement/stream"
	"parley/agreement/tetra"
	"parley/cluster/kernel"
	"parley/cluster/kernel/kerneltest"
	"parley/cluster/protocols"
)

// A decision on nothing is the answer to a request: it is no error, and has no value.
func TestDecidedNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := kerneltest.New(t, 4, 1)
		s := New(k, nil)
		one := stream.Key{Algorithm: stream.Tetra, M: 1}
		go func() {
			synctest.Wait() // the request is in slot 1
			for _, from := range []parley.ID{1, 2} {
				body := parley.EncodeHead(nil, parley.Env{}, parley.Msg{Kind: tetra.Decided, Seq: 1})
				k.Host.Frame(from, protocols.Channel(one), body)
			}
		}()
		d, err := s.Agree(t.Context(), Request{Value: []byte("x"), Algorithm: stream.Tetra})
		if err != nil || !d.Nothing || d.Value != nil || d.Slot != 1 || d.M != 1 {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// While earlier agreements are undecided, further ones wait, and then are refused: they have no effect.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(kerneltest.New(t, 4, 1), nil)
		most := 2 * s.budget.Window(stream.Key{Algorithm: stream.Tetra, M: 1})
		for k := range most + 1 {
			ctx, cancel := context.WithTimeout(t.Context(), round)
			_, err := s.Agree(ctx, Request{Value: []byte("x"), Algorithm: stream.Tetra})
			cancel()
			switch {
			case errors.Is(err, ErrBusy):
				if k < most/2 || !errors.Is(err, kernel.ErrRefused) || errors.Is(err, kernel.ErrUnknown) {
					t.Errorf("after %d: %v", k, err)
				}
				return
			case !errors.Is(err, kernel.ErrUnknown):
				t.Fatalf("after %d: %v", k, err)
			}
		}
		t.Errorf("%d agreements wait", most)
	})
}
