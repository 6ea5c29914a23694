package keyvalue_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"parley/replica/keyvalue"
)

func apply(t *testing.T, table *keyvalue.Table, command []byte) keyvalue.Answer {
	t.Helper()
	a, ok := keyvalue.ReadAnswer(table.Apply(command))
	if !ok {
		t.Fatalf("the answer to %q is none", command)
	}
	return a
}

func TestCommands(t *testing.T) {
	table := keyvalue.New()
	k := []byte("k")
	for i, c := range []struct {
		command []byte
		status  keyvalue.Status
		version uint64
		value   string
	}{
		{keyvalue.Get(k), keyvalue.Missing, 0, ""},
		{keyvalue.Delete(k), keyvalue.Missing, 0, ""},
		{keyvalue.Swap(k, 1, []byte("x")), keyvalue.Changed, 0, ""},
		{keyvalue.Swap(k, 0, []byte("a")), keyvalue.Done, 1, ""},
		{keyvalue.Swap(k, 0, []byte("b")), keyvalue.Changed, 1, "a"},
		{keyvalue.Swap(k, 1, []byte("b")), keyvalue.Done, 2, ""},
		{keyvalue.Put(k, nil), keyvalue.Done, 3, ""},
		{keyvalue.Get(k), keyvalue.Done, 3, ""},
		{keyvalue.Add(k, 1), keyvalue.NoNumber, 3, ""},
		{keyvalue.Delete(k), keyvalue.Done, 4, ""},
		{keyvalue.Get(k), keyvalue.Missing, 4, ""},
		{keyvalue.Swap(k, 4, nil), keyvalue.Changed, 4, ""},
		{keyvalue.Add(k, -5), keyvalue.Done, 5, "-5"},
		{keyvalue.Add(k, math.MaxInt64), keyvalue.Done, 6, "9223372036854775802"},
		{keyvalue.Add(k, 6), keyvalue.NoNumber, 6, "9223372036854775802"},
		{keyvalue.Add(k, 0), keyvalue.Done, 7, "9223372036854775802"},
		{keyvalue.Put(nil, k), keyvalue.TooLarge, 0, ""},
		{keyvalue.Put(k, make([]byte, keyvalue.MaxValue+1)), keyvalue.TooLarge, 7, ""},
		{nil, keyvalue.Unknown, 0, ""},
		{[]byte{99, 1, 'k', 0}, keyvalue.Unknown, 0, ""},
		{[]byte{1, 9, 'k', 0}, keyvalue.Unknown, 0, ""},
		{[]byte{1, 1, 'k'}, keyvalue.Unknown, 0, ""},
	} {
		got := table.Apply(c.command)
		a, ok := keyvalue.ReadAnswer(got)
		if !ok || a.Status != c.status || a.Version != c.version || string(a.Value) != c.value {
			t.Errorf("command %d: %v, not %v", i, a, c)
		}
		if done := a.Status == keyvalue.Done; done != (a.Status.Err() == nil) || done == table.Refuses(got) {
			t.Errorf("command %d: %v, refused %t", i, a.Status.Err(), table.Refuses(got))
		}
	}
	if !errors.Is(keyvalue.Missing.Err(), keyvalue.ErrMissing) {
		t.Error("another error")
	}
}

// A restored table answers like the table of the snapshot, and makes the same snapshot. Bytes that are no
// snapshot leave a table unchanged.
func TestSnapshots(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 0))
		a, b := keyvalue.New(), keyvalue.New()
		for range 200 {
			a.Apply(randomly(r))
		}
		s := a.Snapshot()
		if !b.Restore(s) || !bytes.Equal(b.Snapshot(), s) {
			t.Fatalf("seed %d: restored, it is another table", seed)
		}
		for range 200 {
			c := randomly(r)
			if x, y := a.Apply(c), b.Apply(c); !bytes.Equal(x, y) {
				t.Fatalf("seed %d: %q answers %q and %q", seed, c, x, y)
			}
		}
		s = a.Snapshot()
		for range 50 {
			bad := bytes.Clone(s)
			bad = bad[:r.IntN(len(bad))]
			if a.Restore(bad) && !bytes.Equal(a.Snapshot(), bad) {
				t.Fatalf("seed %d: %d bytes of %d are taken for a table", seed, len(bad), len(s))
			}
			a.Restore(s)
		}
	}
}

func randomly(r *rand.Rand) []byte {
	key := fmt.Appendf(nil, "key %d", r.IntN(5))
	switch r.IntN(5) {
	case 0:
		return keyvalue.Put(key, fmt.Appendf(nil, "%d", r.IntN(10)))
	case 1:
		return keyvalue.Delete(key)
	case 2:
		return keyvalue.Swap(key, uint64(r.IntN(9)), []byte("s"))
	case 3:
		return keyvalue.Add(key, int64(r.IntN(9)))
	}
	return keyvalue.Get(key)
}

// A full table takes neither more keys nor longer values, also when it is restored, and its snapshot is not
// much longer than its limit.
func TestLimited(t *testing.T) {
	table := keyvalue.Limited(4000)
	for i := range 1000 {
		apply(t, table, keyvalue.Put(fmt.Appendf(nil, "%d", i), []byte("value")))
	}
	for range 2 {
		for key, want := range map[string]keyvalue.Status{"7": keyvalue.Done, "new": keyvalue.TooLarge} {
			if a := apply(t, table, keyvalue.Put([]byte(key), []byte("eulav"))); a.Status != want {
				t.Errorf("key %s: %v", key, a)
			}
		}
		if a := apply(t, table, keyvalue.Put([]byte("7"), make([]byte, 100))); a.Status != keyvalue.TooLarge {
			t.Errorf("a longer value: %v", a)
		}
		s := table.Snapshot()
		if len(s) < 1000 || len(s) > 4000 {
			t.Errorf("a snapshot of %d bytes", len(s))
		}
		if table = keyvalue.Limited(4000); !table.Restore(s) {
			t.Fatal("it is not restored")
		}
	}
}
