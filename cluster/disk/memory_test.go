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

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// To a process that continues, the disk in memory behaves like the system's.
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
			names, err := c.d.List(c.dir)
			if must(t, err); names != nil {
				t.Errorf("no folder, and names %q", names)
			}
			at := func(name string) string { return filepath.Join(c.dir, name) }
			if _, err := c.d.Create(at("a")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a file in no folder: %v", err)
			}
			must(t, c.d.MkdirAll(c.dir))
			f, err := c.d.Create(at("a"))
			must(t, err)
			if _, err := c.d.Create(at("a")); !errors.Is(err, fs.ErrExist) {
				t.Errorf("created twice: %v", err)
			}
			must(t, f.Reserve(100))
			_, err = f.WriteAt([]byte("hello"), 98)
			must(t, errors.Join(err, f.Sync(), f.Truncate(101)))
			size, err := f.Size()
			if must(t, errors.Join(err, f.Close())); size != 101 {
				t.Errorf("%d bytes", size)
			}
			must(t, errors.Join(c.d.Rename(at("a"), at("b")), c.d.SyncDir(c.dir)))
			b, err := disk.ReadFile(c.d, at("b"))
			if must(t, err); len(b) != 101 || string(b[97:]) != "\x00hel" {
				t.Errorf("read %q", b)
			}
			if _, err := c.d.Open(at("a")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the old name: %v", err)
			}
			lock, err := c.d.Lock(at("lock"))
			must(t, err)
			if _, err := c.d.Lock(at("lock")); !errors.Is(err, disk.ErrLocked) {
				t.Errorf("locked twice: %v", err)
			}
			must(t, lock.Close())
			lock, err = c.d.Lock(at("lock"))
			must(t, errors.Join(err, lock.Close()))
			names, err = c.d.List(c.dir)
			if must(t, err); !slices.Contains(names, "b") || slices.Contains(names, "a") {
				t.Errorf("names %q", names)
			}
			must(t, c.d.Remove(at("b")))
			if err := c.d.Remove(at("b")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("removed twice: %v", err)
			}
			if free, err := c.d.Free(c.dir); err != nil || free == 0 {
				t.Errorf("%d bytes free: %v", free, err)
			}
		})
	}
}

// A crash loses what was not synced, and names in folders that were not synced.
func TestMemoryForgetsUnsyncedData(t *testing.T) {
	d := disk.NewMemory(-1)
	must(t, d.MkdirAll("d"))
	file, err := d.Create("d/a")
	must(t, err)
	if _, err := file.WriteAt([]byte("safe"), 0); err != nil {
		t.Fatal(err)
	}
	if names, _ := d.Crash(nil).List("d"); names != nil {
		t.Errorf("a name that was not synced is left: %q", names)
	}
	must(t, errors.Join(file.Sync(), d.SyncDir("d")))
	if _, err := file.WriteAt([]byte("lost"), 0); err != nil {
		t.Fatal(err)
	}
	if b, err := disk.ReadFile(d.Crash(nil), "d/a"); err != nil || string(b) != "safe" {
		t.Errorf("read %q: %v", b, err)
	}
	must(t, d.Remove("d/a"))
	if _, err := d.Crash(nil).Open("d/a"); err != nil {
		t.Errorf("removed, not synced, and gone: %v", err)
	}
}

// A full disk returns an error, and keeps its contents.
func TestMemoryIsFull(t *testing.T) {
	d := disk.NewMemory(10)
	must(t, d.MkdirAll("d"))
	f, err := d.Create("d/a")
	must(t, err)
	must(t, f.Reserve(8))
	if _, err := f.WriteAt(make([]byte, 4), 7); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("11 bytes of 10: %v", err)
	}
	if free, _ := d.Free("d"); free != 2 {
		t.Errorf("%d bytes free, want 2", free)
	}
}
