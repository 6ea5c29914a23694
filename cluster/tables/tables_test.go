package tables

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/cluster/host"
	"parley/cluster/kernel"
	"parley/cluster/link"
	"parley/membership/group"
	"parley/replica/keyvalue"
)

// nowhere carries nothing: there is one node.
type nowhere struct{}

func (nowhere) Send(parley.ID, link.Class, uint32, []byte, []byte) bool { return false }
func (nowhere) Flush(parley.ID)                                         {}

// alone is what a service knows of a node that is alone.
func alone(t *testing.T) *kernel.Kernel {
	t.Helper()
	h := host.New(host.Config{N: 1, Transport: nowhere{}})
	t.Cleanup(h.Close)
	const second = parley.Tick(time.Second)
	views := group.Config{N: 1, Return: true, Flush: second / 2, Wait: second, Stagger: second, Admit: second}
	views.First, views.Become = second, second
	views.Detector.Period, views.Detector.Timeout, views.Detector.Late = second/10, second, second/4
	return &kernel.Kernel{
		Members: []string{"node1"}, Log: slog.New(slog.DiscardHandler), Host: h, Compact: 64,
		Views:   views.WithDefaults(),
		Watched: func(o host.Options, _ bool) (*host.Process, error) { return h.Open(o) },
	}
}

// A node alone serves its table, refuses commands that are too long, and when it is closed answers nothing.
func TestTableAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(alone(t), []Config{{Name: "t"}}, DefaultLimits)
		if err := s.Open(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // until it is a member
		keys := s.Table("t").KeyValue()
		for want := range int64(3) {
			if sum, err := keys.Add(t.Context(), []byte("k"), 1); sum != want+1 || err != nil {
				t.Fatal(sum, err)
			}
		}
		if _, err := keys.Put(t.Context(), []byte("k"), make([]byte, MaxCommand)); !errors.Is(err, kernel.ErrRefused) {
			t.Errorf("a command that is too long: %v", err)
		}
		none := func(string) (v kernel.ViewStatus) { return v }
		if list := s.Status(none); len(list) != 1 || !list[0].Serving || list[0].Position < 3 || s.Busy() {
			t.Errorf("%+v", list)
		}
		s.Close(kernel.ErrClosed)
		if _, _, err := keys.Get(t.Context(), []byte("k")); !errors.Is(err, kernel.ErrClosed) {
			t.Errorf("when it is closed: %v", err)
		}
		if list := s.Status(none); list[0].Serving {
			t.Errorf("%+v", list)
		}
	})
}

// A table of another level, or twice the same, is no configuration; and one that there is not answers so.
func TestTableNotConfigured(t *testing.T) {
	for _, list := range [][]Config{{{Name: "t", Level: kernel.Atomic}}, {{Name: "t"}, {Name: "t"}}, {{Sessions: -1}}} {
		if err := New(alone(t), list, DefaultLimits).Open(); err == nil {
			t.Errorf("%+v is taken", list)
		}
	}
	_, _, err := New(alone(t), nil, DefaultLimits).Table("x").Query(t.Context(), keyvalue.Get(nil))
	if !errors.Is(err, kernel.ErrNotConfigured) {
		t.Error(err)
	}
}
