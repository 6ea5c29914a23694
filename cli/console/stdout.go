package console

import (
	"io"
	"sync"
)

// Output is the standard output of a command. It keeps the first write error, so that a command whose output is lost
// reports that at its end, even if it ignores the errors of its writes.
type Output struct {
	To io.Writer

	mu  sync.Mutex
	err error
}

// Write writes b unless a write has failed before: output after a gap would look as if nothing were missing.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.To.Write(b)
	o.err = err
	return n, err
}

// Failed returns the first write error, or nil.
func (o *Output) Failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
