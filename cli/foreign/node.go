package foreign

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"parley/cli/child"
	"parley/internal/envelope"
)

// The largest answer of a program, in lines and in bytes.
const (
	mostLines = 10_000
	mostBytes = 16 << 20
)

var errTooMuch = fmt.Errorf("wrote more than %d lines or %d MiB in one answer", mostLines, mostBytes>>20)

// node is a running program.
type node struct {
	crew *Crew
	cmd  *exec.Cmd
	in   chan []byte
	out  outbox
	end  tail
	gone chan struct{} // the program has ended, and all that it wrote was read
	err  error         // why it could not be started
	stop sync.Once
	busy sync.WaitGroup
}

// begin starts a program.
func begin(c *Crew) *node {
	n := &node{crew: c, in: make(chan []byte), gone: make(chan struct{})}
	n.cmd = exec.Command(c.Command[0], c.Command[1:]...)
	n.out.news = make(chan struct{}, 1)
	child.EndsWithParent(n.cmd)
	n.cmd.WaitDelay = time.Second // a grandchild may hold the pipes
	n.cmd.Stderr = &n.end
	if c.Stderr != nil {
		n.cmd.Stderr = io.MultiWriter(&n.end, c.Stderr)
	}
	stdin, err := n.cmd.StdinPipe()
	if err != nil {
		return n.failed(err)
	}
	reader, writer := io.Pipe()
	n.cmd.Stdout = writer
	started := make(chan error)
	c.starts <- func() { started <- n.cmd.Start() }
	if err := <-started; err != nil {
		return n.failed(err)
	}
	died := make(chan error, 1)
	n.busy.Go(func() { n.write(stdin) })
	n.busy.Go(func() {
		err := n.cmd.Wait()
		child.KillGroup(n.cmd.Process) // it may have started others
		_ = writer.Close()
		died <- err
	})
	n.busy.Go(func() {
		n.read(reader)
		n.out.fail(n.ended(<-died))
		close(n.gone)
	})
	return n
}

func (n *node) failed(err error) *node {
	n.err = err
	close(n.gone)
	return n
}

// ended says how a program ended, and what it wrote last to its standard error.
func (n *node) ended(err error) error {
	how := "ended before the run did"
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		how += ", with " + err.Error()
	}
	if said := n.end.last(); said != "" {
		how += "; its standard error ends with " + quoted(said)
	}
	return fmt.Errorf("%s: it must run until its standard input ends", how)
}

// kill ends the program, and those that it has started.
func (n *node) kill() {
	n.stop.Do(func() {
		select {
		case <-n.gone:
		default:
			child.KillGroup(n.cmd.Process)
		}
		close(n.in)
	})
}

// wait waits until the program has ended.
func (n *node) wait() { n.busy.Wait() }

// write passes lines to the program.
func (n *node) write(to io.WriteCloser) {
	for line := range n.in {
		if _, err := to.Write(line); err != nil {
			break // it has ended, or has closed its standard input: its answer will be missing
		}
	}
	_ = to.Close()
	for range n.in { // the sender must not wait
	}
}

// read collects the lines of the program. After an error it reads on, so that the program is not held up.
func (n *node) read(from io.Reader) {
	lines := bufio.NewReaderSize(from, envelope.MaxLine)
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case err == nil:
			// What was written at once is taken at once: so a line after parley_done is found however fast the machine is.
			all := []string{string(line[:len(line)-1])}
			if rest, _ := lines.Peek(lines.Buffered()); bytes.IndexByte(rest, '\n') >= 0 {
				rest = rest[:bytes.LastIndexByte(rest, '\n')]
				all = append(all, strings.Split(string(rest), "\n")...)
				_, _ = lines.Discard(len(rest) + 1)
			}
			if !n.out.put(all) {
				_, _ = io.Copy(io.Discard, from)
				return
			}
		case errors.Is(err, bufio.ErrBufferFull):
			n.out.fail(fmt.Errorf("wrote a line of more than %d bytes, which begins with %s", envelope.MaxLine,
				quoted(string(line))))
			_, _ = io.Copy(io.Discard, from)
			return
		default:
			if len(line) > 0 {
				n.out.fail(fmt.Errorf("wrote an incomplete last line, %s", quoted(string(line))))
			}
			return
		}
	}
}

// outbox holds the lines that a program has written, until the machine takes them.
type outbox struct {
	sync.Mutex
	lines []string
	bytes int
	err   error // why no line will follow
	news  chan struct{}
}

// put adds lines, and reports whether there was room.
func (o *outbox) put(lines []string) bool {
	o.Lock()
	for _, line := range lines {
		o.bytes += len(line)
	}
	full := len(o.lines)+len(lines) > mostLines || o.bytes > mostBytes
	if !full {
		o.lines = append(o.lines, lines...)
	}
	o.Unlock()
	if full {
		o.fail(errTooMuch)
		return false
	}
	o.tell()
	return true
}

// fail ends the lines. The first reason counts.
func (o *outbox) fail(err error) {
	o.Lock()
	if o.err == nil {
		o.err = err
	}
	o.Unlock()
	o.tell()
}

func (o *outbox) tell() {
	select {
	case o.news <- struct{}{}:
	default:
	}
}

// take returns the first line, or the reason why none will follow.
func (o *outbox) take() (line string, ok bool, err error) {
	o.Lock()
	defer o.Unlock()
	if len(o.lines) == 0 {
		return "", false, o.err
	}
	line, o.lines = o.lines[0], o.lines[1:]
	o.bytes -= len(line)
	return line, true, nil
}

// tail keeps the end of what is written to it.
type tail struct {
	sync.Mutex
	b []byte
}

func (t *tail) Write(b []byte) (int, error) {
	const most = 4 << 10
	t.Lock()
	defer t.Unlock()
	t.b = append(t.b, b[max(0, len(b)-most):]...)
	t.b = append(t.b[:0], t.b[max(0, len(t.b)-most):]...)
	return len(b), nil
}

// last returns the last line that is not empty.
func (t *tail) last() string {
	t.Lock()
	defer t.Unlock()
	return lastLine(string(t.b))
}
