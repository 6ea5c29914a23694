package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
)

// System is the disk of the operating system.
type System struct{}

// MkdirAll makes a folder and its parents.
func (System) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o700) }

// List returns the names in a folder.
func (System) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// Create creates a file.
func (System) Create(name string) (File, error) { return open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL) }

// Open opens a file for reading.
func (System) Open(name string) (File, error) { return openRegular(name, os.O_RDONLY) }

// Reopen opens a file for reading and writing.
func (System) Reopen(name string) (File, error) { return openRegular(name, os.O_RDWR) }

// openRegular opens a regular file. To open a pipe would wait for its other end.
func openRegular(name string, flag int) (File, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	return open(name, flag)
}

func open(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return &systemFile{File: f}, nil
}

// Rename renames a file.
func (System) Rename(from, to string) error { return os.Rename(from, to) }

// Remove removes a file.
func (System) Remove(name string) error { return os.Remove(name) }

// Lock locks a file.
func (System) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// systemFile is a file of the operating system.
type systemFile struct {
	*os.File

	mu       sync.Mutex
	reserved int64 // allocated bytes, to be written ahead
	written  int64 // bytes up to the end of what was ever written
}

// ahead is the size of the blocks of zeros that are written before there are data for them.
const ahead = 512 << 10

var zeros [ahead]byte

// WriteAt writes b, and fills the reserved space after it with zeros up to the next multiple of ahead. A
// file system marks each allocated but unwritten block as reading as zeros. It changes this mark, in its
// journal, when the block is first written and synced: so this happens once for all these blocks, and not
// in every sync.
func (f *systemFile) WriteAt(b []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	end := off + int64(len(b))
	first := end > f.written
	f.written = max(f.written, end)
	n, err := f.File.WriteAt(b, off)
	if err != nil || !first {
		return n, err
	}
	if fill := min((end+ahead-1)/ahead*ahead, f.reserved) - end; fill > 0 {
		if _, err := f.File.WriteAt(zeros[:fill], end); err != nil {
			return n, err
		}
		f.written = end + fill
	}
	return n, nil
}

func (f *systemFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
