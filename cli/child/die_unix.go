//go:build unix && !linux

package child

import (
	"os/exec"
	"syscall"
)

// dieWithParent leaves it to the child to see its standard input end. Signals to the group
// of processes that this one is in, as by Ctrl-C, do not reach the child: this one ends it.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
