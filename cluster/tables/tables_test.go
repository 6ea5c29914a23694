package tables

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"parley/cluster/kernel"
	"parley/cluster/kernel/kerneltest"
	"parley/replica/keyvalue"
)

// A single node serves its table, refuses commands that are too long, and answers nothing after Close.
func TestTableAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(kerneltest.New(t, 1, 0), []Config{{Name: "t"}}, DefaultLimits)
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

// A table of another level, or a name used twice, is refused; calls of an unknown table fail with
// ErrNotConfigured.
func TestTableNotConfigured(t *testing.T) {
	for _, list := range [][]Config{{{Name: "t", Level: kernel.Atomic}}, {{Name: "t"}, {Name: "t"}}, {{Sessions: -1}}} {
		if err := New(kerneltest.New(t, 1, 0), list, DefaultLimits).Open(); err == nil {
			t.Errorf("%+v is taken", list)
		}
	}
	_, _, err := New(kerneltest.New(t, 1, 0), nil, DefaultLimits).Table("x").Query(t.Context(), keyvalue.Get(nil))
	if !errors.Is(err, kernel.ErrNotConfigured) {
		t.Error(err)
	}
}
