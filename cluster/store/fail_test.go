package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"parley/cluster/disk"
)

// failing is a disk of which one call fails or never returns and, if the disk is gone, each call after it.
type failing struct {
	calls atomic.Int64
	from  int64
	gone  bool
	err   error         // nil: calls do not return
	end   chan struct{} // calls that do not return wait until it is closed
	what  string        // the call
	// merges reports that logs are being merged, beside commits; after is the names in calls that failed or
	// wait.
	merges atomic.Bool
	after  sync.Map
}

func (f *failing) around(op disk.Op, do func() error) error {
	if strings.Contains(op.Name, "base-") {
		f.merges.Store(true)
	}
	k := f.calls.Add(1)
	switch {
	case k == f.from:
		f.what = op.Call + " " + op.Name
	case k < f.from, op.Call == "lock", !f.gone:
		return do()
	}
	f.after.Store(op.Name, true)
	if f.err != nil {
		return f.err
	}
	<-f.end
	return syscall.EIO
}

// If any call to the disk fails, stalls, or finds it full or read-only, the owner is notified once, waiting
// calls return the error, nothing is durable from then on, Open and Close return, and everything durable
// before remains.
func TestStoreStopsWhenTheDiskFails(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		gone bool
	}{
		{"one input/output error", syscall.EIO, false},
		{"input/output errors", syscall.EIO, true},
		{"full", syscall.ENOSPC, true},
		{"read-only", syscall.EROFS, true},
		{"no answer", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			opened, calls := 0, int64(1)
			for ; ; calls++ {
				var ended bool
				f := &failing{from: calls, gone: c.gone, err: c.err}
				synctest.Test(t, func(t *testing.T) { ended = f.try(t, &opened) })
				if ended {
					break
				}
			}
			if opened < 40 || calls-int64(opened) < 5 {
				t.Errorf("%d of %d failures were in an open store", opened, calls)
			}
		})
	}
}

// try makes one call fail; ended means that there are fewer calls than that.
func (f *failing) try(t *testing.T, opened *int) (ended bool) {
	mem := disk.NewMemory(-1)
	f.end = make(chan struct{}) // of this bubble
	defer close(f.end)
	var o owner
	m := newModel()
	began := time.Now()
	options := o.options(disk.Hooked{Disk: mem, Around: f.around})
	options.LogSize = 1 << 10
	s, failed := Open("dir", options)
	if failed == nil {
		*opened++
		books := m.same(t, s, "new")
		m.scribble(s, books, rand.New(rand.NewPCG(5, 6)), 40)
		for range 10 { // enough to merge logs
			state := fmt.Sprintf("%0900d", len(m.history))
			m.replace(names[0], state)
			if s.Wait(books[names[0]].Replace([]byte(state))) != nil {
				break
			}
		}
		if wait := s.Wait(uint64(len(m.history) - 1)); wait == nil && f.what != "" && f.what != "free dir" && !f.merging() {
			t.Errorf("%s fails, and all is durable", f.what)
		}
		if failed = s.Close(); failed == nil && f.what == "" {
			return true
		}
	}
	synctest.Wait()
	if took := time.Since(began); took > 5*time.Second+time.Second {
		t.Errorf("%s: it took %v", f.what, took)
	}
	durable, told, late := o.sees()
	reads := strings.HasPrefix(f.what, "free") // unknown free space stops only a start
	switch {
	case failed == nil && !reads:
		t.Errorf("%s fails, and nobody is told", f.what)
	case f.err == nil && failed != nil && !strings.Contains(failed.Error(), "goroutine store."+doer(failed)):
		t.Errorf("%s: the error does not say what is left: %v", f.what, failed)
	case failed != nil && !f.named(failed):
		t.Errorf("%s: the error does not name the file: %v", f.what, failed)
	case f.err != nil && failed != nil && !errors.Is(failed, f.err):
		t.Errorf("%s: %v", f.what, failed)
	case len(told) > 1 || late:
		t.Errorf("%s: told %v, late %v", f.what, told, late)
	}
	crashes := uint64(3)
	if strings.HasPrefix(f.what, "syncdir") {
		crashes = 20 // names are few
	}
	for seed := range crashes {
		chance := rand.New(rand.NewPCG(seed, 9))
		if seed == 0 {
			chance = nil // everything that was not synced is lost
		}
		f.survives(t, mem.Crash(chance), m.clone(), durable)
	}
	return false
}

// named returns whether an error contains the name of a file of which a call failed, or waits.
func (f *failing) named(err error) (named bool) {
	f.after.Range(func(name, _ any) bool {
		named = strings.Contains(err.Error(), name.(string))
		return !named
	})
	return named
}

// merging returns whether the call was a merge's, or may have been: commits do not wait for merges.
func (f *failing) merging() bool {
	for _, call := range []string{"open", "read", "close"} { // a merge begins by reading logs
		if strings.HasPrefix(f.what, call+" dir/log-") {
			return true
		}
	}
	return f.merges.Load()
}

// doer returns the goroutine that an error must name, or the beginning of its name.
func doer(err error) string {
	for _, call := range []string{"create", "write"} {
		if strings.Contains(err.Error(), "to a "+call+" of dir/base-") {
			return "files.merge"
		}
	}
	return ""
}

// survives checks that everything durable is on a disk.
func (f *failing) survives(t *testing.T, left *disk.Memory, m *model, durable uint64) {
	r, verified := Verify("dir", left)
	if verified != nil || r.Position < durable {
		t.Errorf("%s: %d of %d are left: %v", f.what, r.Position, durable, verified)
	}
	again, reopened := Open("dir", new(owner).options(left))
	if reopened != nil {
		t.Errorf("%s: %v", f.what, reopened)
		return
	}
	m.same(t, again, f.what)
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// A merge in progress when a commit fails makes no further disk calls.
func TestStoreAsksNothingOfAFailedDisk(t *testing.T) {
	merges, failed := make(chan struct{}), make(chan struct{})
	var after atomic.Int64
	options := Options{LogSize: 1 << 10, Failed: func(error) { close(failed) }, Disk: disk.Hooked{
		Disk: disk.NewMemory(-1),
		Around: func(op disk.Op, do func() error) error {
			base := strings.HasPrefix(filepath.Base(op.Name), "base-")
			select {
			case <-failed:
				if op.Call != "close" {
					after.Add(1)
				}
				return do()
			default:
			}
			if base && op.Call == "create" {
				close(merges)
				<-failed
			}
			select {
			case <-merges:
				if !base {
					return syscall.EIO
				}
			default:
			}
			return do()
		},
	}}
	s := opened(t, options)
	b := bookOf(t, s, "m")
	for s.Wait(b.Replace(make([]byte, 100))) == nil {
	}
	if err := s.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("closed: %v", err)
	}
	if n := after.Load(); n > 0 {
		t.Errorf("%d calls after the failure", n)
	}
}

// A slow disk is no failure if its calls stay below the limit.
func TestStoreBearsASlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o owner
		s, err := Open("dir", o.options(disk.Hooked{Disk: disk.NewMemory(-1), Around: func(op disk.Op, do func() error) error {
			if op.Call == "sync" {
				time.Sleep(4 * time.Second)
			}
			return do()
		}}))
		must(t, err)
		b := bookOf(t, s, "m")
		if err := s.Wait(b.Replace([]byte("x"))); err != nil {
			t.Error(err)
		}
		if st := s.Stats(); st.Err != nil || st.Slowest != 4*time.Second || st.Durable != 1 {
			t.Errorf("%+v", st)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
