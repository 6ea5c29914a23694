//go:build unix && !linux

package child

import (
	"os/exec"
	"syscall"
)

// dieWithParent keeps signals to this process's group, such as Ctrl-C, from the child: this process ends it. The
// child must notice the end of its standard input.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
