package cli

import (
	"io"
	"os"
	"sync"
)

// output is the standard output of a command. It keeps the first error of writing, so that a command
// whose output is lost says so at its end, whether it looks at the error of each write or not.
type output struct {
	to io.Writer

	mu  sync.Mutex
	err error
}

// Write writes, until that has failed once: what came after a gap would be read as if there were none.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.to.Write(b)
	o.err = err
	return n, err
}

// failed returns the first error of writing, or nil.
func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// terminal returns the file that the output goes to, if it is one.
func (a *app) terminal() (*os.File, bool) {
	out, ok := a.out.(*output)
	if !ok {
		return nil, false
	}
	f, ok := out.to.(*os.File)
	return f, ok
}
