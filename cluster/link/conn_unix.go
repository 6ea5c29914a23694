//go:build unix

package link

import (
	"errors"
	"syscall"
)

// canTry says that the system has tryWrite.
const canTry = true

// tryWrite writes what the socket accepts. A short write is not an error.
func tryWrite(fd uintptr, b []byte) (n int, err error) {
	for n < len(b) {
		k, err := syscall.Write(int(fd), b[n:])
		switch {
		case err == nil:
			n += k
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return n, nil
		default:
			return n, err
		}
	}
	return n, nil
}
