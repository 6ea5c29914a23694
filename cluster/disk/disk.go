// Package disk abstracts the disk of a node. [System] is the disk of the operating system. The other disks are for
// tests: [Memory] keeps files in memory and, in a crash, loses all data that was not synced. A test can make [Hooked]
// fail, stall, or report that it is full.
package disk

import (
	"errors"
	"io"
)

// Disk holds files in folders. Names are paths of the operating system. Its methods are safe for concurrent
// use.
//
// A new, changed or removed name survives a crash only after SyncDir was called for the folder, and bytes
// only after Sync was called for the file.
type Disk interface {
	// MkdirAll makes a folder and its parents, accessible only to the owner.
	MkdirAll(dir string) error
	// List returns the names in a folder in rising order, and none if the folder does not exist.
	List(dir string) ([]string, error)
	// Create creates a file for reading and writing. It fails with fs.ErrExist if the name exists.
	Create(name string) (File, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// Reopen opens a file for reading and writing.
	Reopen(name string) (File, error)
	// Rename renames a file within its folder. It replaces a file with the new name.
	Rename(from, to string) error
	// Remove removes a file.
	Remove(name string) error
	// SyncDir makes the names in a folder durable.
	SyncDir(dir string) error
	// Lock locks a file until the closer is closed or the process ends. It fails with ErrLocked if the lock
	// is held.
	Lock(name string) (io.Closer, error)
	// Free returns how many bytes can still be written to the file system of a folder.
	Free(dir string) (uint64, error)
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size returns the length in bytes.
	Size() (int64, error)
	// Reserve sets the length of a file to size bytes. If the system supports this, the bytes can then be written
	// even if the disk is full. Bytes that were not written read as zeros.
	Reserve(size int64) error
	// Truncate cuts the file to size bytes.
	Truncate(size int64) error
	// Sync returns when everything written is durable. After an error nothing is known about what was
	// written.
	Sync() error
}

// ErrLocked is the error of Lock while another process, or another holder in this process, has the lock.
var ErrLocked = errors.New("locked by a running process")

// ReadFile returns the contents of a file.
func ReadFile(d Disk, name string) ([]byte, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	b := make([]byte, size)
	if _, err = f.ReadAt(b, 0); errors.Is(err, io.EOF) {
		err = nil
	}
	return b, errors.Join(err, f.Close())
}
