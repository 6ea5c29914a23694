package explore

import "testing"

// A memo returns the value stored under a key even if all keys have the same hash and the table grows.
func TestMemo(t *testing.T) {
	for name, hash := range map[string]func(pair) uint64{
		"hashed": pair.hash, "all alike": func(pair) uint64 { return 1<<64 - 1 },
	} {
		m := newMemo[pair, uint32](hash)
		for k := range uint32(3000) {
			key := pair{k % 7, k + 1}
			if value := m.of(key, func() uint32 { return k }); value != k {
				t.Errorf("%s: %d is known before it is put there", name, key)
			}
		}
		for k := range uint32(3000) {
			value := m.of(pair{k % 7, k + 1}, func() uint32 {
				t.Errorf("%s: %d is computed again", name, k)
				return 0
			})
			if value != k {
				t.Errorf("%s: %d instead of %d", name, value, k)
			}
		}
	}
}
