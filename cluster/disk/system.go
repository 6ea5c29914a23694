package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// System is the disk of the operating system.
type System struct{}

// MkdirAll makes a folder and those above it.
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

// Create makes a file.
func (System) Create(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return systemFile{f}, nil
}

// Open opens a file for reading.
func (System) Open(name string) (File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return systemFile{f}, nil
}

// Rename gives a file another name.
func (System) Rename(from, to string) error { return os.Rename(from, to) }

// Remove removes a file.
func (System) Remove(name string) error { return os.Remove(name) }

// Lock takes a file as a lock.
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
type systemFile struct{ *os.File }

func (f systemFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
