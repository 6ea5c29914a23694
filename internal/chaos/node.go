package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// node is one of the nodes, with at most one process at a time.
type node struct {
	id     int
	w      environment
	binary string
	config string // files
	log    string

	mu    sync.Mutex
	life  *life // the last process
	lives int
}

// life is a process of a node.
type life struct {
	cmd   *exec.Cmd
	stdin io.Closer
	in    chan struct{} // closed when it reports that it is a member
	ended chan struct{} // closed when it has ended and was waited for
	meant bool          // it was ended on purpose
	once  sync.Once

	mu   sync.Mutex
	said string // its last output
}

// Write takes the output of the process: that it is a member, or how often it has lied.
func (l *life) Write(b []byte) (int, error) {
	l.once.Do(func() { close(l.in) })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = strings.TrimSpace(string(b))
	return len(b), nil
}

// last returns the last output of the process.
func (l *life) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said
}

func newNode(id int, dir, binary string, w environment) *node {
	return &node{
		id: id, w: w, binary: binary, config: configFile(dir, id), log: filepath.Join(dir, nodeName(id), "log"),
	}
}

// begin starts the process, with additional flags. It ends with this process.
func (n *node) begin(flags ...string) error {
	//nolint:noctx // it is ended by signals
	return n.run(exec.Command(n.binary, append([]string{"node", "--attached", "--config", n.config}, flags...)...))
}

// beginLiar starts a process of another program that has the node's key and folder, and lies. It ends with this
// process.
func (n *node) beginLiar(program string, seed uint64) error {
	cmd := exec.Command(program) //nolint:noctx // it is ended by signals
	cmd.Env = append(os.Environ(), liarFile+"="+n.config, fmt.Sprintf("%s=%d", liarSeed, seed))
	return n.run(cmd)
}

// run starts a process of the node.
func (n *node) run(cmd *exec.Cmd) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.life; l != nil && !closed(l.ended) {
		return fmt.Errorf("%s runs", nodeName(n.id))
	}
	log, err := os.OpenFile(n.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	l := &life{cmd: cmd, in: make(chan struct{}), ended: make(chan struct{})}
	l.cmd.Env = append(cmd.Environ(), "PARLEY_NODE="+nodeName(n.id))
	l.cmd.Stdout, l.cmd.Stderr = l, log
	if l.stdin, err = l.cmd.StdinPipe(); err != nil {
		return errors.Join(err, log.Close())
	}
	if err := n.w.start(n.id, l.cmd); err != nil {
		return errors.Join(err, log.Close())
	}
	n.life = l
	n.lives++
	go func() {
		_ = l.cmd.Wait() // the state has the result
		_ = log.Close()
		close(l.ended)
	}()
	return nil
}

// now returns the current process, or nil before the first.
func (n *node) now() *life {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.life
}

// runs reports whether there is a process, paused or not.
func (n *node) runs() bool {
	l := n.now()
	return l != nil && !closed(l.ended)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// await waits until the node reports that it is a member.
func (n *node) await(ctx context.Context) error {
	l := n.now()
	select {
	case <-l.in:
		return nil
	case <-l.ended:
		return fmt.Errorf("%s has ended before it was in: %v: see %s", nodeName(n.id), l.cmd.ProcessState, n.log)
	case <-ctx.Done():
		return fmt.Errorf("%s is not in: %w: see %s", nodeName(n.id), context.Cause(ctx), n.log)
	}
}

// signal sends the process a signal. meant says that the signal must end it.
func (n *node) signal(s syscall.Signal, meant bool) error {
	l := n.now()
	n.mu.Lock()
	l.meant = l.meant || meant
	n.mu.Unlock()
	return l.cmd.Process.Signal(s)
}

// kill ends the process immediately, whatever its state, and waits until it has ended.
func (n *node) kill() error { return n.endBy(context.Background(), syscall.SIGKILL) }

// end sends SIGTERM to the process and waits until it has ended.
func (n *node) end(ctx context.Context) error { return n.endBy(ctx, syscall.SIGTERM) }

// endBy ends the process by a signal, and waits until it has ended.
func (n *node) endBy(ctx context.Context, s syscall.Signal) error {
	if !n.runs() {
		return nil
	}
	if err := n.signal(s, true); err != nil {
		return err
	}
	select {
	case <-n.now().ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s does not end when it is asked to: %w", nodeName(n.id), context.Cause(ctx))
	}
}

// dead returns an error if the process has ended, but not on purpose.
func (n *node) dead() error {
	l := n.now()
	n.mu.Lock()
	defer n.mu.Unlock()
	if closed(l.ended) && !l.meant {
		return fmt.Errorf("%s has ended by itself: %v: see %s", nodeName(n.id), l.cmd.ProcessState, n.log)
	}
	return nil
}

// within returns a context that ends after some time.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("not within %v", d))
}
