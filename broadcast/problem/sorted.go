package problem

import "slices"

// Sorted is a list in the order of keys, each of which is there once.
type Sorted[K any, T interface{ Compare(K) int }] []T

func (l Sorted[K, T]) find(key K) (int, bool) {
	return slices.BinarySearchFunc(l, key, func(x T, key K) int { return x.Compare(key) })
}

// At returns what has a key, nil if nothing does. It stays where it is until something is put in or taken out.
func (l Sorted[K, T]) At(key K) *T {
	if i, there := l.find(key); there {
		return &l[i]
	}
	return nil
}

// Put enters x if nothing has its key. It returns what has, and whether that is new.
func (l *Sorted[K, T]) Put(key K, x T) (at *T, fresh bool) {
	i, there := l.find(key)
	if !there {
		*l = slices.Insert(*l, i, x)
	}
	return &(*l)[i], !there
}

// Drop takes out what has a key.
func (l *Sorted[K, T]) Drop(key K) {
	if i, there := l.find(key); there {
		*l = slices.Delete(*l, i, i+1)
	}
}
