package store

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"parley"
)

// failing is a disk in memory whose files of one kind fail from some time on.
type failing struct {
	vfs.FS
	what  string       // the end of the names of the files in question
	sync  bool         // their syncs fail, else their writes
	after atomic.Int64 // so many of them succeed
	fails atomic.Int64 // and so many have failed
}

var errDisk = errors.New("input/output error")

func (d *failing) now(name string) error {
	if !strings.HasSuffix(name, d.what) || d.after.Add(-1) >= 0 {
		return nil
	}
	d.fails.Add(1)
	return errDisk
}

func (d *failing) wrap(f vfs.File, name string, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return failingFile{f, d, name}, nil
}

func (d *failing) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	return d.wrap(f, name, err)
}

func (d *failing) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.OpenReadWrite(name, c, o...)
	return d.wrap(f, name, err)
}

func (d *failing) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.ReuseForWrite(from, to, c)
	return d.wrap(f, to, err)
}

type failingFile struct {
	vfs.File
	d    *failing
	name string
}

func (f failingFile) synced() error {
	if f.d.sync {
		return f.d.now(f.name)
	}
	return nil
}

func (f failingFile) Sync() error     { return errors.Join(f.synced(), f.File.Sync()) }
func (f failingFile) SyncData() error { return errors.Join(f.synced(), f.File.SyncData()) }

func (f failingFile) SyncTo(n int64) (bool, error) {
	if err := f.synced(); err != nil {
		return false, err
	}
	return f.File.SyncTo(n)
}

func (f failingFile) Write(b []byte) (int, error) {
	if !f.d.sync {
		if err := f.d.now(f.name); err != nil {
			return 0, err
		}
	}
	return f.File.Write(b)
}

// told is what the owner of a store hears.
type told struct {
	mu      sync.Mutex
	durable uint64
	failed  []error
	late    bool // something was durable after the failure
	bad     chan struct{}
}

func (o *told) options(fs vfs.FS) Options {
	o.bad = make(chan struct{})
	return Options{
		Disk: fs,
		Durable: func(upto uint64) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.durable, o.late = upto, o.late || len(o.failed) > 0
		},
		Failed: func(err error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.failed = append(o.failed, err); len(o.failed) == 1 {
				close(o.bad)
			}
		},
	}
}

func (o *told) sees() (uint64, []error, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.durable, o.failed, o.late
}

// inTime runs a function that must not hang.
func inTime(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it hangs: " + what)
	}
}

// A disk that fails, whatever of it: the owner is told once, nothing is durable from then on,
// the disk is not asked again for it, and what was durable is there when it is read anew.
func TestDiskFails(t *testing.T) {
	for _, c := range []struct {
		name string
		what string
		sync bool
		size int
		good int64
	}{
		{"sync of the log", ".log", true, 100, 3},
		{"write of the log", ".log", false, 100, 3},
		{"sync of a table", ".sst", true, 300_000, 0},
		{"write of a table", ".sst", false, 300_000, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem := vfs.NewCrashableMem()
			d := &failing{FS: mem, what: c.what, sync: c.sync}
			d.after.Store(1 << 40)
			var o told
			s, err := Open("dir", o.options(d))
			if err != nil {
				t.Fatal(err)
			}
			b, _, _, err := s.Open("m")
			if err != nil {
				t.Fatal(err)
			}
			var last uint64
			add := func() {
				last = b.Append(parley.Record{Body: fmt.Appendf(nil, "%0*d", c.size, last+1)})
				time.Sleep(100 * time.Microsecond)
			}
			for range 20 {
				add()
			}
			d.after.Store(c.good)
			inTime(t, "the owner is told", func() {
				for {
					select {
					case <-o.bad:
						return
					default:
						add()
					}
				}
			})
			at := d.fails.Load()
			for range 20 {
				add()
			}

			inTime(t, "closing", func() {
				if err := s.Close(); err == nil {
					t.Error("it is closed as if nothing had happened")
				}
			})
			durable, failed, late := o.sees()
			if len(failed) != 1 || !errors.Is(failed[0], errDisk) && !strings.Contains(failed[0].Error(), errDisk.Error()) {
				t.Errorf("the owner is told %v", failed)
			}
			if late || durable < 1 || durable >= last {
				t.Errorf("durable up to %d of %d, after the failure too: %v", durable, last, late)
			}
			t.Logf("durable %d of %d; the disk failed %d times, then %d more", durable, last, at, d.fails.Load()-at)
			again, err := Open("dir", (&told{}).options(mem.CrashClone(vfs.CrashCloneCfg{})))
			if err != nil {
				t.Fatal(err)
			}
			_, _, records, err := again.Open("m")
			if err != nil || uint64(len(records)) < durable {
				t.Errorf("%d records of %d that were durable: %v", len(records), durable, err)
			}
			for i, r := range records {
				if want := fmt.Sprintf("%0*d", c.size, i+1); string(r.Body) != want {
					t.Fatalf("record %d is another one", i+1)
				}
			}
			if err := again.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What is said to be durable is so at that moment: it is there after a loss of power.
func TestDurableIsOnTheDisk(t *testing.T) {
	mem := vfs.NewCrashableMem()
	var o told
	options := o.options(mem)
	check := options.Durable
	clones := 0
	options.Durable = func(upto uint64) {
		check(upto)
		if clones++; clones%20 != 1 {
			return
		}
		again, err := Open("dir", (&told{}).options(mem.CrashClone(vfs.CrashCloneCfg{})))
		if err != nil {
			t.Error(err)
			return
		}
		_, _, records, err := again.Open("m")
		if err != nil || uint64(len(records)) < upto {
			t.Errorf("%d records, and %d were durable: %v", len(records), upto, err)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
	s, err := Open("dir", options)
	if err != nil {
		t.Fatal(err)
	}
	b, _, _, err := s.Open("m")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		b.Append(parley.Record{Body: fmt.Append(nil, i)})
		time.Sleep(200 * time.Microsecond)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if clones < 5 {
		t.Errorf("%d commits", clones)
	}
}
