//go:build unix

package lab

import (
	"os/exec"
	"syscall"
)

// apart keeps Ctrl-C in the terminal from a browser that is started.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
