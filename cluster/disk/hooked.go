package disk

import "io"

// Op is one call of a disk or of one of its files.
type Op struct {
	// Call is one of mkdir, list, create, open, rename, remove, syncdir, lock, free, and for files read,
	// write, sync, reserve, truncate, close.
	Call string
	Name string // of the file or folder; for rename, the new one
	Size int    // in bytes, for a read or write
}

// Hooked is a disk whose calls go through Around. Normally Around calls do, which makes the call, and returns the
// error of do. If Around returns an error without calling do, the disk fails. If Around does not return, the disk
// stalls. Around may also measure the duration of do.
type Hooked struct {
	Disk
	Around func(op Op, do func() error) error
}

func around[T any](d Hooked, op Op, call func() (T, error)) (out T, err error) {
	err = d.Around(op, func() (err error) {
		out, err = call()
		return err
	})
	return out, err
}

// MkdirAll makes a folder and its parents.
func (d Hooked) MkdirAll(dir string) error {
	return d.Around(Op{Call: "mkdir", Name: dir}, func() error { return d.Disk.MkdirAll(dir) })
}

// List returns the names in a folder.
func (d Hooked) List(dir string) ([]string, error) {
	return around(d, Op{Call: "list", Name: dir}, func() ([]string, error) { return d.Disk.List(dir) })
}

// Create creates a file.
func (d Hooked) Create(name string) (File, error) { return d.open("create", name, d.Disk.Create) }

// Open opens a file for reading.
func (d Hooked) Open(name string) (File, error) { return d.open("open", name, d.Disk.Open) }

// Reopen opens a file for reading and writing.
func (d Hooked) Reopen(name string) (File, error) { return d.open("open", name, d.Disk.Reopen) }

func (d Hooked) open(call, name string, open func(name string) (File, error)) (File, error) {
	f, err := around(d, Op{Call: call, Name: name}, func() (File, error) { return open(name) })
	if err != nil {
		return nil, err
	}
	return hookedFile{f, name, d}, nil
}

// Rename renames a file.
func (d Hooked) Rename(from, to string) error {
	return d.Around(Op{Call: "rename", Name: to}, func() error { return d.Disk.Rename(from, to) })
}

// Remove removes a file.
func (d Hooked) Remove(name string) error {
	return d.Around(Op{Call: "remove", Name: name}, func() error { return d.Disk.Remove(name) })
}

// SyncDir makes the names in a folder durable.
func (d Hooked) SyncDir(dir string) error {
	return d.Around(Op{Call: "syncdir", Name: dir}, func() error { return d.Disk.SyncDir(dir) })
}

// Lock locks a file.
func (d Hooked) Lock(name string) (io.Closer, error) {
	return around(d, Op{Call: "lock", Name: name}, func() (io.Closer, error) { return d.Disk.Lock(name) })
}

// Free returns how many bytes can still be written.
func (d Hooked) Free(dir string) (uint64, error) {
	return around(d, Op{Call: "free", Name: dir}, func() (uint64, error) { return d.Disk.Free(dir) })
}

// hookedFile is a file on a hooked disk.
type hookedFile struct {
	File
	name string
	d    Hooked
}

func (f hookedFile) ReadAt(b []byte, off int64) (int, error) {
	op := Op{Call: "read", Name: f.name, Size: len(b)}
	return around(f.d, op, func() (int, error) { return f.File.ReadAt(b, off) })
}

func (f hookedFile) WriteAt(b []byte, off int64) (int, error) {
	op := Op{Call: "write", Name: f.name, Size: len(b)}
	return around(f.d, op, func() (int, error) { return f.File.WriteAt(b, off) })
}

func (f hookedFile) Sync() error {
	return f.d.Around(Op{Call: "sync", Name: f.name}, f.File.Sync)
}

func (f hookedFile) Reserve(size int64) error {
	return f.d.Around(Op{Call: "reserve", Name: f.name}, func() error { return f.File.Reserve(size) })
}

func (f hookedFile) Truncate(size int64) error {
	return f.d.Around(Op{Call: "truncate", Name: f.name}, func() error { return f.File.Truncate(size) })
}

func (f hookedFile) Close() error {
	return f.d.Around(Op{Call: "close", Name: f.name}, f.File.Close)
}
