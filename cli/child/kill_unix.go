//go:build unix

package child

import (
	"os"
	"syscall"
)

// KillGroup kills a process that was started with EndsWithParent, and the processes that it has started.
func KillGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
