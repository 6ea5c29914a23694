//go:build !unix

package child

import "os/exec"

// dieWithParent does nothing: the child must notice the end of its standard input.
func dieWithParent(*exec.Cmd) {}
