package store

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/cluster/disk"
)

// A store updates the free space of its disk every second and after each new log, not at each commit; its
// errors name the folder. If the disk cannot say, the last value stays.
func TestStoreKnowsTheRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := disk.NewMemory(-1)
		var asked atomic.Int64
		var unknown atomic.Bool
		options := new(owner).options(disk.Hooked{Disk: mem, Around: func(op disk.Op, do func() error) error {
			if op.Call == "free" {
				if asked.Add(1); unknown.Load() {
					return errors.ErrUnsupported
				}
			}
			return do()
		}})
		options.LogSize = 32 << 10
		s := opened(t, options)
		b := bookOf(t, s, "m")
		room := func(needed uint64, want string) {
			t.Helper()
			err := s.Room(needed)
			var e *RoomError
			if short := errors.As(err, &e); short != (want != "") || short && !strings.Contains(err.Error(), want) {
				t.Errorf("room for %d: %v, want %q", needed, err, want)
			}
		}
		room(RoomWarn, "")
		mem.SetFree(200 << 20)
		time.Sleep(roomInterval + 1)
		room(RoomWarn, "200 MiB are free in dir, and 256 MiB are needed")
		room(RoomRefuse, "")
		before := asked.Load()
		commit := func(times int) {
			t.Helper()
			for range times {
				must(t, s.Wait(b.Replace(make([]byte, 100))))
			}
		}
		commit(200)
		if asked.Load() != before {
			t.Errorf("the disk was asked %d times for its room in 200 commits", asked.Load()-before)
		}
		mem.SetFree(63 << 20)
		room(RoomRefuse, "") // no check has run
		commit(100)          // a log becomes full
		room(RoomRefuse, "and 64 MiB are needed")
		if got := s.Stats().Free; got>>20 != 62 || asked.Load() != before+1 {
			t.Errorf("%d bytes are free, asked %d times", got, asked.Load()-before)
		}
		mem.SetFree(1 << 30)
		unknown.Store(true)
		time.Sleep(roomInterval + 1)
		room(RoomRefuse, "62 MiB")
		unknown.Store(false)
		time.Sleep(roomInterval + 1)
		room(RoomWarn, "")
		must(t, s.Close())
	})
}

// Logs are merged while there is space for what counts and a new log, even on a nearly full disk: this
// frees space.
func TestStoreMergesForRoom(t *testing.T) {
	const logSize = 16 << 10
	for _, c := range []struct {
		free   int64
		merges bool
	}{{5 * logSize, true}, {3*logSize + 200, false}} {
		mem := disk.NewMemory(-1)
		options := new(owner).options(mem)
		options.LogSize = logSize
		s := opened(t, options)
		b := bookOf(t, s, "m")
		mem.SetFree(c.free)
		for s.files.header.number < 4 {
			must(t, s.Wait(b.Replace(make([]byte, 1000))))
		}
		must(t, s.Close())
		if got := s.files.manifest.base != nil; got != c.merges {
			t.Errorf("%d bytes free: merged %v, want %v", c.free, got, c.merges)
		}
	}
}

// If a state is longer than a log, more must be free so that requests in flight complete, also if the state
// was appended before the last start, because the next one will be as long.
func TestStoreNeedsMoreForLongStates(t *testing.T) {
	mem := disk.NewMemory(-1)
	options := new(owner).options(mem)
	options.LogSize = 1 << 20
	s := opened(t, options)
	b := bookOf(t, s, "m")
	for _, x := range []struct {
		state int
		least uint64
	}{
		{1 << 10, RoomRefuse}, {3 << 20, RoomRefuse + 4<<20}, {1 << 10, RoomRefuse + 4<<20},
		{2 << 20, RoomRefuse + 4<<20},
	} {
		must(t, s.Wait(b.Replace(make([]byte, x.state))))
		if least := s.Least(); least < x.least || least > x.least+1<<10 {
			t.Errorf("after a state of %d bytes %d must be free", x.state, least)
		}
	}
	must(t, s.Close())
	options = new(owner).options(mem)
	options.LogSize = 1 << 20
	s = opened(t, options)
	if least, want := s.Least(), uint64(RoomRefuse+2<<20); least < want || least > want+1<<10 {
		t.Errorf("after a start with a state of %d bytes %d must be free, want %d", 2<<20, least, want)
	}
	must(t, s.Close())
}

// A store whose files are removed while it is in use ends within a second, and names one of them: what it
// writes to a file without a name would be lost with the process. Files that the store itself removes are
// not missed.
func TestStoreMissesItsFiles(t *testing.T) {
	for _, name := range []string{manifestName, "log-00000001", ""} {
		synctest.Test(t, func(t *testing.T) {
			mem := disk.NewMemory(-1)
			var write func()
			var changes atomic.Bool
			options := new(owner).options(disk.Hooked{Disk: mem, Around: func(op disk.Op, do func() error) error {
				if op.Call == "list" && changes.Load() {
					write()
				}
				return do()
			}})
			options.LogSize = 32 << 10
			s := opened(t, options)
			b := bookOf(t, s, "m")
			write = func() { // logs are closed, merged and removed
				for range 300 {
					if err := s.Wait(b.Replace(make([]byte, 1000))); err != nil {
						t.Error(err)
						return
					}
				}
				synctest.Wait()
			}
			write()
			if name == "" {
				changes.Store(true)
				time.Sleep(5 * roomInterval)
			}
			if name == "log-00000001" {
				name = slices.Max(slices.DeleteFunc(s.neededFiles(), func(name string) bool { return name == manifestName }))
			}
			if name != "" {
				must(t, mem.Remove("dir/"+name))
			}
			time.Sleep(roomInterval + 1)
			err := s.failure()
			if name == "" && err != nil || name != "" && (!errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "dir/"+name+": it was removed")) {
				t.Errorf("without %q: %v", name, err)
			}
			if err := s.Close(); (err != nil) != (name != "") {
				t.Errorf("without %q: Close: %v", name, err)
			}
		})
	}
}
