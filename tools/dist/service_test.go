package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// newRoot returns a folder that shows the root folder of this computer. What is changed in it is gone after the test.
func newRoot(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	mount := func(source, target, kind string, flags uintptr, data string) {
		t.Helper()
		if err := syscall.Mount(source, target, kind, flags, data); err != nil {
			t.Fatalf("mounting %s: %v", target, err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(target, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	}
	layers, root := filepath.Join(dir, "layers"), filepath.Join(dir, "root")
	for _, d := range []string{layers, root} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mount("tmpfs", layers, "tmpfs", 0, "")
	upper, work := filepath.Join(layers, "upper"), filepath.Join(layers, "work")
	if err := errors.Join(os.Mkdir(upper, 0o755), os.Mkdir(work, 0o755)); err != nil {
		t.Fatal(err)
	}
	mount("overlay", root, "overlay", 0, fmt.Sprintf("lowerdir=/,upperdir=%s,workdir=%s", upper, work))
	for _, d := range []string{"dev", "proc"} {
		mount("/"+d, filepath.Join(root, d), "", syscall.MS_BIND|syscall.MS_REC, "")
	}
	return root
}

// within runs a command in a root folder, and returns what it prints.
func within(t *testing.T, root string, command ...string) string {
	t.Helper()
	return output(t, "chroot", append([]string{root}, command...)...)
}

// unit is a systemd unit: what it sets, the last value for each key.
type unit map[string]string

func readUnit(t *testing.T, name string) unit {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	u := make(unit)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			u[key] = value
		}
	}
	return u
}

// command returns ExecStart as systemd would run it: as the user of the unit, in its folder, without privileges and
// without a way to get any.
func (u unit) command() []string {
	return append([]string{
		"setpriv", "--reuid=" + u["User"], "--regid=" + u["Group"], "--clear-groups", "--no-new-privs",
		"--bounding-set=-all", "--inh-caps=-all", "env", "--chdir=" + u["WorkingDirectory"], "--ignore-environment",
	}, strings.Fields(u["ExecStart"])...)
}

// start runs the command in a root folder, and returns when the node has joined.
func (u unit) start(t *testing.T, root string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("chroot", append([]string{root}, u.command()...)...)
	cmd.Stderr = &syncLog{t: t}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // the node ends with this thread
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); !strings.HasPrefix(line, "node a has joined cluster bank,") {
		_ = cmd.Process.Kill() // it has ended, or runs without having joined
		t.Fatalf("got %q (%v), want that the node has joined; %v", line, err, cmd.Wait())
	}
	return cmd
}

// syncLog prints lines into the log of a test.
type syncLog struct{ t *testing.T }

func (l *syncLog) Write(p []byte) (int, error) {
	l.t.Logf("%s", p)
	return len(p), nil
}

const config = `cluster: bank
name: a
listen: 127.0.0.1:7001
api: 127.0.0.1:7101
certificates: certs
data: /var/lib/parley
durable: true
members:
  - {name: a, address: "127.0.0.1:7001", signer: "%s"}
tables:
  - {name: settings, state: keyvalue}
`

// configure makes certificates and a configuration of one node, as docs/how-to/install.md does.
func configure(t *testing.T, root string) {
	t.Helper()
	within(t, root, "parley", "cert", "init", "--cluster", "bank", "--dir", "/srv/authority")
	signer := within(t, root, "parley", "cert", "issue", "a", "--dir", "/srv/authority")
	_, signer, _ = strings.Cut(signer, "ed25519:")
	signer, _, _ = strings.Cut(signer, "\n")
	within(t, root, "parley", "cert", "client", "admin", "--rights", "read,write,admin", "--dir", "/srv/authority")
	within(t, root, "sh", "-ec", "install -d /etc/parley/certs; cd /srv/authority; "+
		"install -o parley -g parley -m 0400 ca.pem crl.pem node-a.pem node-a.key signer-a.key /etc/parley/certs/")
	text := fmt.Sprintf(config, "ed25519:"+signer)
	if err := os.WriteFile(filepath.Join(root, "etc/parley/node.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The .deb is installed into a root folder, its service run as its user there and called, the package installed again and
// removed.
func TestDebServes(t *testing.T) {
	needsRoot(t)
	root := newRoot(t)
	deb := only(t, "parley_*_"+runtime.GOARCH+".deb")
	output(t, "dpkg", "--root="+root, "--install", deb)
	installed(t, root)
	const unitFile = "/usr/lib/systemd/system/parley.service"
	if out := within(t, root, "systemd-analyze", "verify", unitFile); out != "" {
		t.Errorf("systemd-analyze verify prints:\n%s", out)
	}
	output(t, "systemd-analyze", "security", "--offline=true", "--threshold=15", "--no-pager", filepath.Join(root, unitFile))
	u := readUnit(t, filepath.Join(root, unitFile))
	configure(t, root)
	// What systemd makes of StateDirectory and ProtectSystem=strict.
	state := filepath.Join("/var/lib", u["StateDirectory"])
	within(t, root, "install", "-d", "-o", u["User"], "-g", u["Group"], "-m", u["StateDirectoryMode"], state)
	within(t, root, append(u.command(), "--check")...)
	stateDir := filepath.Join(root, state)
	for _, err := range []error{
		syscall.Mount(stateDir, stateDir, "", syscall.MS_BIND, ""),
		syscall.Mount("", root, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	call := func(args ...string) string {
		t.Helper()
		return within(t, root, append([]string{"parley"},
			append(args, "--at", "127.0.0.1:7101", "--certificates", "/srv/authority")...)...)
	}
	end := func(node *exec.Cmd) {
		t.Helper()
		if err := node.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := node.Wait(); err != nil {
			t.Errorf("the node ends with %v", err)
		}
	}
	node := u.start(t, root)
	checkPrivileges(t, node.Process.Pid, root)
	call("status")
	call("table", "put", "settings", "greeting", "hello")
	within(t, root, "sh", "-c", strings.ReplaceAll(u["ExecReload"], "$MAINPID", fmt.Sprint(node.Process.Pid)))
	call("table", "get", "settings", "greeting")
	end(node)
	node = u.start(t, root)
	if got := call("table", "get", "settings", "greeting"); !strings.Contains(got, "hello") {
		t.Errorf("after a restart: got %q, want hello", got)
	}
	end(node)
	for _, err := range []error{
		syscall.Mount("", root, "", syscall.MS_REMOUNT|syscall.MS_BIND, ""), syscall.Unmount(stateDir, 0),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	removed(t, root, deb)
}

// checkPrivileges demands that a process runs as the user of the service, and has and can get no privileges.
func checkPrivileges(t *testing.T, pid int, root string) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	uid := strings.TrimSpace(within(t, root, "id", "-u", "parley"))
	for _, want := range []string{
		"Uid:\t" + uid + "\t" + uid, "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1",
	} {
		if !strings.Contains(string(text), "\n"+want) {
			t.Errorf("the node has no %q:\n%s", want, text)
		}
	}
}

// removed demands that installing again and removing keep the configuration, the certificates and the records.
func removed(t *testing.T, root, deb string) {
	t.Helper()
	before := kept(t, root)
	output(t, "dpkg", "--root="+root, "--install", deb)
	if after := kept(t, root); after != before {
		t.Errorf("after installing again: got\n%swant\n%s", after, before)
	}
	output(t, "dpkg", "--root="+root, "--remove", "parley")
	if after := kept(t, root); after != before {
		t.Errorf("after removing: got\n%swant\n%s", after, before)
	}
	for _, name := range packaged {
		if _, err := os.Stat(filepath.Join(root, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
}

// kept lists what an operator has of a node, with its contents.
func kept(t *testing.T, root string) string {
	t.Helper()
	return within(t, root, "sh", "-ec", "find /etc/parley /var/lib/parley -type f -exec stat -c '%n %U %a' {} + -exec sha256sum {} + | sort")
}
