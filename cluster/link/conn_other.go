//go:build !unix

package link

import "errors"

// canTry says that the system has no tryWrite: the connection's own goroutine does all writing.
const canTry = false

func tryWrite(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }
