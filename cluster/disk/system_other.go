//go:build !linux

package disk

// Reserve sets the length; where blocks are allocated is left to the system.
func (f *systemFile) Reserve(size int64) error { return f.Truncate(size) }
