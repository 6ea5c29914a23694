package store

import (
	"errors"
	"math/rand/v2"
	"testing"

	"parley/cluster/disk"
)

// After a loss of power a store holds what it had said to be durable, and at most what it was handed
// after that, as a whole and in order; logs are merged meanwhile.
func TestStoreKeepsDurableRecordsOverCrashes(t *testing.T) {
	merged := 0
	for seed := range uint64(60) {
		chance := rand.New(rand.NewPCG(seed, 1))
		d, m := disk.NewMemory(-1), newModel()
		for life := range 6 {
			var o owner
			s, err := Open("dir", o.options(d))
			if err != nil {
				t.Fatalf("seed %d, life %d: %v", seed, life, err)
			}
			books := m.same(t, s, "after a start")
			m.scribble(s, books, chance, 10+chance.IntN(200))
			closes := chance.IntN(4) == 0
			if closes {
				err = s.Close()
			}
			durable, _, _ := o.sees()
			left := d.Crash(chance)
			if !closes {
				err = s.Close()
			}
			if _, failed, late := o.sees(); err != nil || failed != nil || late {
				t.Fatalf("seed %d: closed: %v, failed %v, late %v", seed, err, failed, late)
			}
			if r, err := Verify("dir", left); err != nil || r.Position < durable {
				t.Fatalf("seed %d: %d of %d are left: %v", seed, r.Position, durable, err)
			}
			if s.files.manifest.base != nil {
				merged++
			}
			d = left
		}
	}
	if merged < 50 {
		t.Errorf("only %d stores had merged their logs", merged)
	}
}

// What is said to be durable is so at that moment.
func TestStoreDurableIsOnDisk(t *testing.T) {
	d, m := disk.NewMemory(-1), newModel()
	var o owner
	options := o.options(d)
	said := 0
	options.Durable = func(upto uint64) {
		said++
		for _, chance := range []*rand.Rand{nil, rand.New(rand.NewPCG(upto, 2))} {
			r, err := Verify("dir", d.Crash(chance))
			if err != nil || r.Position < upto {
				t.Errorf("at %d of %d: %v", r.Position, upto, err)
			}
		}
	}
	s, err := Open("dir", options)
	if err != nil {
		t.Fatal(err)
	}
	m.scribble(s, m.same(t, s, "new"), rand.New(rand.NewPCG(1, 1)), 400)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if said < 50 {
		t.Errorf("%d commits", said)
	}
}

// A closed store is closed: it takes nothing more, and nothing waits for it.
func TestStoreClosed(t *testing.T) {
	var o owner
	s, err := Open("dir", o.options(disk.NewMemory(-1)))
	if err != nil {
		t.Fatal(err)
	}
	b, _, _, err := s.Open("m")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(b.Replace([]byte("late"))); !errors.Is(err, ErrClosed) {
		t.Errorf("a record behind the end: %v", err)
	}
	if err := s.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
}
