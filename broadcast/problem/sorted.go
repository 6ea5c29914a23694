package problem

import "slices"

// Sorted is a list in the order of unique keys.
type Sorted[K any, T interface{ Compare(K) int }] []T

func (l Sorted[K, T]) find(key K) (int, bool) {
	return slices.BinarySearchFunc(l, key, func(x T, key K) int { return x.Compare(key) })
}

// At returns the element with a key, nil if there is none. The pointer is valid until the next Put or Drop.
func (l Sorted[K, T]) At(key K) *T {
	if i, there := l.find(key); there {
		return &l[i]
	}
	return nil
}

// Put inserts x unless key exists. It returns the element with the key, and whether it is new.
func (l *Sorted[K, T]) Put(key K, x T) (at *T, fresh bool) {
	i, there := l.find(key)
	if !there {
		*l = slices.Insert(*l, i, x)
	}
	return &(*l)[i], !there
}

// Drop removes the element with a key, if there is one.
func (l *Sorted[K, T]) Drop(key K) {
	if i, there := l.find(key); there {
		*l = slices.Delete(*l, i, i+1)
	}
}
