package live

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"parley/cli/child"
	"parley/cli/client"
	"parley/cli/local"
	"parley/cluster/disk"
)

// CannotPause is the reason why this computer cannot pause nodes; empty if it can.
func CannotPause() string {
	if child.CanHold {
		return ""
	}
	return "this operating system has no signal that pauses a process"
}

// Make makes a cluster on this computer: a temporary folder with certificates and configurations, and relays. A node
// is a process of this program.
func Make(ctx context.Context, n int, level string) (made *Made, err error) {
	if err := child.Allowed("the lab", "a node starts no cluster"); err != nil {
		return nil, err
	}
	sweep(os.TempDir())
	m := &maker{relays: make(map[[2]int]*relay)}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.remove())
		}
	}()
	if m.dir, err = os.MkdirTemp("", "parley-lab-"); err != nil {
		return nil, err
	}
	if m.lock, err = claim(m.dir); err != nil {
		return nil, err
	}
	for a := range n { // the node with the lower number connects
		for b := a + 1; b < n; b++ {
			if m.relays[[2]int{a, b}], err = newRelay(ctx); err != nil {
				delete(m.relays, [2]int{a, b})
				return nil, err
			}
		}
	}
	// Durable nodes can start again after a majority was killed.
	p := local.Plan{N: n, M: (n - 1) / 3, Level: level, Durable: true, Via: m.via}
	if err := p.Make(ctx, m.dir); err != nil {
		return nil, err
	}
	if m.nodes, err = local.Nodes(m.dir); err != nil {
		return nil, err
	}
	for ends, r := range m.relays { // order: each by itself
		r.serve(m.nodes[ends[1]].Address)
	}
	calls := client.Flags{Dir: m.dir, As: "admin", Timeout: Patience}
	if m.clients, err = calls.Open(); err != nil {
		return nil, err
	}
	m.starts = make(chan func())
	m.work.Go(m.launch)
	return &Made{Nodes: m.clients, Start: m.start, Cut: m.cut, Remove: m.remove}, nil
}

// maker is a cluster on this computer.
type maker struct {
	dir     string
	lock    io.Closer         // of the folder, as long as the cluster exists
	relays  map[[2]int]*relay // by the numbers of the nodes, the lower one first
	nodes   []*local.Node
	clients []client.Node
	starts  chan func() // that start a process; closed at the end
	work    sync.WaitGroup
}

// via returns the address at which a node reaches another one. A node never connects to one with a lower number.
func (m *maker) via(from, to int) string {
	return m.relays[[2]int{min(from, to), max(from, to)}].address()
}

func (m *maker) cut(a, b int, on bool) { m.relays[[2]int{min(a, b), max(a, b)}].cut(on) }

// launch starts all processes from one thread. The system kills them when that thread ends, and so when this program
// ends, in whatever way.
func (m *maker) launch() {
	defer child.LockThread()()
	for start := range m.starts {
		start()
	}
}

// started is a process of a node.
type started struct{ *local.Process }

func (p started) Kill() error {
	if err := p.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

func (p started) Pause() error  { return child.Pause(p.Process.Process) }
func (p started) Resume() error { return child.Resume(p.Process.Process) }

// start starts a process of a node.
func (m *maker) start(node int) (p Process, err error) {
	done := make(chan struct{})
	m.starts <- func() {
		defer close(done)
		var one *local.Process
		if one, err = m.nodes[node].Run(context.Background()); err == nil {
			p = started{one}
		}
	}
	<-done
	return p, err
}

// remove removes the cluster. Its processes have ended.
func (m *maker) remove() error {
	if m.starts != nil {
		close(m.starts)
		m.work.Wait()
	}
	client.HangUp(m.clients)
	var errs []error
	for _, r := range m.relays { // order: all are closed
		errs = append(errs, r.close())
	}
	if m.lock != nil {
		errs = append(errs, m.lock.Close()) // some systems remove no open file
	}
	if m.dir != "" {
		errs = append(errs, os.RemoveAll(m.dir))
	}
	return errors.Join(errs...)
}

// A lab locks one file in the folder of its cluster, and then makes the other one.
const (
	lockName = "lab.lock"
	heldName = "lab.locked"
)

// claim locks the folder of a cluster. Only then can sweep find it.
func claim(dir string) (io.Closer, error) {
	lock, err := disk.System{}.Lock(filepath.Join(dir, lockName))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, heldName), nil, 0o600); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// sweep removes the folders of clusters whose labs were killed: nobody locks them.
func sweep(temporary string) {
	files, err := filepath.Glob(filepath.Join(temporary, "parley-lab-*", heldName))
	if err != nil {
		return // the folder has a strange name
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		lock, err := disk.System{}.Lock(filepath.Join(dir, lockName))
		if err != nil {
			continue // its lab runs, or it belongs to another user
		}
		err = os.RemoveAll(dir)
		_ = lock.Close()
		if err != nil { // some systems remove no open file
			_ = os.RemoveAll(dir) // what remains is removed the next time
		}
	}
}
