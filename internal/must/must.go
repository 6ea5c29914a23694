// Package must ends a function at its first error, without an if statement after every call. It is for development
// programs that stop at every error.
//
//	func copied(to, from string) (err error) {
//		defer must.Return(&err)
//		b := must.Get(os.ReadFile(from))
//		return os.WriteFile(to, b, 0o600)
//	}
//
// A function that returns no error may use this package, too. Its doc comment must say: "It fails by must." Then one
// of the function's callers must defer Return, in the same goroutine, and return the error.
package must

import (
	"errors"
	"fmt"
	"sync"
)

// ended carries an error to Return.
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

// Each calls do for 0 to n-1 concurrently, and waits until all calls have returned. An error of any of them ends the
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

// Return must be deferred. It makes the error that has ended the work the result of the function. If the result is
// another error by then, set by a function deferred later, it joins the two. Any other panic continues.
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
