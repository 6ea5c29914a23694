// Package disk abstracts the disk of a node. [System] is the disk of the operating system;
// [Memory] lies in memory and forgets what was not synced, and [Hooked] fails, fills up or
// stalls, so that tests reach every state in which a disk can leave a node.
package disk

import (
	"errors"
	"io"
)

// Disk holds files in folders. Names are paths of the operating system. Its methods may be
// called at the same time.
//
// A new name, a changed name and a removed one survive a crash only when SyncDir has been
// called for the folder, and bytes only when Sync has been called for the file.
type Disk interface {
	// MkdirAll makes a folder and those above it, for the owner alone.
	MkdirAll(dir string) error
	// List returns the names in a folder in rising order, and none if there is no such folder.
	List(dir string) ([]string, error)
	// Create makes a file that can be read and written. It fails with fs.ErrExist if the name is taken.
	Create(name string) (File, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// Reopen opens a file for reading and writing.
	Reopen(name string) (File, error)
	// Rename gives a file another name in the same folder, which it takes from the file that had it.
	Rename(from, to string) error
	// Remove removes a file.
	Remove(name string) error
	// SyncDir makes the names in a folder durable.
	SyncDir(dir string) error
	// Lock takes a file as a lock until the closer is closed or the process ends. It fails with ErrLocked
	// if somebody has it.
	Lock(name string) (io.Closer, error)
	// Free returns how many bytes can still be written where a folder lies.
	Free(dir string) (uint64, error)
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size returns the length in bytes.
	Size() (int64, error)
	// Reserve makes a file of so many bytes, all of which can be written without the disk being full
	// where the system can promise that. What was not written reads as zeros.
	Reserve(size int64) error
	// Truncate cuts the file to so many bytes.
	Truncate(size int64) error
	// Sync returns when all that was written is durable. After an error nothing is known of what was written.
	Sync() error
}

// ErrLocked is the error of Lock while another process, or another holder in this one, has the lock.
var ErrLocked = errors.New("locked by a running process")

// ReadFile returns what is in a file.
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
