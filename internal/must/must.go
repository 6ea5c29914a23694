// Package must ends a piece of work at its first error. It is for the programs of development, which can
// only give up: they need not hand on each error by itself.
//
//	func copied(to, from string) (err error) {
//		defer must.Return(&err)
//		b := must.Get(os.ReadFile(from))
//		return os.WriteFile(to, b, 0o600)
//	}
//
// A function that returns no error may use it too, and says so: it fails by must. Its error comes out where
// Return is deferred further up, in the same goroutine.
package must

import (
	"errors"
	"fmt"
	"sync"
)

// ended is an error on its way to Return.
type ended struct{ error }

// Do ends the work if there is an error.
func Do(err error) {
	if err != nil {
		panic(ended{err})
	}
}

// Failf ends the work with an error.
func Failf(format string, args ...any) { Do(fmt.Errorf(format, args...)) }

// Get returns v. An error ends the work.
func Get[T any](v T, err error) T {
	Do(err)
	return v
}

// Get2 returns v and w. An error ends the work.
func Get2[T, U any](v T, w U, err error) (T, U) {
	Do(err)
	return v, w
}

// Each does something for 0 to n-1, all at the same time, and waits until all of it is done. An error of any ends the
// work.
func Each(n int, do func(i int) error) {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	Do(errors.Join(errs...))
}

// Return is deferred, and makes the error that has ended the work the result of the function. Another error that the
// result is by then, as what was deferred later may set it, is joined to it. Any other panic goes on.
func Return(err *error) {
	switch why := recover().(type) {
	case nil:
	case ended:
		if !errors.Is(*err, why.error) {
			*err = errors.Join(why.error, *err)
		}
	default:
		panic(why)
	}
}
