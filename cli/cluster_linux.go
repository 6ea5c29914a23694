package cli

import (
	"os/exec"
	"syscall"
)

// dieWithParent has a child killed when the thread that started it ends, whatever state
// it is in. That thread must be locked to its goroutine.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
