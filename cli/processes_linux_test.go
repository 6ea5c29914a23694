package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// childrenOf returns the processes that a process has started and that still exist.
func childrenOf(t *testing.T, pid int) (children []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, stat := range stats {
		if parent, _ := stateOf(stat); parent == pid {
			child, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
			if err != nil {
				t.Fatal(err)
			}
			children = append(children, child)
		}
	}
	return children
}

// stateOf reads the parent of a process, and whether the process is a zombie.
func stateOf(stat string) (parent int, dead bool) {
	b, _ := os.ReadFile(stat) // a process that has ended has no parent
	_, after, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(after)
	if len(fields) < 2 {
		return 0, true
	}
	parent, _ = strconv.Atoi(fields[1])
	return parent, fields[0] == "Z"
}

// gone waits until the processes no longer exist.
func gone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, fmt.Sprintf("process %d is left", pid), func() bool {
			_, dead := stateOf(fmt.Sprintf("/proc/%d/stat", pid))
			return dead
		})
	}
}

// The processes of a run end with it, however it ends.
func TestProcessesEnd(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // a killed run cannot remove its folder
	for _, signal := range []os.Signal{os.Interrupt, os.Kill} {
		// A long run: it prints nothing before its end.
		p := begin(t, "", "run", "convergence", "--host=cluster", "--tick=1ms")
		var members []int
		eventually(t, "it starts no processes", func() bool {
			members = childrenOf(t, p.cmd.Process.Pid)
			return len(members) == 4
		})
		status := p.end(signal)
		if signal == os.Interrupt && (status != 130 || !strings.Contains(p.printed(), "parley: the run was interrupted\n")) {
			t.Errorf("status %d: %s", status, p.printed())
		}
		gone(t, members)
	}
}
