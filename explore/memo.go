package explore

// memo holds the values that one worker has computed, by key. A key is at the place of its hash, or in the
// next free one. The zero K must not be used as a key.
type memo[K comparable, V any] struct {
	places []memorized[K, V] // the length is a power of two
	n      int
	hash   func(K) uint64
}

type memorized[K comparable, V any] struct {
	key   K
	value V
}

func newMemo[K comparable, V any](hash func(K) uint64) memo[K, V] {
	return memo[K, V]{places: make([]memorized[K, V], 1<<10), hash: hash}
}

// place returns the place of a key, or the free place for it.
func (m *memo[K, V]) place(key K) *memorized[K, V] {
	var none K
	mask := uint64(len(m.places) - 1)
	for k := m.hash(key) >> 32; ; k++ {
		if p := &m.places[k&mask]; p.key == key || p.key == none {
			return p
		}
	}
}

// of returns the value of a key, and computes it once.
func (m *memo[K, V]) of(key K, compute func() V) V {
	if p := m.place(key); p.key == key {
		return p.value
	}
	value := compute()
	m.add(key, value)
	return value
}

// add stores the value of a key that has none.
func (m *memo[K, V]) add(key K, value V) {
	if m.n++; 4*m.n > 3*len(m.places) {
		old := m.places
		m.places = make([]memorized[K, V], 2*len(old))
		var none K
		for i := range old {
			if old[i].key != none {
				*m.place(old[i].key) = old[i]
			}
		}
	}
	*m.place(key) = memorized[K, V]{key, value}
}

// pair is two numbers; the second is never 0.
type pair [2]uint32

func (p pair) hash() uint64 {
	return uint64(p[0])*0x9e3779b97f4a7c15 + uint64(p[1])*0xc2b2ae3d27d4eb4f
}

func (c clauseInput) hash() uint64 {
	return uint64(c.part)*0x9e3779b97f4a7c15 + uint64(c.in)*0xc2b2ae3d27d4eb4f + uint64(c.now)*0x165667b19e3779f9
}
