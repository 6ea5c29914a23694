// Package foreign runs programs in any language as the processes of a simulated run. Package internal/envelope
// defines the lines of text that Parley exchanges with the programs.
package foreign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/cli/child"
	"parley/internal/input"
)

// Options say what a crew runs.
type Options struct {
	Command  []string
	Protocol parley.Protocol   // as envelope.Of returns it
	Settings map[string]string // the flags of the protocol, which init tells to each program
	Name     func(parley.ID) string
	Stderr   io.Writer // what the programs write to their standard error; nil: nowhere
	// Patience is how long a program may take for an answer, and for its start. 0 means 10 s.
	Patience time.Duration
}

// The times that Parley waits for a program that does not say when its answer is complete.
const (
	pause = 20 * time.Millisecond
	// hello is how long a program has after init_ok to say parley_done for the first time. It is long, because a busy
	// computer must not make a run one that cannot be repeated.
	hello = 500 * time.Millisecond
)

// Crew starts programs for runs. Its methods may be called concurrently.
type Crew struct {
	Options
	ctx    context.Context
	starts chan func()
	busy   sync.WaitGroup
	rash   atomic.Bool // some program did not say when its answer was complete
}

// New returns a crew. When ctx ends, all its programs are killed.
func New(ctx context.Context, o Options) (*Crew, error) {
	path, err := exec.LookPath(o.Command[0])
	if err != nil {
		return nil, parley.FlagErrorf("node", "%w", &input.HintError{What: why(err, o.Command[0]),
			Hint: "name a program that can be executed"})
	}
	if o.Protocol.N > child.Most {
		return nil, parley.FlagErrorf("n", "%d programs: allowed are 1 to %d", o.Protocol.N, child.Most)
	}
	o.Command = append([]string{path}, o.Command[1:]...)
	if o.Patience == 0 {
		o.Patience = 10 * time.Second
	}
	c := &Crew{Options: o, ctx: ctx, starts: make(chan func())}
	c.busy.Go(c.start)
	return c, nil
}

// why puts an error of the operating system about a program into words.
func why(err error, program string) string {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Sprintf("there is no program %q", program)
	}
	return fmt.Sprintf("%q cannot be executed", program)
}

// start starts the programs. The end of its thread kills them, so it is locked to the thread until the crew has ended.
func (c *Crew) start() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for one := range c.starts {
		one()
	}
}

// Close releases the crew. All its runs must have ended.
func (c *Crew) Close() {
	close(c.starts)
	c.busy.Wait()
}

// Unrepeatable reports whether a program did not say when its answers were complete, so that a run may depend on the
// speed of this computer.
func (c *Crew) Unrepeatable() bool { return c.rash.Load() }

// Hire returns the function that makes the machines of one run, each of which is a program, and the function that
// kills these programs. The machines panic with a [*Failure] if a program fails.
func (c *Crew) Hire() (hire func(parley.ID) parley.Machine, end func()) {
	var all []*node
	hire = func(self parley.ID) parley.Machine {
		m := newMachine(c, self)
		all = append(all, m.node)
		return m
	}
	return hire, func() {
		for _, n := range all {
			n.kill()
		}
		for _, n := range all {
			n.wait()
		}
	}
}

// Failure is the failure of a program.
type Failure struct {
	Process string // as users see it
	Node    string // its name in lines
	Line    int    // the number of the line that it wrote, from 1; 0: no line
	Text    string // the line
	Err     error
}

func (f *Failure) Error() string {
	who := fmt.Sprintf("%s (%s)", f.Process, f.Node)
	if f.Line == 0 {
		return fmt.Sprintf("the program of %s %v", who, f.Err)
	}
	return fmt.Sprintf("the program of %s wrote %s in its line %d: %v", who, quoted(f.Text), f.Line, f.Err)
}

// Unwrap returns the error without the node and the line.
func (f *Failure) Unwrap() error { return f.Err }

// quoted returns the beginning of a line, in quotes.
func quoted(text string) string {
	const most = 120
	if len(text) <= most {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q and more", text[:most])
}
