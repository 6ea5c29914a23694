package disk

import (
	"testing"

	"golang.org/x/sys/unix"
)

// The free space of a file system whose best read size is not its block size is not many times too large.
func TestAvailableIsCountedInBlocks(t *testing.T) {
	for _, x := range []struct {
		s    unix.Statfs_t
		want uint64
	}{
		{unix.Statfs_t{Bavail: 10, Bsize: 4096, Frsize: 4096}, 40960},
		{unix.Statfs_t{Bavail: 10, Bsize: 1 << 20, Frsize: 4096}, 40960},
		{unix.Statfs_t{Bavail: 10, Bsize: 4096}, 40960}, // an old system
	} {
		if got := available(&x.s); got != x.want {
			t.Errorf("%d blocks of %d bytes, read %d at a time: %d bytes", x.s.Bavail, x.s.Frsize, x.s.Bsize, got)
		}
	}
}
