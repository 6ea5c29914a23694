package cli_test

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a running "parley" command.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	mu  sync.Mutex
	buf bytes.Buffer // its output so far
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.Write(b)
}

func (p *process) printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.String()
}

// begin starts the command and waits until its output contains until.
func begin(t *testing.T, until string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), "parley", args...)}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(os.Interrupt) }
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Wait() }) // the test's folder is removed after that; end may have waited already
	p.wait(until)
	return p
}

// eventually waits up to 60 seconds until so returns true.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

func (p *process) wait(until string) {
	p.t.Helper()
	eventually(p.t, "it has not printed "+until, func() bool {
		// The test below handles a process that has ended.
		return strings.Contains(p.printed(), until) || p.cmd.Process.Signal(syscall.Signal(0)) != nil
	})
	if !strings.Contains(p.printed(), until) {
		p.t.Fatalf("it has not printed %s, but %s", until, p.printed())
	}
}

// end sends a signal and returns the exit status.
func (p *process) end(s os.Signal) int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
	return p.status()
}

func (p *process) status() int {
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

// listens reports whether a TCP connection to the address succeeds.
func listens(address string) bool {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return false
	}
	return c.Close() == nil
}

// upJSON is what "cluster up --json" prints.
type upJSON struct {
	Dir   string
	Nodes []struct {
		Name, Address, API, State, Config, Log string
		PID                                    int
	}
}

func clusterOf(t *testing.T, args ...string) (*process, upJSON) {
	t.Helper()
	p := begin(t, "\n}\n", append([]string{"cluster", "up", "--json"}, args...)...)
	var up upJSON
	if err := json.Unmarshal([]byte(p.printed()), &up); err != nil {
		t.Fatalf("%v: %s", err, p.printed())
	}
	checkJSON(t, []string{"cluster", "up"}, p.printed())
	return p, up
}

// A cluster of real processes starts, prints where its files are, and ends. It can be started again from its folder,
// and inspected.
func TestClusterUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bank")
	for range 2 {
		// The same command starts the existing cluster.
		p, up := clusterOf(t, "--dir", dir, "-n", "3", "--durable")
		if up.Dir != dir || len(up.Nodes) != 3 {
			t.Fatalf("%+v", up)
		}
		for _, n := range up.Nodes {
			if n.State != "in" || n.PID == 0 || !listens(n.Address) || n.API == "" {
				t.Errorf("%+v", n)
			}
			b, err := os.ReadFile(n.Log)
			if err != nil || !strings.Contains(string(b), "node "+n.Name+" has joined cluster local, at "+n.Address+"\n") {
				t.Errorf("%s, %v", b, err)
			}
		}
		if out, stderr, status := run("cluster", "up", "-n", "3", "--dir", dir); status != 0 || stderr != "" ||
			!strings.Contains(out, " runs already") || !strings.Contains(out, up.Nodes[2].API) {
			t.Errorf("up while the cluster runs: got status %d, %s%s; want 0 and its addresses", status, out, stderr)
		}
		if _, stderr, status := run("cluster", "up", "-n", "5", "--dir", dir); status != 2 ||
			!strings.Contains(stderr, "parley: -n: 5, but "+dir+" holds a cluster that keeps its configuration, with 3: omit the flag") {
			t.Errorf("another cluster in the folder: got status %d, %s; want 2", status, stderr)
		}
		out, stderr, status := run("cluster", "down", "--dir", dir)
		if status != 0 || stderr != "" || out != "the cluster in "+dir+" has ended\n" {
			t.Errorf("status %d, %s%s", status, out, stderr)
		}
		for _, n := range up.Nodes {
			if listens(n.Address) {
				t.Errorf("%s goes on", n.Name)
			}
		}
		if status := p.status(); status != 0 {
			t.Errorf("status %d: %s", status, p.printed())
		}
	}
	file := filepath.Join(dir, "node2", "node.yaml")
	out, stderr, status := run("node", "--config", file, "--check")
	if status != 0 || stderr != "" || !strings.HasPrefix(out, "ok   members       3 members, of which 0 may lie;") ||
		strings.Contains(out, "\nbad") || !strings.Contains(out, "\nok   certificates  node node2 of cluster local, valid for 364 days,") {
		t.Errorf("status %d, %s%s", status, out, stderr)
	}
	if _, stderr, status := run("cert", "revoke", "node2", "--dir", filepath.Join(dir, "certs")); status != 0 {
		t.Fatal(stderr)
	}
	out, _, status = run("node", "--config", file, "--check", "--json")
	var checked struct {
		Findings []struct {
			Key, Text string
			Problem   bool
		}
	}
	checkJSON(t, []string{"node"}, out)
	err := json.Unmarshal([]byte(out), &checked)
	if found := checked.Findings; status != 1 || err != nil || len(found) < 4 || !found[1].Problem ||
		found[1].Key != "certificates" || !strings.HasPrefix(found[1].Text, "line 4: revoked: ") {
		t.Errorf("status %d, %v, %s", status, err, out)
	}
	_, stderr, status = run("node", "--config", file)
	if status != 2 || !strings.HasPrefix(stderr, "parley: "+file+":4: certificates: revoked: ") {
		t.Errorf("status %d, %s", status, stderr)
	}
}

// The command reports a node that ends and does not restart it. It fails at its end, and a temporary folder stays for
// diagnosis.
func TestClusterNodeEnds(t *testing.T) {
	p, up := clusterOf(t, "-n", "3")
	defer func() { _ = os.RemoveAll(up.Dir) }()
	killed, err := os.FindProcess(up.Nodes[1].PID)
	if err == nil {
		err = killed.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.wait(`"message":"node2 has ended: `)
	if !listens(up.Nodes[0].Address) {
		t.Error("the others have ended too")
	}
	if status := p.end(os.Interrupt); status != 1 {
		t.Errorf("status %d", status)
	}
	if _, err := os.Stat(up.Nodes[1].Log); err != nil {
		t.Error(err)
	}
}

// The nodes end with the process that started them, however that process ends.
func TestClusterOrphans(t *testing.T) {
	p, up := clusterOf(t, "-n", "3", "--dir", t.TempDir())
	_ = p.end(os.Kill)
	for _, n := range up.Nodes {
		eventually(t, n.Name+" goes on", func() bool { return !listens(n.Address) })
	}
	if _, stderr, status := run("cluster", "down", "--dir", up.Dir); status != 2 || !strings.Contains(stderr, "no cluster runs in") {
		t.Errorf("status %d, %s", status, stderr)
	}
}

// If a node cannot start, the cluster ends and reports why.
func TestClusterFails(t *testing.T) {
	p, up := clusterOf(t, "-n", "2", "--dir", t.TempDir())
	_ = p.end(os.Interrupt)
	l, err := net.Listen("tcp", up.Nodes[1].Address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	p = begin(t, "the logs of the nodes are in "+up.Dir, "cluster", "up", "--dir", up.Dir)
	if status := p.status(); status != 1 || listens(up.Nodes[0].Address) ||
		!strings.Contains(p.printed(), "parley: node2 has ended: exit status 2: ") ||
		!strings.Contains(p.printed(), "members: address: "+up.Nodes[1].Address+" is in use: ") {
		t.Errorf("status %d, %s", status, p.printed())
	}
}

// A node reloads its certificates on a signal, and keeps those in use if it cannot read the new ones. It ends when it
// is interrupted.
func TestNodeReloads(t *testing.T) {
	p, up := clusterOf(t, "-n", "1", "--dir", t.TempDir())
	_ = p.end(os.Interrupt)
	n, certs := up.Nodes[0], filepath.Join(up.Dir, "certs")
	p = begin(t, "node node1 has joined cluster local, at "+n.Address+"\n", "node", "--config", n.Config)
	out, stderr, status := run("cert", "issue", n.Name, "--renew", "--json", "--dir", certs)
	var renewed struct{ Certificates []struct{ Serial string } }
	if err := json.Unmarshal([]byte(out), &renewed); status != 0 || err != nil {
		t.Fatal(err, stderr)
	}
	signal := func() {
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	signal()
	p.wait("certificates reloaded\" serial=" + renewed.Certificates[0].Serial)
	if err := os.Remove(filepath.Join(certs, "node-node1.key")); err != nil {
		t.Fatal(err)
	}
	signal()
	p.wait("level=WARN msg=\"certificates cannot be read; those in use stay\"")
	if status := p.end(os.Interrupt); status != 0 {
		t.Errorf("status %d: %s", status, p.printed())
	}
}

// The examples of the help texts run.
func TestClusterExamples(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, command := range []string{"cluster", "cluster up", "cluster down", "node"} {
		var running *process
		for _, line := range helpExamples(t, command) {
			args := words(line)[1:]
			switch {
			case args[0] == "cluster" && args[1] == "up":
				if running != nil && running.end(os.Interrupt) != 0 {
					t.Errorf("before %s: %s", line, running.printed())
				}
				_ = os.RemoveAll(filepath.Join(dir, "bank"))
				running = begin(t, "Ctrl-C ends it", args...)
			case args[0] == "cluster": // down
				if running == nil {
					running = begin(t, "Ctrl-C ends it", "cluster", "up", "-n", "1", "--dir", "bank")
				}
				if _, stderr, status := run(args...); status != 0 {
					t.Errorf("%s: %s", line, stderr)
				}
				if running.status() != 0 {
					t.Error(running.printed())
				}
				running = nil
			case len(args) == 3: // node --config node.yaml
				running = begin(t, " has joined cluster ", args...)
			default:
				if args[1] == "--config" {
					t.Chdir(filepath.Join(dir, "bank", "node1"))
				}
				if out, stderr, status := run(args...); status != 0 || out == "" {
					t.Errorf("%s: status %d, %s", line, status, stderr)
				}
			}
		}
		if running != nil && running.end(os.Interrupt) != 0 {
			t.Error(running.printed())
		}
	}
}
