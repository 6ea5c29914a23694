package host_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/cluster/disk"
	"parley/cluster/host"
	"parley/cluster/store"
)

// slow is a machine that delivers what it receives, and waits for a release before some messages.
type slow struct {
	parley.Base
	begun, goOn chan struct{}
}

func (m *slow) Start(s *parley.Step)                 {}
func (m *slow) Request(s *parley.Step, q parley.Msg) { m.Receive(s, s.Self, q) }
func (m *slow) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	if string(q.Body) == "long" {
		m.begun <- struct{}{}
		<-m.goOn
	}
	s.Append(q.Body)
	s.Deliver(from, parley.Msg{Kind: parley.Decide, Body: q.Body})
}
func (m *slow) State(*parley.Vars) {}

// While a machine takes a long step nothing else waits for it: neither the readers of connections, for it
// or for other machines, nor the commits of others. It then receives the messages in each sender's order,
// as many as there is space for.
func TestLongStepDelaysNoOther(t *testing.T) {
	synctest.Test(t, longStep)
}

func longStep(t *testing.T) {
	var h *host.Host
	s, err := store.Open("dir", store.Options{Disk: disk.NewMemory(-1), Durable: func(upto uint64) { h.Durable(upto) }})
	must(t, err)
	h = host.New(host.Config{Self: 0, N: 3, Store: s, Transport: port{net: &network{}}})
	long, short := &slow{begun: make(chan struct{}), goOn: make(chan struct{})}, new(slow)
	said := map[uint32]*told{1: {c: make(chan string, 1000)}, 2: {c: make(chan string, 1000)}}
	for channel, m := range map[uint32]*slow{1: long, 2: short} {
		if _, err := h.Open(host.Options{
			Channel: channel, Name: fmt.Sprint("machine ", channel), Machine: m, Upper: said[channel], Long: channel == 1,
		}); err != nil {
			t.Fatal(err)
		}
	}
	bring := func(from parley.ID, channel uint32, body []byte) {
		b := append(parley.EncodeHead(nil, parley.Env{}, parley.Msg{Kind: 1, Body: body}), body...)
		if err := h.Frame(from, channel, b); err != nil {
			t.Error(err)
		}
	}
	over := make(chan struct{})
	go func() { // the reader of the connections
		defer close(over)
		bring(1, 1, []byte("long"))
		<-long.begun
		for k := range 100 {
			bring(parley.ID(1+k%2), 1, fmt.Append(nil, k))
			bring(1, 2, fmt.Append(nil, k))
			// The effects of this machine wait for the disk, each for another commit.
			if got, want := <-said[2].c, fmt.Sprint("1:", k); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}()
	within := func(what string, c <-chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(30 * time.Second):
			t.Fatal(what + " waits for a long step")
		}
	}
	within("who reads, or what others have made durable,", over)
	// The space is limited: then the sender waits.
	full := make(chan struct{})
	go func() {
		defer close(full)
		for range 20 {
			bring(2, 1, make([]byte, 1<<20))
		}
	}()
	synctest.Wait()
	select {
	case <-full:
		t.Error("20 MiB wait for a machine")
	default:
	}
	close(long.goOn)
	within("who brought too much", full)
	var list []string
	for range 121 {
		list = append(list, <-said[1].c)
	}
	for k := range 100 {
		if want := fmt.Sprintf("%d:%d", 1+k%2, k); list[1+k] != want {
			t.Fatalf("number %d is %s, want %s", k, list[1+k], want)
		}
	}
	if list[0] != "1:long" || slices.Contains(list[101:], "") {
		t.Errorf("%q", list[0])
	}
	h.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A goroutine that reports a broken link to a machine does not wait for a long step either. The machine
// gets the report after the earlier messages on the link.
func TestLongStepHoldsUpNoWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(host.Config{Self: 0, N: 2, Transport: port{net: &network{}}})
		m := &slow{begun: make(chan struct{}), goOn: make(chan struct{})}
		said := &told{c: make(chan string, 10)}
		p, err := h.Open(host.Options{Channel: 1, Name: "machine", Machine: m, Upper: said, Long: true})
		must(t, err)
		over := make(chan struct{})
		go func() {
			p.Tell(parley.Msg{Kind: 1, Body: []byte("long")})
			close(over)
		}()
		<-m.begun
		select {
		case <-over:
		case <-time.After(time.Minute):
			t.Fatal("who tells a machine something waits for a long step")
		}
		for k := range 6 {
			body := fmt.Append(nil, k)
			if k%2 == 1 {
				p.Tell(parley.Msg{Kind: 1, Body: body})
			} else if err := h.Frame(1, 1, parley.Encode(nil, parley.Env{}, parley.Msg{Kind: 1, Body: body})); err != nil {
				t.Fatal(err)
			}
		}
		close(m.goOn)
		for _, want := range []string{"0:long", "1:0", "0:1", "1:2", "0:3", "1:4", "0:5"} {
			if got := <-said.c; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		h.Close()
	})
}

// told is an UpperLayer that forwards deliveries.
type told struct{ c chan string }

func (u *told) Deliver(from parley.ID, _ parley.Path, m parley.Msg) {
	u.c <- fmt.Sprintf("%d:%s", from, m.Body)
}
func (*told) Indicate(parley.Path, parley.Msg) {}
