package child

import (
	"os/exec"
	"syscall"
)

// dieWithParent has a child killed when the thread that started it ends, whatever state
// it is in. That thread must be locked to its goroutine. Signals to the group of processes
// that this one is in, as by Ctrl-C, do not reach the child: this one ends it, in order.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
