//go:build unix && !linux

package disk

import "golang.org/x/sys/unix"

// available returns how many bytes can still be written. On some systems Bavail is negative when only the
// superuser can write.
func available(s *unix.Statfs_t) uint64 {
	return uint64(max(0, int64(s.Bavail))) * uint64(s.Bsize)
}
