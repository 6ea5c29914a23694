package console

import (
	"io"
	"sync"
)

// Output is the standard output of a command. It keeps the first error of writing, so that a command
// whose output is lost says so at its end, whether it looks at the error of each write or not.
type Output struct {
	To io.Writer

	mu  sync.Mutex
	err error
}

// Write writes, until that has failed once: what came after a gap would be read as if there were none.
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

// Failed returns the first error of writing, or nil.
func (o *Output) Failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
