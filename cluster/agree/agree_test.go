package agree

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"parley/agreement/stream"
	"parley/cluster/kernel"
	"parley/cluster/kernel/kerneltest"
	"parley/cluster/protocols"
)

const round = 100 * time.Millisecond

// An agreement in flight when its context ends may still decide. One that waits for others to finish has not
// begun.
func TestAgreeContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, ended := kerneltest.New(t, 4, 1), make(chan struct{})
		k.Ended = ended
		s := New(k, nil)
		ask := func(want error) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), round/10)
			defer cancel()
			_, err := s.Agree(ctx, Request{Value: []byte("x")})
			if !errors.Is(err, want) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		ask(kernel.ErrUnknown)
		o, err := s.open(stream.Key{Algorithm: stream.EIG, M: 1})
		if err != nil {
			t.Fatal(err)
		}
		for len(o.room) < cap(o.room) {
			o.room <- struct{}{}
		}
		if !s.Busy() {
			t.Error("nobody waits")
		}
		ask(kernel.ErrRefused)
		<-o.room
		time.AfterFunc(round/10, func() { close(ended) })
		if _, err := s.Agree(t.Context(), Request{Value: []byte("x")}); !errors.Is(err, kernel.ErrUnknown) ||
			!errors.Is(err, kernel.ErrClosed) {
			t.Errorf("when the node is closed: %v", err)
		}
	})
}

// A message on a channel without a configured stream opens none.
func TestAbsentOpensStreams(t *testing.T) {
	s := New(kerneltest.New(t, 4, 1), []Config{{Algorithm: stream.EIG, M: 1}})
	for channel, want := range map[uint32]bool{
		protocols.Channel(stream.Key{Algorithm: stream.EIG, M: 1, Source: 3}): true,
		protocols.Channel(stream.Key{Algorithm: stream.EIG, M: 1, Source: 4}): false,
		protocols.Channel(stream.Key{Algorithm: stream.OM, M: 1}):             false,
		kernel.FirstStream - 1: false, kernel.LastStream: false,
	} {
		if got := s.Absent(channel); got != want {
			t.Errorf("channel %d: %v", channel, got)
		}
	}
	if list := s.Status(nil); len(list) != 1 || list[0].Source != "node4" || list[0].Algorithm != "eig" {
		t.Errorf("%+v", list)
	}
}
