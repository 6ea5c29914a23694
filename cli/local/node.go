package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/cli/child"
	"parley/cli/client"
	"parley/cli/console"
	"parley/cluster/nodefile"
)

// Node is a node of a local cluster.
type Node struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Address string `json:"address"`
	API     string `json:"api"`
	Metrics string `json:"metrics,omitempty"`
	State   string `json:"state"`
	Config  string `json:"config"` // files
	Log     string `json:"log"`

	file  *nodefile.File
	in    chan struct{} // closed when it reports that it is a member
	ended chan struct{} // closed when it has ended
	state *os.ProcessState
}

// Nodes returns the nodes whose configurations are in the folder.
func Nodes(dir string) ([]*Node, error) {
	first, err := nodefile.Read(client.ConfigOf(dir, client.NodeName(0)))
	if err != nil {
		return nil, err
	}
	var nodes []*Node
	for _, m := range first.Members {
		n := &Node{
			Name: m.Name, Config: client.ConfigOf(dir, m.Name), Log: filepath.Join(dir, m.Name, "log"),
			in: make(chan struct{}), ended: make(chan struct{}),
		}
		f, err := nodefile.Read(n.Config)
		if err != nil {
			return nil, err
		}
		n.file, n.Address, n.API, n.Metrics = f, f.Listen, f.API, f.Metrics
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// renew removes the data of nodes that are not durable: all of them have ended, so they start from scratch. It does
// not remove data outside the folder.
func renew(nodes []*Node) error {
	for _, n := range nodes {
		f := n.file
		if f.Data == "" || f.Durable {
			continue
		}
		data, own := f.Folder(f.Data), filepath.Dir(n.Config)
		if in, err := filepath.Rel(own, data); err != nil || !filepath.IsLocal(in) || in == "." {
			return fmt.Errorf("%s: data: %s: %s is not durable, and begins from scratch each time: a folder in %s was expected",
				n.Config, f.Data, n.Name, own)
		}
		if err := os.RemoveAll(data); err != nil {
			return err
		}
	}
	return nil
}

// start starts the process of a node, which ends with the context and with this process. At its end it sends to gone.
func (n *Node) start(ctx context.Context, gone chan<- struct{}) error {
	p, err := n.Run(ctx)
	if err != nil {
		return err
	}
	n.PID, n.State = p.Pid, "starts"
	go func() {
		select {
		case <-p.in:
			close(n.in)
			<-p.ended
		case <-p.ended:
		}
		n.state = p.state
		close(n.ended)
		gone <- struct{}{}
	}()
	return nil
}

// Process is a process of a node.
type Process struct {
	*os.Process
	in, ended chan struct{}
	state     *os.ProcessState // after the end
	log       string
}

// Run starts a process of a node, which ends with the context and with this process. A node has at most one process
// at a time. The calling goroutine must be locked to its thread.
func (n *Node) Run(ctx context.Context) (*Process, error) {
	cmd, err := child.Command(ctx, n.Name, "node", "--attached", "--config", n.Config)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(n.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	p := &Process{in: make(chan struct{}), ended: make(chan struct{}), log: n.Log}
	cmd.Stdout, cmd.Stderr = &nodeOutput{in: p.in, log: log}, log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	cmd.Cancel, cmd.WaitDelay = stdin.Close, 20*time.Second
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	p.Process = cmd.Process
	go func() {
		_ = cmd.Wait() // an error of the context, if it has ended; the state says which
		p.state = cmd.ProcessState
		_ = log.Close()
		close(p.ended)
	}()
	return p, nil
}

// Joined returns a channel that is closed when the node is a member of all its groups and tables.
func (p *Process) Joined() <-chan struct{} { return p.in }

// Ended returns a channel that is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Ending says how the process has ended, and why as far as the log of its node says so.
func (p *Process) Ending() string { return fmt.Sprintf("%v: %s", p.state, lastWords(p.log)) }

// nodeOutput receives the output of a node. Its first line says that the node is a member.
type nodeOutput struct {
	once sync.Once
	in   chan struct{}
	log  io.Writer
}

func (w *nodeOutput) Write(b []byte) (int, error) {
	w.once.Do(func() { close(w.in) })
	return w.log.Write(b)
}

// startLimit is how long the nodes of a cluster may take to become members.
const startLimit = time.Minute

// Start starts the processes of nodes, which end with the context, and waits until all are members of the cluster. It
// returns false if one of them has ended, if the context has ended, or, with an error that it has reported, if one is
// no member after a minute. The calling goroutine must be locked to its thread.
func Start(ctx context.Context, a *console.App, nodes []*Node) (in bool, err error) {
	gone := make(chan struct{}, len(nodes))
	for _, n := range nodes {
		if err := n.start(ctx, gone); err != nil {
			return false, err
		}
	}
	return awaitMembers(ctx, a, nodes, gone, time.After(startLimit))
}

// awaitMembers waits until all nodes are members of the cluster, one has ended, or it is late. It shows which it waits
// for.
func awaitMembers(ctx context.Context, a *console.App, nodes []*Node, gone <-chan struct{}, late <-chan time.Time,
) (in bool, err error) {
	var waits atomic.Pointer[Node]
	began := time.Now()
	done := a.Progress(time.Second, func() string {
		if n := waits.Load(); n != nil {
			return fmt.Sprintf("waiting for %s to join, %.0f s of %v", n.Name, time.Since(began).Seconds(), startLimit)
		}
		return ""
	})
	defer done()
	for _, n := range nodes {
		waits.Store(n)
		select {
		case <-n.in:
			n.State = "in"
		case <-gone:
			return false, nil
		case <-ctx.Done():
			return false, nil
		case <-late:
			done()
			a.Complain(console.Unfinished,
				fmt.Errorf("%s has not joined the cluster within %v: see %s", n.Name, startLimit, n.Log))
			return false, console.ExitError(console.Unfinished)
		}
	}
	return true, nil
}

// AwaitEnded waits until all nodes have ended, reports those that ended by themselves, and returns whether all ended
// without an error.
func AwaitEnded(ctx context.Context, a *console.App, nodes []*Node) bool {
	var mu sync.Mutex
	var all sync.WaitGroup
	well := true
	for _, n := range nodes {
		if n.PID == 0 {
			continue
		}
		all.Go(func() {
			<-n.ended
			mu.Lock()
			defer mu.Unlock()
			if ctx.Err() == nil || !n.state.Success() {
				well = false
				n.PrintEnd(a)
			}
		})
	}
	all.Wait()
	return well
}

// Ended returns a channel that is closed when the process of the node has ended.
func (n *Node) Ended() <-chan struct{} { return n.ended }

// PrintEnd prints how and why the process of the node has ended.
func (n *Node) PrintEnd(a *console.App) {
	a.Complain(console.Violated, fmt.Errorf("%s has ended: %v: %s", n.Name, n.state, lastWords(n.Log)))
}

// lastWords returns the last line of a log that reports an error, or otherwise its last line, after the name of the
// file.
func lastWords(file string) string {
	b, _ := os.ReadFile(file) // an unreadable file yields no line
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	for _, line := range slices.Backward(lines) {
		if strings.HasPrefix(line, "parley: ") || strings.Contains(line, "level=ERROR") ||
			strings.Contains(line, `"level":"ERROR"`) {
			return file + " says: " + line
		}
	}
	return file + " ends with: " + lines[len(lines)-1]
}
