package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/cluster/disk"
)

// After a power failure a store holds everything reported durable, and at most a prefix of the records
// appended after that, in order; logs are merged meanwhile.
func TestStoreKeepsDurableRecordsOverCrashes(t *testing.T) {
	merged := 0
	for seed := range uint64(60) {
		chance := rand.New(rand.NewPCG(seed, 1))
		d, m := disk.NewMemory(-1), newModel()
		for life := range 6 {
			var o owner
			s, err := Open("dir", o.options(d))
			if err != nil {
				t.Fatalf("seed %d, life %d: %v", seed, life, err)
			}
			books := m.same(t, s, "after a start")
			m.scribble(s, books, chance, 10+chance.IntN(200))
			closes := chance.IntN(4) == 0
			if closes {
				err = s.Close()
			}
			durable, _, _ := o.sees()
			left := d.Crash(chance)
			if !closes {
				err = s.Close()
			}
			if _, failed, late := o.sees(); err != nil || failed != nil || late {
				t.Fatalf("seed %d: closed: %v, failed %v, late %v", seed, err, failed, late)
			}
			if r, err := Verify("dir", left); err != nil || r.Position < durable {
				t.Fatalf("seed %d: %d of %d are left: %v", seed, r.Position, durable, err)
			}
			if s.files.manifest.base != nil {
				merged++
			}
			d = left
		}
	}
	if merged < 50 {
		t.Errorf("only %d stores had merged their logs", merged)
	}
}

// A record reported durable is durable at that moment.
func TestStoreDurableIsOnDisk(t *testing.T) {
	d, m := disk.NewMemory(-1), newModel()
	var o owner
	options := o.options(d)
	said := 0
	options.Durable = func(upto uint64) {
		said++
		for _, chance := range []*rand.Rand{nil, rand.New(rand.NewPCG(upto, 2))} {
			r, err := Verify("dir", d.Crash(chance))
			if err != nil || r.Position < upto {
				t.Errorf("at %d of %d: %v", r.Position, upto, err)
			}
		}
	}
	s := opened(t, options)
	m.scribble(s, m.same(t, s, "new"), rand.New(rand.NewPCG(1, 1)), 400)
	must(t, s.Close())
	if said < 50 {
		t.Errorf("%d commits", said)
	}
}

// A merge relies only on what is on the disk, and not on a state appended as it began.
func TestStoreMergesDurableRecords(t *testing.T) {
	d, m := disk.NewMemory(-1), newModel()
	var o owner
	var s *Store
	seen := 0
	options := o.options(disk.Hooked{Disk: d, Around: func(op disk.Op, do func() error) error {
		if op.Call == "write" && op.Size != fileHeader && strings.HasPrefix(filepath.Base(op.Name), "log-") {
			if merging := s.files.merging; merging != nil {
				<-merging
				seen++
				var other owner
				left, err := Open("dir", other.options(d.Crash(nil)))
				if err != nil {
					t.Errorf("what is left is not opened: %v", err)
					return do()
				}
				m.clone().same(t, left, "after a merge")
				if err := left.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		return do()
	}})
	var books map[string]*Book
	ended := make(chan struct{})
	options.Durable = func(upto uint64) {
		if upto > 300 {
			close(ended)
			return
		}
		name := names[upto%2]
		state := fmt.Sprintf("%d %0*d", upto, 600, 0)
		m.replace(name, state)
		books[name].Replace([]byte(state))
	}
	s = opened(t, options)
	books = m.same(t, s, "new")
	m.append(names[2], "once")
	books[names[2]].Append(parley.Record{Body: []byte("once")})
	<-ended
	if err := s.Close(); err != nil || seen < 10 {
		t.Errorf("%d merges were looked at: %v", seen, err)
	}
}

// A closed store accepts nothing more, and no call waits for it.
func TestStoreClosed(t *testing.T) {
	s := opened(t, new(owner).options(disk.NewMemory(-1)))
	b := bookOf(t, s, "m")
	must(t, s.Close())
	if err := s.Wait(b.Replace([]byte("late"))); !errors.Is(err, ErrClosed) {
		t.Errorf("a record behind the end: %v", err)
	}
	if err := s.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
}

// What a store contains when it is opened is on the disk, even if the process before ended during the sync,
// or the sync had failed.
func TestStoreSyncsFoundRecords(t *testing.T) {
	for seed := range uint64(20) {
		d, m := disk.NewMemory(-1), newModel()
		var o owner
		broken := errors.New("broken")
		syncs := 0
		s, err := Open("dir", o.options(disk.Hooked{Disk: d, Around: func(op disk.Op, do func() error) error {
			if op.Call == "sync" && strings.HasPrefix(filepath.Base(op.Name), "log-") {
				if syncs++; syncs == 3 {
					d.Unsync(op.Name)
					return broken
				}
			}
			return do()
		}}))
		must(t, err)
		m.scribble(s, m.same(t, s, "new"), rand.New(rand.NewPCG(seed, 3)), 100)
		if err := s.Close(); !errors.Is(err, broken) {
			t.Fatal(err)
		}
		var again owner
		s = opened(t, again.options(d))
		m.same(t, s, "after a failed sync")
		at := s.Position()
		left := d.Crash(nil)
		must(t, s.Close())
		if r, err := Verify("dir", left); err != nil || r.Position != at {
			t.Errorf("seed %d: of %d records %d are left: %v", seed, at, r.Position, err)
		}
	}
}

// A node may be killed between writing a new manifest and its arrival on the disk. What the next start
// finds is made durable before files are removed that only the old manifest needs: the power may fail next.
func TestStoreRemovesNothingThatIsNeeded(t *testing.T) {
	looked := 0
	for seed := range uint64(10) {
		d := disk.NewMemory(-1)
		killed := errors.New("killed")
		over := false
		options := new(owner).options(disk.Hooked{Disk: d, Around: func(op disk.Op, do func() error) error {
			if over && op.Call != "close" {
				return killed
			}
			err := do()
			over = over || op.Call == "rename" && bases(t, d)
			return err
		}})
		options.LogSize = 1 << 10
		s := opened(t, options)
		b := bookOf(t, s, "a")
		for s.Wait(b.Replace(make([]byte, 300))) == nil {
		}
		at := s.Position()
		if err := s.Close(); !errors.Is(err, killed) {
			t.Fatal(err)
		}
		chance := rand.New(rand.NewPCG(seed, 4))
		again := new(owner).options(disk.Hooked{Disk: d, Around: func(op disk.Op, do func() error) error {
			err := do()
			if op.Call == "remove" {
				looked++
				if r, err := Verify("dir", d.Crash(chance)); err != nil || r.Position < at {
					t.Errorf("seed %d: when %s is removed, %d of %d records are left: %v", seed, op.Name, r.Position, at, err)
				}
			}
			return err
		}})
		s = opened(t, again)
		must(t, s.Close())
	}
	if looked < 30 {
		t.Errorf("looked %d times", looked)
	}
}

// bases returns whether the manifest names a base.
func bases(t *testing.T, d *disk.Memory) bool {
	m, err := readManifest(d, "dir")
	if err != nil {
		t.Error(err)
	}
	return m != nil && m.base != nil
}

// A node that is killed again and again does not use more disk space each time.
func TestStoreAfterManyKills(t *testing.T) {
	d, m := disk.NewMemory(-1), newModel()
	for range 3 * manyLogs {
		var o owner
		s := opened(t, o.options(d))
		books := m.same(t, s, "after a kill")
		m.replace(names[0], "life")
		must(t, s.Wait(books[names[0]].Replace([]byte("life"))))
		if s.files.merging != nil {
			<-s.files.merging
		}
		d = d.Crash(nil)
		must(t, s.Close())
	}
	files, err := d.List("dir")
	if err != nil || len(files) > manyLogs+5 {
		t.Errorf("%d files: %v", len(files), err)
	}
	bytes := 0
	for _, name := range files {
		bytes += len(bytesOf(t, d, "dir/"+name))
	}
	if most := 4*(4<<10) + len(files)*(fileHeader+batchHeader+200); bytes > most {
		t.Errorf("%d bytes in %d files, want at most %d", bytes, len(files), most)
	}
}

// However long a state or a merge is, each sync covers no more than a working disk stores within the limit.
func TestStoreSyncsInParts(t *testing.T) {
	d := disk.NewMemory(-1)
	var o owner
	var mu sync.Mutex
	wrote, most := make(map[string]int), 0
	options := o.options(disk.Hooked{Disk: d, Around: func(op disk.Op, do func() error) error {
		mu.Lock()
		switch op.Call {
		case "write":
			wrote[op.Name] += op.Size
			most = max(most, wrote[op.Name])
		case "sync":
			wrote[op.Name] = 0
		}
		mu.Unlock()
		return do()
	}})
	options.Limit = time.Minute
	s := opened(t, options)
	b := bookOf(t, s, "long")
	state := make([]byte, 3*stride)
	for range 4 {
		must(t, s.Wait(b.Replace(state)))
	}
	if err := s.Close(); err != nil || s.files.manifest.base == nil {
		t.Errorf("no merge, or %v", err)
	}
	if most > stride+2*baseBatch {
		t.Errorf("%d bytes are synced at a time", most)
	}
}
