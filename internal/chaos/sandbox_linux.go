package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"parley/internal/must"
)

// inSandbox is set in the environment of the process inside a sandbox.
const inSandbox = "PARLEY_CHAOS_CELL"

// needs says what a sandbox requires.
const needs = "it needs Linux, root, /dev/net/tun, loop devices, mount and mkfs.ext4"

// enterSandbox starts this program again with its own processes and mounts, waits for it, and returns its exit
// status. When that process ends, in whatever way, all its child processes and mounts disappear, as do the networks
// of its threads. Inside a sandbox it starts nothing, and returns false.
func enterSandbox(ctx context.Context) (status int, entered bool, err error) {
	if os.Getenv(inSandbox) != "" {
		return 0, false, furnish()
	}
	if err := possible(); err != nil {
		return 0, true, fmt.Errorf("%w: %s", err, needs)
	}
	runtime.LockOSThread() // the child ends with the thread
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...) //nolint:gosec // it starts itself
	cmd.Env = append(os.Environ(), inSandbox+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	err = cmd.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return exit.ExitCode(), true, nil
	}
	return 0, true, err
}

// possible returns an error that says what is missing for a sandbox.
func possible() error {
	if os.Geteuid() != 0 {
		return errors.New("this is not root")
	}
	for _, file := range []string{"/dev/net/tun", "/dev/loop-control"} {
		if _, err := os.Stat(file); err != nil {
			return err
		}
	}
	for _, tool := range []string{"mount", "mkfs.ext4"} {
		if _, err := exec.LookPath(tool); err != nil {
			return err
		}
	}
	return nil
}

// furnish makes the mounts that only the sandbox has.
func furnish() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts of its own: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	return nil
}

// sandbox is an environment in which each node has its own network and disk.
type sandbox struct {
	*network
	dir   string
	disks int // the number of mounted disks
}

func (c *sandbox) mount(i int) string { return filepath.Join(c.dir, nodeName(i), "disk") }

func (c *sandbox) listen(i int) (nodes, api, metrics string) {
	return c.address(i) + ":7000", "127.0.0.1:8000", "127.0.0.1:9000"
}

func (c *sandbox) data(i int) string { return filepath.Join(c.mount(i), "data") }

func (c *sandbox) start(i int, cmd *exec.Cmd) error { return c.spaces[i].do(cmd.Start) }

func (c *sandbox) dial(ctx context.Context, i int, network, address string) (net.Conn, error) {
	return c.spaces[i].dial(ctx, network, address)
}

// close unmounts the disks. The networks disappear with the process.
func (c *sandbox) close() (err error) {
	for i := range c.disks {
		err = errors.Join(err, unix.Unmount(c.mount(i), unix.MNT_DETACH))
	}
	return err
}

// newEnvironment makes the networks and disks of n nodes.
func newEnvironment(
	ctx context.Context, dir string, n int, seed uint64,
) (w environment, nw faultyNetwork, disks []faultyDisk, err error) {
	defer must.Return(&err)
	c := &sandbox{network: must.Get(newNetwork(n, seed)), dir: dir}
	for i := range n {
		disks = append(disks, must.Get(newDisk(ctx, filepath.Join(dir, nodeName(i)+".disk"), c.mount(i))))
	}
	c.disks = len(disks)
	return c, c.network, disks, nil
}
