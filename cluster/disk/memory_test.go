package disk_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"parley/cluster/disk"
)

// The disk in memory does what that of the system does, as far as a process that goes on can see.
func TestDisksAreAlike(t *testing.T) {
	for _, c := range []struct {
		name string
		d    disk.Disk
		dir  string
	}{
		{"system", disk.System{}, filepath.Join(t.TempDir(), "new")},
		{"memory", disk.NewMemory(-1), "new"},
	} {
		t.Run(c.name, func(t *testing.T) {
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			names, err := c.d.List(c.dir)
			if must(err); names != nil {
				t.Errorf("no folder, and names %q", names)
			}
			at := func(name string) string { return filepath.Join(c.dir, name) }
			if _, err := c.d.Create(at("a")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a file in no folder: %v", err)
			}
			must(c.d.MkdirAll(c.dir))
			f, err := c.d.Create(at("a"))
			must(err)
			if _, err := c.d.Create(at("a")); !errors.Is(err, fs.ErrExist) {
				t.Errorf("created twice: %v", err)
			}
			must(f.Reserve(100))
			_, err = f.WriteAt([]byte("hello"), 98)
			must(errors.Join(err, f.Sync(), f.Truncate(101)))
			size, err := f.Size()
			if must(errors.Join(err, f.Close())); size != 101 {
				t.Errorf("%d bytes", size)
			}
			must(errors.Join(c.d.Rename(at("a"), at("b")), c.d.SyncDir(c.dir)))
			b, err := disk.ReadFile(c.d, at("b"))
			if must(err); len(b) != 101 || string(b[97:]) != "\x00hel" {
				t.Errorf("read %q", b)
			}
			if _, err := c.d.Open(at("a")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the old name: %v", err)
			}
			lock, err := c.d.Lock(at("lock"))
			must(err)
			if _, err := c.d.Lock(at("lock")); !errors.Is(err, disk.ErrLocked) {
				t.Errorf("locked twice: %v", err)
			}
			must(lock.Close())
			lock, err = c.d.Lock(at("lock"))
			must(errors.Join(err, lock.Close()))
			names, err = c.d.List(c.dir)
			if must(err); !slices.Contains(names, "b") || slices.Contains(names, "a") {
				t.Errorf("names %q", names)
			}
			must(c.d.Remove(at("b")))
			if err := c.d.Remove(at("b")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("removed twice: %v", err)
			}
			if free, err := c.d.Free(c.dir); err != nil || free == 0 {
				t.Errorf("%d bytes free: %v", free, err)
			}
		})
	}
}

// What was not synced is lost in a crash, and so are names whose folder was not.
func TestMemoryForgetsWhatIsNotSynced(t *testing.T) {
	d := disk.NewMemory(-1)
	if err := d.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	file, err := d.Create("d/a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("safe"), 0); err != nil {
		t.Fatal(err)
	}
	if names, _ := d.Crash(nil).List("d"); names != nil {
		t.Errorf("a name that was not synced is left: %q", names)
	}
	if err := errors.Join(file.Sync(), d.SyncDir("d")); err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("lost"), 0); err != nil {
		t.Fatal(err)
	}
	if b, err := disk.ReadFile(d.Crash(nil), "d/a"); err != nil || string(b) != "safe" {
		t.Errorf("read %q: %v", b, err)
	}
	if err := d.Remove("d/a"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Crash(nil).Open("d/a"); err != nil {
		t.Errorf("removed, not synced, and gone: %v", err)
	}
}

// A disk that is full says so, and has what it had.
func TestMemoryIsFull(t *testing.T) {
	d := disk.NewMemory(10)
	if err := d.MkdirAll("d"); err != nil {
		t.Fatal(err)
	}
	f, err := d.Create("d/a")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Reserve(8); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 4), 7); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("11 bytes of 10: %v", err)
	}
	if free, _ := d.Free("d"); free != 2 {
		t.Errorf("%d bytes free, want 2", free)
	}
}
