package groups

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"parley"
	"parley/cluster/kernel"
	"parley/membership/group"
)

// A node can be out without a leave: from its start, or because it had to join twice. Earlier subscriptions learn
// that there is a gap.
func TestGapWithoutLeave(t *testing.T) {
	pack := func(h *history, position uint64) {
		h.add(deliveredBatch{first: position << batchBits, from: parley.ID(0), count: 1, body: []byte{1, 'a'}})
	}
	over, end := context.WithCancel(t.Context()) // so that nothing blocks
	end()
	g := Group{k: new(kernel.Kernel)}
	g.kept.init(100, 1<<20)
	early, err := g.Subscribe(1 << batchBits)
	if err != nil {
		t.Fatal(err)
	}
	for _, behind := range []uint64{5, 9} { // it joins twice
		g.kept.begin(behind << batchBits)
		if _, err := early.Next(over); !errors.Is(err, kernel.ErrNotMember) {
			t.Fatalf("behind %d: %v", behind, err)
		}
		if _, err := g.Subscribe(behind << batchBits); !errors.Is(err, ErrNotRetained) {
			t.Fatalf("from %d: %v", behind, err)
		}
		if early, err = g.Subscribe((behind + 1) << batchBits); err != nil {
			t.Fatal(err)
		}
		pack(&g.kept, behind+1)
		if d, err := early.Next(over); err != nil || d.Position != (behind+1)<<batchBits {
			t.Fatalf("behind %d: %v, %v", behind, d, err)
		}
	}
}

// A restarted durable node has only what its log still holds: a subscription to earlier positions fails instead
// of skipping them silently.
func TestGapAfterRestart(t *testing.T) {
	t.Parallel()
	g := Group{k: new(kernel.Kernel)}
	g.kept.init(100, 1<<20)
	g.batcher = newBatcher(1<<10, kernel.Packs, nil)
	g.Indicate(0, parley.Msg{Kind: group.ReplayStarted, Seq: 7})
	g.Deliver(0, 0, parley.Msg{Seq: 8, Body: []byte{1, 'a'}})
	var gone *GoneError
	if _, err := g.Subscribe(3 << batchBits); !errors.As(err, &gone) || gone.First != 8<<batchBits {
		t.Errorf("what it does not have: %v", err)
	}
	s, err := g.Subscribe(8 << batchBits)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := s.Next(t.Context()); err != nil || string(d.Payload) != "a" {
		t.Errorf("%+v, %v", d, err)
	}
}

// A traitor broadcasts what is no payload, or appends it to one. It is delivered to a service, so that all bytes count
// that the order keeps. The tag of a correct node is not.
func TestBytesOfTraitors(t *testing.T) {
	t.Parallel()
	var got []string
	g := Group{k: new(kernel.Kernel), c: Config{
		Level: kernel.Byzantine, from: func(uint64) {},
		Deliver: func(d Delivery) { got = append(got, fmt.Sprintf("%d %x", d.Position-1<<batchBits, d.Payload)) },
	}}
	g.kept.init(100, 1<<20)
	g.batcher = newBatcher(1<<10, kernel.Packs, nil)
	tag := append(binary.AppendUvarint(nil, noPayload), make([]byte, 8)...)
	for _, body := range [][]byte{{1, 'a'}, append([]byte{1, 'a'}, tag...), {1, 'a', 9, 'b', 'c'}, {9, 'b', 'c'}} {
		g.Deliver(2, 0, parley.Msg{Seq: 3, Value: 1, Body: body})
	}
	if want := []string{"0 61", "0 61", "0 61", "1 096263", "0 096263"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A loop over deliveries ends with the error, once. A loop that ends early is continued without a gap.
func TestAll(t *testing.T) {
	t.Parallel()
	g := Group{k: new(kernel.Kernel)}
	g.kept.init(100, 1<<20)
	for i, payload := range []byte("abc") {
		g.kept.add(deliveredBatch{first: uint64(i+1) << batchBits, count: 1, body: []byte{1, payload}})
	}
	s, err := g.Subscribe(1)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for d, err := range s.All(t.Context()) {
		if got += string(d.Payload); err != nil || got == "ab" {
			break
		}
	}
	g.kept.close(kernel.ErrClosed)
	for d, err := range s.All(t.Context()) {
		if got += string(d.Payload); err != nil {
			if got += "."; !errors.Is(err, kernel.ErrClosed) || d.Payload != nil || got != "abc." {
				t.Fatalf("%q, %v, %v", got, d, err)
			}
		}
	}
	if got != "abc." {
		t.Errorf("%q", got)
	}
	if err := io.Closer(s).Close(); err != nil {
		t.Error(err)
	}
}
