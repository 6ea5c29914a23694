// Package lists makes lists of other ones.
package lists

import "iter"

// Of returns what a function makes of each element of a list, in its order; nil if there is none.
func Of[T, U any](list []T, of func(T) U) (out []U) {
	for _, one := range list {
		out = append(out, of(one))
	}
	return out
}

// Each is Of, of a sequence, as that of the processes of a set.
func Each[T, U any](all iter.Seq[T], of func(T) U) (out []U) {
	for one := range all {
		out = append(out, of(one))
	}
	return out
}
