package explore

import "testing"

// What was put under a key stands there, also if all keys have one hash and the table grows.
func TestMemo(t *testing.T) {
	for name, hash := range map[string]func(pair) uint64{
		"hashed": pair.hash, "all alike": func(pair) uint64 { return 1<<64 - 1 },
	} {
		m := newMemo[pair, uint32](hash)
		for k := range uint32(3000) {
			key := pair{k % 7, k + 1}
			if _, known := m.of(key); known {
				t.Errorf("%s: %d is known before it is put there", name, key)
			}
			m.add(key, k)
		}
		for k := range uint32(3000) {
			if value, known := m.of(pair{k % 7, k + 1}); !known || value != k {
				t.Errorf("%s: %d, %t instead of %d", name, value, known, k)
			}
		}
	}
}
