//go:build unix && !linux

package disk

import "golang.org/x/sys/unix"

// available is how many bytes can still be written. On some systems it is below 0 when only the superuser can write.
func available(s *unix.Statfs_t) uint64 {
	return uint64(max(0, int64(s.Bavail))) * uint64(s.Bsize)
}
