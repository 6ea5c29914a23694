package store_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"parley"
	"parley/cluster/store"
)

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// disk opens a store; upTo waits for its commits.
func disk(t *testing.T, dir string) (s *store.Store, upTo func(uint64)) {
	t.Helper()
	var mu sync.Mutex
	done, moved := uint64(0), sync.NewCond(&mu)
	s, err := store.Open(dir, store.Options{Durable: func(upto uint64) {
		mu.Lock()
		defer mu.Unlock()
		if upto <= done {
			t.Errorf("durable up to %d after %d", upto, done)
		}
		done = upto
		moved.Broadcast()
	}})
	must(t, err)
	return s, func(n uint64) {
		mu.Lock()
		defer mu.Unlock()
		for done < n {
			moved.Wait()
		}
	}
}

func bodies(records []parley.Record) (out []string) {
	for _, r := range records {
		out = append(out, fmt.Sprintf("%d:%s", r.Path, r.Body))
	}
	return out
}

// Records appended before Close are there when the store is opened again, separately for each book and in
// order.
func TestRecordsComeBack(t *testing.T) {
	dir := t.TempDir()
	s, _ := disk(t, dir)
	a, state, records, err := s.Open("a")
	if err != nil || state != nil || records != nil {
		t.Fatal(state, records, err)
	}
	b, _, _, err := s.Open("a longer name")
	must(t, err)
	for i := range 300 {
		a.Append(parley.Record{Path: parley.Path(i), Body: []byte("x")})
		b.Append(parley.Record{Body: fmt.Appendf(nil, "%d", i)})
	}
	must(t, s.Close())
	s, _ = disk(t, dir)
	a, state, records, err = s.Open("a")
	if err != nil || state != nil || len(records) != 300 || records[299].Path != 299 || string(records[7].Body) != "x" {
		t.Fatal(state, len(records), err)
	}
	// A state replaces the records so far; later records stay.
	a.Replace([]byte("all of that"))
	a.Append(parley.Record{Path: 1, Body: []byte("later")})
	must(t, s.Close())
	s, _ = disk(t, dir)
	_, state, records, err = s.Open("a")
	if want := []string{"1:later"}; err != nil || string(state) != "all of that" || !slices.Equal(bodies(records), want) {
		t.Errorf("%q %v %v", state, bodies(records), err)
	}
	if _, _, records, err = s.Open("a longer name"); err != nil || len(records) != 300 {
		t.Errorf("%d records of the other book: %v", len(records), err)
	}
	must(t, s.Close())
}

// Durable is eventually called for every record, and never for one that is not durable yet.
func TestDurableFollows(t *testing.T) {
	s, upTo := disk(t, t.TempDir())
	b, _, _, err := s.Open("m")
	must(t, err)
	for range 50 {
		upTo(b.Append(parley.Record{Body: []byte("one at a time")}))
	}
	var last uint64
	for range 500 {
		last = b.Append(parley.Record{Body: []byte("many at once")})
	}
	upTo(last)
	must(t, s.Close())
}

func TestRefusedNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	s, _ := disk(t, dir)
	for _, name := range []string{"", string(make([]byte, 256))} {
		if _, _, _, err := s.Open(name); err == nil {
			t.Errorf("a book named by %d bytes was opened", len(name))
		}
	}
	if _, _, _, err := s.Open("m"); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := s.Open("m"); err == nil {
		t.Error("a book was opened twice")
	}
	if _, err := store.Open(dir, store.Options{}); err == nil {
		t.Error("two stores in one folder")
	}
	must(t, s.Close())
}

func BenchmarkCommit(b *testing.B) {
	for _, size := range []int{64, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			done := make(chan uint64, 1)
			s, err := store.Open(b.TempDir(), store.Options{Durable: func(upto uint64) { done <- upto }})
			must(b, err)
			defer func() { _ = s.Close() }()
			book, _, _, err := s.Open("m")
			must(b, err)
			body := make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				book.Append(parley.Record{Body: body})
				<-done
			}
		})
	}
}
