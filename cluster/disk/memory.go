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

// sector is what a disk writes whole or not at all.
const sector = 512

// Memory is a disk in memory. It knows what of it would survive a loss of power: see Crash.
type Memory struct {
	mu     sync.Mutex
	names  map[string]*memoryFile // by path
	safe   map[string]*memoryFile // the names that are durable
	dirs   map[string]bool
	locked map[string]bool
	room   int64 // bytes that can be written; below 0 without bound
}

// memoryFile is a file in memory. The disk's lock guards it.
type memoryFile struct {
	data  []byte
	safe  []byte       // what is durable of it
	dirty map[int]bool // the sectors that were written since the last sync
}

// NewMemory returns an empty disk. At most room bytes fit on it; below 0 there is no bound.
func NewMemory(room int64) *Memory {
	return &Memory{
		names: make(map[string]*memoryFile), safe: make(map[string]*memoryFile),
		dirs: make(map[string]bool), locked: make(map[string]bool), room: room,
	}
}

// SetFree leaves room for free bytes beside those that are there.
func (d *Memory) SetFree(free int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = free + d.used()
}

// Crash returns what is left after a loss of power. What was not synced is lost; with chance given, each sector
// and each name that was not is lost or not by chance. The disk itself is left as it is.
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

// MkdirAll makes a folder. Folders are durable at once.
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

// Create makes a file.
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

// find returns a file by its clean name. The lock is held.
func (d *Memory) find(call, name string) (*memoryFile, error) {
	if f := d.names[name]; f != nil {
		return f, nil
	}
	return nil, failed(call, name, fs.ErrNotExist)
}

// Rename gives a file another name.
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

// Lock takes a name as a lock.
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

// free is how many bytes can still be written. The lock is held.
func (d *Memory) free() uint64 {
	if d.room < 0 {
		return 1 << 50
	}
	return uint64(max(0, d.room-d.used()))
}

// used is how many bytes are in all files. The lock is held.
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

// Change changes the bytes of a file at rest, durably: for tests of damage. It panics if there is no such file.
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

// Unsync has the disk believe that what was written to a file is durable, as a system does after a sync that failed.
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

// do does what the handle is asked for, if it can.
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

// grow gives the file at least so many bytes. The lock is held.
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

// Sync copies what was written since the last one, so that many small syncs of a large file are cheap.
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
