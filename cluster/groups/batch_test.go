package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/cluster/kernel"
	"parley/membership/group"
)

// packsSent are the batches that a batcher has sent.
type packsSent struct {
	mu   sync.Mutex
	list [][]byte
}

func (s *packsSent) at(i int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list[i]
}

// heldUp returns a batcher with count batches in flight, each with one payload.
func heldUp(t *testing.T, count int) (p *batcher, sent *packsSent) {
	t.Helper()
	sent = new(packsSent)
	p = newBatcher(100, kernel.Packs, func(pack []byte, _ kernel.Level) error {
		sent.mu.Lock()
		defer sent.mu.Unlock()
		sent.list = append(sent.list, slices.Clone(pack))
		return nil
	})
	for range count {
		if err := p.post(make([]byte, 50), kernel.Total); err != nil {
			t.Fatal(err)
		}
	}
	return p, sent
}

// within fails the test if f blocks.
func within(t *testing.T, what string, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(5 * time.Second):
		t.Fatal(what, "waits")
		return nil
	}
}

// Payloads that had gathered when a member was excluded are sent when it has rejoined: otherwise they would block
// all later ones.
func TestPackerContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, sent := heldUp(t, kernel.Packs+1)
		g := Group{k: new(kernel.Kernel), batcher: p}
		g.kept.init(1, 1)
		for _, kind := range []parley.Kind{group.Excluded, parley.View} {
			g.Indicate(0, parley.Msg{Kind: kind})
			g.after()
		}
		if err := within(t, "a payload", func() error { return p.post(make([]byte, 50), kernel.Total) }); err != nil || len(sent.list) != kernel.Packs+2 {
			t.Errorf("%v, %d packs", err, len(sent.list))
		}
	})
}

// A caller that waits for room gets the error of an exclusion, even if the member has rejoined by then.
func TestPackerNotifiesWaitingCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := heldUp(t, kernel.Packs+1)
		told := make(chan error, 1)
		go func() { told <- p.post(make([]byte, 50), kernel.Total) }()
		synctest.Wait()
		p.close(kernel.ErrNotMember)
		p.open()
		p.back(0)
		within(t, "who waited", func() error { return <-told })
	})
}

// A broadcast returns when its own batch is delivered, with its position, and not when an identical batch is. Its
// error says whether it may have had an effect.
func TestPackerAwaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type answer struct {
			position uint64
			err      error
		}
		p, sent := heldUp(t, 0)
		add := func(ctx context.Context, size int) (got chan answer) {
			got = make(chan answer, 1)
			go func() {
				position, err := p.add(ctx, make([]byte, size), kernel.Total)
				got <- answer{position, err}
			}()
			synctest.Wait()
			return got
		}
		took := func(got chan answer) (a answer) {
			t.Helper()
			_ = within(t, "a broadcast", func() error { a = <-got; return nil })
			return a
		}
		tag := func(pack []byte) uint64 {
			t.Helper()
			tag, tagged := readTag(unpack(pack, func(int, []byte) {}))
			if !tagged {
				t.Fatalf("%x has no tag", pack)
			}
			return tag
		}
		var each []chan answer
		for range kernel.Packs {
			each = append(each, add(t.Context(), 10))
		}
		first, second := add(t.Context(), 10), add(t.Context(), 10) // gather
		p.delivered(tag(sent.at(0))+1<<40, 7<<batchBits)            // of an earlier incarnation
		p.delivered(tag(sent.at(1)), 8<<batchBits)
		p.back(1)
		p.delivered(tag(sent.at(kernel.Packs)), 9<<batchBits)
		for got, position := range map[chan answer]uint64{each[1]: 8 << batchBits, first: 9 << batchBits, second: 9<<batchBits + 1} {
			if a := took(got); a.position != position || a.err != nil {
				t.Errorf("%+v, and not %d", a, position)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		under := add(ctx, 50) // gathers
		full := add(ctx, 50)  // has no room
		cancel()
		if a := took(under); !errors.Is(a.err, kernel.ErrUnknown) || !errors.Is(a.err, context.Canceled) {
			t.Errorf("under way: %v", a.err)
		}
		if a := took(full); !errors.Is(a.err, kernel.ErrRefused) || errors.Is(a.err, kernel.ErrUnknown) {
			t.Errorf("without room: %v", a.err)
		}
		p.close(kernel.ErrNotMember)
		for _, i := range []int{0, 2, 3} {
			if a := took(each[i]); !errors.Is(a.err, kernel.ErrUnknown) || !errors.Is(a.err, kernel.ErrNotMember) {
				t.Errorf("excluded: %v", a.err)
			}
		}
		if _, err := p.add(t.Context(), nil, kernel.Total); !errors.Is(err, kernel.ErrNotMember) || errors.Is(err, kernel.ErrUnknown) {
			t.Errorf("out: %v", err)
		}
	})
}

// Batches of a traitor without payloads take no memory, and small ones count for more than their bytes.
func TestTraitorsPacksAreBounded(t *testing.T) {
	for name, pack := range map[string][]byte{"empty": nil, "malformed": {200}, "of nothing": {0}, "of a byte": {1, 'x'}} {
		g := Group{k: new(kernel.Kernel), c: Config{Level: kernel.Byzantine}}
		g.kept.init(1<<16, 1<<16)
		batch := make([]byte, 1<<17)
		for i := range uint64(10_000) {
			g.Deliver(1, 0, parley.Msg{Value: i + 1, Body: batch[copy(batch, pack)-len(pack):][:len(pack)]})
		}
		if held := int(g.kept.ended-g.kept.begun) * keptSize; held > 1<<16 {
			t.Errorf("%s: %d bytes are held", name, held)
		}
		if k := &g.kept; k.ended > k.begun {
			if of := k.at(k.begun); of.count == 0 || &of.body[0] == &batch[0] {
				t.Errorf("%s: a pack of nothing is held, or its batch", name)
			}
		}
	}
}

// A payload at the end of a batch that looks like a tag is not taken for one.
func TestTagsBelongToNoPayload(t *testing.T) {
	p, sent := heldUp(t, 0)
	payload := appendTag(nil, 5)
	if err := p.post(payload, kernel.Total); err != nil {
		t.Fatal(err)
	}
	var got []string
	rest := unpack(sent.at(0), func(_ int, payload []byte) { got = append(got, fmt.Sprintf("%x", payload)) })
	if _, tagged := readTag(rest); tagged || len(got) != 1 || got[0] != fmt.Sprintf("%x", payload) {
		t.Errorf("%q, %x", got, rest)
	}
}

// The message that ends a view holds the windows of all members, with a payload in each batch, and must fit into
// a frame of the links.
func TestWindow(t *testing.T) {
	const payload, frame = 64 << 10, 16 << 20
	for n := 1; n <= 128; n++ {
		w := kernel.Window(n, payload)
		if w < 1 || n*w*(payload+64) > frame {
			t.Errorf("%d members: %d packs of each, %d bytes", n, w, n*w*payload)
		}
	}
	if w := kernel.Window(4, payload); w <= kernel.Packs {
		t.Errorf("4 members: %d packs", w)
	}
}
