package child

import "os/exec"

// EndsWithParent makes a program of the user end when the thread that starts it ends, where the operating system can do
// this. Signals to the group of this process, such as Ctrl-C, do not reach the program.
func EndsWithParent(cmd *exec.Cmd) { dieWithParent(cmd) }
