//go:build !linux

package disk

// Reserve sets the length; the system decides where it allocates blocks.
func (f *systemFile) Reserve(size int64) error { return f.Truncate(size) }
