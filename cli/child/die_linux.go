package child

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill a child, whatever its state, when the thread that started it ends. That thread
// must be locked to its goroutine. Signals to this process's group, such as Ctrl-C, do not reach the child: this
// process ends it, in order.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
