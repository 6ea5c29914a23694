// Package lists applies a function to each element of a list, and returns the list of the results.
package lists

import "iter"

// Of returns the results of a function for the elements of a list, in order. It is nil for an empty list.
func Of[T, U any](list []T, of func(T) U) (out []U) {
	for _, one := range list {
		out = append(out, of(one))
	}
	return out
}

// Each is Of for a sequence, such as the processes of a set.
func Each[T, U any](all iter.Seq[T], of func(T) U) (out []U) {
	for one := range all {
		out = append(out, of(one))
	}
	return out
}
