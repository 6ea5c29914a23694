package parley

import (
	"flag"
	"fmt"
)

// Naming returns the process that the user's text names.
type Naming func(text string) (ID, error)

// Flags makes [Protocol.Flags] for a protocol that is built from a Config. For each set of flags, the result calls
// declare once, with a copy c of def. The function declare defines flags that change c, and returns a function. After
// the flags are parsed, the returned function completes c, and returns an error if a value is not allowed. If a flag
// is not given, c keeps the value of def.
func Flags[C any](def C, declare func(fs *flag.FlagSet, c *C) func(c *C, naming Naming) error,
	build func(C) Protocol,
) func(*flag.FlagSet) func(Naming) (Protocol, error) {
	return func(fs *flag.FlagSet) func(Naming) (Protocol, error) {
		given := def
		complete := declare(fs, &given)
		return func(naming Naming) (Protocol, error) {
			c := given
			if err := complete(&c, naming); err != nil {
				return Protocol{}, err
			}
			return build(c), nil
		}
	}
}

// CheckN returns an error if n is less than least or greater than [MaxProcesses], and nil otherwise.
func CheckN(n, least int) error {
	if n < least || n > MaxProcesses {
		return FlagErrorf("n", "%d processes: allowed are %d to %d", n, least, MaxProcesses)
	}
	return nil
}

// FlagError is an error about the value of one flag.
type FlagError struct {
	Flag string // without dashes
	Err  error
}

// FlagErrorf returns a FlagError with a text formatted as by [fmt.Errorf].
func FlagErrorf(flag, format string, args ...any) error {
	return &FlagError{Flag: flag, Err: fmt.Errorf(format, args...)}
}

func (e *FlagError) Error() string {
	if len(e.Flag) == 1 {
		return "-" + e.Flag + ": " + e.Err.Error()
	}
	return "--" + e.Flag + ": " + e.Err.Error()
}

// Unwrap returns the error without the flag.
func (e *FlagError) Unwrap() error { return e.Err }
