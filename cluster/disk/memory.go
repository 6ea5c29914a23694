package disk

import (
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// sector is the number of bytes that a disk writes atomically.
const sector = 512

// Memory is a disk in memory. It knows what would survive a power failure: see Crash. It is safe for
// concurrent use.
type Memory struct {
	mu     sync.Mutex
	names  map[string]*memoryFile // by path
	safe   map[string]*memoryFile // the durable names
	dirs   map[string]bool
	locked map[string]bool
	room   int64 // bytes that can be written; negative: unlimited
}

// memoryFile is a file in memory. The disk's lock guards it.
type memoryFile struct {
	data  []byte
	safe  []byte       // the durable contents
	dirty map[int]bool // the sectors written since the last sync
}

// NewMemory returns an empty disk with space for room bytes. A negative room is unlimited.
func NewMemory(room int64) *Memory {
	return &Memory{
		names: make(map[string]*memoryFile), safe: make(map[string]*memoryFile),
		dirs: make(map[string]bool), locked: make(map[string]bool), room: room,
	}
}

// SetFree sets the free space to free bytes.
func (d *Memory) SetFree(free int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = free + d.used()
}

// Crash returns the disk after a power failure. If chance is nil, everything that was not synced is lost. Otherwise
// each unsynced sector and name is lost or kept at random. The disk d does not change.
func (d *Memory) Crash(chance *rand.Rand) *Memory {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := NewMemory(d.room)
	out.dirs = maps.Clone(d.dirs)
	survives := func() bool { return chance != nil && chance.IntN(2) == 0 }
	kept := make(map[*memoryFile]*memoryFile)
	names := maps.Clone(d.safe)
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		if f := d.names[name]; d.safe[name] != f && survives() {
			names[name] = f
		}
	}
	for name := range d.safe {
		if d.names[name] == nil && survives() {
			delete(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f := names[name]
		if kept[f] == nil {
			kept[f] = f.crash(survives)
		}
		out.names[name], out.safe[name] = kept[f], kept[f]
	}
	return out
}

// crash returns what is left of a file.
func (f *memoryFile) crash(survives func() bool) *memoryFile {
	data := slices.Clone(f.safe)
	for _, s := range slices.Sorted(maps.Keys(f.dirty)) {
		begin, end := s*sector, min((s+1)*sector, len(f.data))
		if begin >= end || !survives() {
			continue
		}
		if len(data) < end {
			data = append(data, make([]byte, end-len(data))...)
		}
		copy(data[begin:end], f.data[begin:end])
	}
	return &memoryFile{data: data, safe: slices.Clone(data), dirty: make(map[int]bool)}
}

// MkdirAll makes a folder. Folders are durable immediately.
func (d *Memory) MkdirAll(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for dir = filepath.Clean(dir); !d.dirs[dir]; dir = filepath.Dir(dir) {
		d.dirs[dir] = true
	}
	return nil
}

// List returns the names in a folder.
func (d *Memory) List(dir string) (names []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.names {
		if filepath.Dir(name) == filepath.Clean(dir) {
			names = append(names, filepath.Base(name))
		}
	}
	slices.Sort(names)
	return names, nil
}

func failed(call, name string, err error) error {
	return &fs.PathError{Op: call, Path: name, Err: err}
}

// Create creates a file.
func (d *Memory) Create(name string) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name = filepath.Clean(name)
	switch {
	case d.names[name] != nil:
		return nil, failed("create", name, fs.ErrExist)
	case !d.dirs[filepath.Dir(name)]:
		return nil, failed("create", name, fs.ErrNotExist)
	}
	f := &memoryFile{dirty: make(map[int]bool)}
	d.names[name] = f
	return &openFile{d: d, f: f, name: name, writes: true}, nil
}

// Open opens a file for reading.
func (d *Memory) Open(name string) (File, error) { return d.open(name, false) }

// Reopen opens a file for reading and writing.
func (d *Memory) Reopen(name string) (File, error) { return d.open(name, true) }

func (d *Memory) open(name string, writes bool) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name = filepath.Clean(name)
	f, err := d.find("open", name)
	if err != nil {
		return nil, err
	}
	return &openFile{d: d, f: f, name: name, writes: writes}, nil
}

// find returns a file by its clean name. The caller holds the lock.
func (d *Memory) find(call, name string) (*memoryFile, error) {
	if f := d.names[name]; f != nil {
		return f, nil
	}
	return nil, failed(call, name, fs.ErrNotExist)
}

// Rename renames a file.
func (d *Memory) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	from, to = filepath.Clean(from), filepath.Clean(to)
	f, err := d.find("rename", from)
	if err == nil {
		delete(d.names, from)
		d.names[to] = f
	}
	return err
}

// Remove removes a file.
func (d *Memory) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	name = filepath.Clean(name)
	_, err := d.find("remove", name)
	delete(d.names, name)
	return err
}

// SyncDir makes the names in a folder durable.
func (d *Memory) SyncDir(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir = filepath.Clean(dir)
	for name := range d.safe {
		if filepath.Dir(name) == dir && d.names[name] == nil {
			delete(d.safe, name)
		}
	}
	for name, f := range d.names {
		if filepath.Dir(name) == dir {
			d.safe[name] = f
		}
	}
	return nil
}

// Lock locks a name.
func (d *Memory) Lock(name string) (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked[name] {
		return nil, ErrLocked
	}
	d.locked[name] = true
	return unlock(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.locked, name)
	}), nil
}

type unlock func()

func (u unlock) Close() error {
	u()
	return nil
}

// Free returns how many bytes can still be written.
func (d *Memory) Free(string) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.free(), nil
}

// free returns how many bytes can still be written. The caller holds the lock.
func (d *Memory) free() uint64 {
	if d.room < 0 {
		return 1 << 50
	}
	return uint64(max(0, d.room-d.used()))
}

// used returns the size of all files in bytes. The caller holds the lock.
func (d *Memory) used() (bytes int64) {
	seen := make(map[*memoryFile]bool)
	for _, f := range d.names {
		if !seen[f] {
			bytes += int64(len(f.data))
		}
		seen[f] = true
	}
	return bytes
}

// Change changes the contents of a file durably, for tests of damage. It panics if the file does not exist.
func (d *Memory) Change(name string, change func(data []byte) []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.find("change", filepath.Clean(name))
	if err != nil {
		panic(err)
	}
	f.data = change(f.data)
	f.safe, f.dirty = slices.Clone(f.data), make(map[int]bool)
}

// Unsync makes the disk treat the contents of a file as synced although they are not durable. A system may do the
// same after a failed sync.
func (d *Memory) Unsync(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.names[filepath.Clean(name)]; f != nil {
		f.dirty = make(map[int]bool)
	}
}

// openFile is a handle of a file in memory.
type openFile struct {
	d      *Memory
	f      *memoryFile
	name   string
	writes bool
	closed bool
}

// do executes a call on the handle if possible.
func (o *openFile) do(call string, writes bool, what func() error) error {
	o.d.mu.Lock()
	defer o.d.mu.Unlock()
	switch {
	case o.closed:
		return failed(call, o.name, fs.ErrClosed)
	case writes && !o.writes:
		return failed(call, o.name, fs.ErrPermission)
	}
	return what()
}

func (o *openFile) ReadAt(b []byte, off int64) (n int, err error) {
	err = o.do("read", false, func() error {
		n = copy(b, o.f.data[min(off, int64(len(o.f.data))):])
		if n < len(b) {
			return io.EOF
		}
		return nil
	})
	return n, err
}

func (o *openFile) WriteAt(b []byte, off int64) (n int, err error) {
	err = o.do("write", true, func() error {
		end := int(off) + len(b)
		if err := o.grow("write", end); err != nil {
			return err
		}
		for s := int(off) / sector; s*sector < end; s++ {
			o.f.dirty[s] = true
		}
		n = copy(o.f.data[off:], b)
		return nil
	})
	return n, err
}

// grow extends the file to at least size bytes. The caller holds the lock.
func (o *openFile) grow(call string, size int) error {
	more := size - len(o.f.data)
	if more <= 0 {
		return nil
	}
	if uint64(more) > o.d.free() {
		return failed(call, o.name, syscall.ENOSPC)
	}
	o.f.data = append(o.f.data, make([]byte, more)...)
	return nil
}

func (o *openFile) Close() error {
	return o.do("close", false, func() error {
		o.closed = true
		return nil
	})
}

func (o *openFile) Size() (size int64, err error) {
	err = o.do("size", false, func() error {
		size = int64(len(o.f.data))
		return nil
	})
	return size, err
}

func (o *openFile) Reserve(size int64) error {
	return o.do("reserve", true, func() error { return o.grow("reserve", int(size)) })
}

func (o *openFile) Truncate(size int64) error {
	return o.do("truncate", true, func() error {
		o.f.data = o.f.data[:min(int(size), len(o.f.data))]
		return o.grow("truncate", int(size))
	})
}

// Sync copies only what was written since the last sync, so that many small syncs of a large file are
// cheap.
func (o *openFile) Sync() error {
	return o.do("sync", true, func() error {
		f := o.f
		if len(f.safe) < len(f.data) {
			f.safe = append(f.safe, make([]byte, len(f.data)-len(f.safe))...)
		}
		f.safe = f.safe[:len(f.data)]
		for s := range f.dirty {
			if begin := s * sector; begin < len(f.data) {
				end := min(begin+sector, len(f.data))
				copy(f.safe[begin:end], f.data[begin:end])
			}
		}
		clear(f.dirty)
		return nil
	})
}
