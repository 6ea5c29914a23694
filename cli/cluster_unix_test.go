//go:build unix

package cli_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/cluster/store"
)

// A signal to the whole process group, such as Ctrl-C, does not end the nodes: the process that started them ends
// them, in order. A temporary folder is removed with its cluster.
func TestClusterTemporary(t *testing.T) {
	p, up := clusterOf(t, "-n", "2")
	for _, n := range up.Nodes {
		if group, err := syscall.Getpgid(n.PID); err != nil || group != n.PID {
			t.Errorf("%s, process %d, is in group %d: %v", n.Name, n.PID, group, err)
		}
	}
	if status := p.end(os.Interrupt); status != 0 {
		t.Errorf("status %d: %s", status, p.printed())
	}
	if _, err := os.Stat(up.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", up.Dir, err)
	}
}

// A terminal that closes ends a cluster as Ctrl-C does: nothing is left of its temporary folder.
func TestClusterTerminalCloses(t *testing.T) {
	p, up := clusterOf(t, "-n", "1")
	if status := p.end(syscall.SIGHUP); status != 0 {
		t.Errorf("status %d: %s", status, p.printed())
	}
	if _, err := os.Stat(up.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", up.Dir, err)
	}
}

// Data outside a node's folder is not removed, even though the node restarts from scratch.
func TestDataElsewhereStays(t *testing.T) {
	dir, other := filepath.Join(t.TempDir(), "bank"), t.TempDir()
	p, _ := clusterOf(t, "-n", "1", "--dir", dir)
	if status := p.end(os.Interrupt); status != 0 {
		t.Fatalf("status %d: %s", status, p.printed())
	}
	file := filepath.Join(dir, "node1", "node.yaml")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b = []byte(strings.Replace(string(b), "\ndata: data\n", "\ndata: "+other+"\n", 1))
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "letter"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, status := run("cluster", "up", "--dir", dir); status == 0 || !strings.Contains(stderr, "data: "+other) {
		t.Errorf("status %d: %s", status, stderr)
	}
	if _, err := os.Stat(filepath.Join(other, "letter")); err != nil {
		t.Error(err)
	}
}

// Ctrl-C during the start of a cluster, also pressed twice, ends the command as a later one does, and nothing is left
// of its folder, which has the key of the authority.
func TestInterruptedStart(t *testing.T) {
	for _, c := range []struct {
		status int
		args   []string
	}{
		{0, []string{"cluster", "up", "-n", "4"}},
		{130, []string{"demo", "--once"}},
		{130, []string{"bench", "order", "--dur", "1m", "--dir", ""}},
	} {
		for _, at := range []string{"*", "*/certs", "*/node1/node.yaml", "*/node1/log", "*/node4/log"} {
			dir := t.TempDir()
			t.Setenv("TMPDIR", dir)
			if c.args[0] == "bench" {
				at, c.args[len(c.args)-1] = "*", dir
			}
			p := begin(t, "", c.args...)
			eventually(t, at+" is not made", func() bool {
				made, _ := filepath.Glob(filepath.Join(dir, at))
				return len(made) > 0
			})
			_ = p.cmd.Process.Signal(os.Interrupt)
			if status := p.end(os.Interrupt); status != c.status || strings.Contains(p.printed(), "parley: ") {
				t.Errorf("%s at %s: status %d, not %d: %s", c.args, at, status, c.status, p.printed())
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("%s at %s: %v is left, %v", c.args, at, left, err)
			}
		}
	}
}

// Without a majority a request ends when its time is up: with status 3 and in the same words, whether the clock of the
// node ended first or that of the command.
func TestStatusWithoutMajority(t *testing.T) {
	dir := t.TempDir()
	p, up := clusterOf(t, "-n", "3", "--dir", dir)
	if _, stderr, status := run("table", "put", "table", "a", "b", "--dir", dir); status != 0 {
		t.Fatal(stderr)
	}
	for _, n := range up.Nodes[1:] {
		if err := syscall.Kill(n.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	p.wait("node2 has ended")
	p.wait("node3 has ended")
	for line, want := range map[string]string{
		"table put table q 1":          "parley: table put: no answer came within 300ms, the --timeout\n",
		"broadcast total x --at node1": "parley: node1: no answer came in time (deadline_exceeded; the outcome is unknown)\n",
		"table get table a --at node1": "parley: node1: no answer came in time (deadline_exceeded)\n",
	} {
		for range 5 {
			_, stderr, status := run(append(strings.Fields(line), "--timeout", "300ms", "--dir", dir)...)
			if status != 3 || stderr != want {
				t.Errorf("%s: status %d, %q; want 3, %q", line, status, stderr, want)
			}
		}
	}
	// The node refuses an agreement once it has noticed that the others are gone, and gets no answer before.
	if _, stderr, status := run("agree", "x", "--at", "node1", "--timeout", "300ms", "--dir", dir); status != 3 {
		t.Errorf("agree: status %d, %q; want 3", status, stderr)
	}
	_ = p.end(os.Interrupt)
}

// A pipe in the folder of a node's records is refused by its name, and not waited for.
func TestVerifyPipe(t *testing.T) {
	for _, name := range []string{"manifest", "log-00000009"} {
		dir := t.TempDir()
		records := filepath.Join(dir, "records")
		s, err := store.Open(records, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		pipe := filepath.Join(records, name)
		_ = os.Remove(pipe)
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		stop := time.AfterFunc(10*time.Second, func() { panic("it waits for " + pipe) })
		_, stderr, status := run("node", "verify", "--dir", dir)
		stop.Stop()
		if want := "parley: open " + pipe + ": not a regular file\n"; status != 2 || stderr != want {
			t.Errorf("status %d, %q; want 2, %q", status, stderr, want)
		}
	}
}
