package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Reserve has the blocks allocated, so that a sync of what is written there later has no length and no
// allocation to write down: it takes a half to two thirds of the time of one that has.
func (f systemFile) Reserve(size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return f.Truncate(size)
	}
	if err != nil {
		return &os.PathError{Op: "reserve", Path: f.Name(), Err: err}
	}
	return nil
}

// Sync leaves out the times of the file, which nobody reads.
func (f systemFile) Sync() error {
	for {
		switch err := unix.Fdatasync(int(f.Fd())); {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return &os.PathError{Op: "sync", Path: f.Name(), Err: err}
		default:
			return nil
		}
	}
}
