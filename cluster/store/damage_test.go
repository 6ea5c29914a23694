package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/cluster/disk"
)

// written returns a disk with a store that has a base, closed logs and, with crash, an open one; the model
// of the store; and its last position.
func written(t *testing.T, crash bool) (*disk.Memory, *model, Report) {
	t.Helper()
	d, m := disk.NewMemory(-1), newModel()
	chance := rand.New(rand.NewPCG(3, 4))
	for range 3 { // starts
		s := opened(t, new(owner).options(d))
		books := m.same(t, s, "so far")
		for range 20 { // its logs are merged
			state := fmt.Sprintf("%01000d", len(m.history))
			m.replace(names[0], state)
			must(t, s.Wait(books[names[0]].Replace([]byte(state))))
		}
		for m.scribble(s, books, chance, 100); s.files.at.offset < 1500; { // some syncs
			m.scribble(s, books, chance, 3)
			must(t, s.Wait(uint64(len(m.history)-1)))
		}
		must(t, s.Wait(uint64(len(m.history)-1)))
		left := d
		if crash {
			left = d.Crash(nil)
		}
		must(t, s.Close())
		d = left
	}
	r, err := Verify("dir", d)
	if err != nil || r.Position != uint64(len(m.history)-1) || (r.Tail != nil) != crash {
		t.Fatalf("verified %+v: %v", r, err)
	}
	return d, m, r
}

// blow is one way to damage a file.
type blow struct {
	name   string
	end    int // of the part that it changes
	change func([]byte) []byte
}

func blows(size int) (out []blow) {
	add := func(end int, change func([]byte) []byte, format string, args ...any) {
		out = append(out, blow{fmt.Sprintf(format, args...), end, change})
	}
	for at := 0; at < size; at += 1 + at/(fileHeader+batchHeader)*4 { // all of the first headers
		add(at+1, func(b []byte) []byte { b[at] ^= 1 << (at % 8); return b }, "flip at %d", at)
	}
	for at := 0; at < size; at += 512 {
		add(at+4096, func(b []byte) []byte { clear(b[at:min(at+4096, len(b))]); return b }, "zeros from %d", at)
		add(0, func(b []byte) []byte { return b[:at] }, "cut to %d", at)
	}
	return out
}

// lastSync returns where the last batch begins in the open log.
func lastSync(t *testing.T, d *disk.Memory, r Report) (offset int) {
	t.Helper()
	f, err := d.Open(r.Tail.File)
	must(t, err)
	defer func() { _ = f.Close() }()
	var file uint64
	if _, err := fmt.Sscanf(r.Tail.File, "dir/log-%d", &file); err != nil {
		t.Fatal(err)
	}
	x, wrong, err := read(f, logKind, r.Store, file, r.Tail.Offset)
	if err != nil || wrong != "" {
		t.Fatal(wrong, err)
	}
	for {
		before := int(x.at.offset)
		if wrong, err := x.next(func(entry) error { return nil }); err != nil {
			t.Fatal(err)
		} else if wrong != "" {
			return offset
		}
		offset = before
	}
}

// Any damage in the folder of a store is found: each bit, zeros, truncation and missing files. Either the
// store refuses to open, naming the file and what to do, or it contains everything. Only a store that was
// not closed may lose its tail, if the damage is in the last sync; the position shows it.
func TestStoreFindsDamage(t *testing.T) {
	for _, crash := range []bool{false, true} {
		whole, m, r := written(t, crash)
		files, _ := whole.List("dir")
		kinds := map[string]int{}
		for _, name := range files {
			if name == LockName {
				continue
			}
			path := "dir/" + name
			size := len(bytesOf(t, whole, path))
			from := -1 // the beginning of the last sync, if this is its file
			if crash && path == r.Tail.File {
				from = lastSync(t, whole, r)
				size = int(r.Tail.Offset) + 64
			}
			kinds[name[:4]]++
			if kinds[name[:4]] > 2 && from < 0 {
				continue
			}
			for _, x := range blows(size) {
				d := whole.Crash(nil)
				d.Change(path, x.change)
				if _, err := Verify("dir", d); name == manifestName && !errors.Is(err, ErrDamaged) {
					t.Errorf("crash %v, %s of the manifest: %v", crash, x.name, err)
				}
				judge(t, d, m, r, fmt.Sprintf("crash %v, %s of %s", crash, x.name, path), from >= 0 && x.end > from)
			}
			d := whole.Crash(nil)
			must(t, errors.Join(d.Remove(path), d.SyncDir("dir")))
			judge(t, d, m, r, fmt.Sprintf("crash %v, %s is gone", crash, path), false)
		}
		if kinds["base"] == 0 || kinds["log-"] == 0 || kinds["mani"] != 1 {
			t.Errorf("files of too few kinds: %q", files)
		}
	}
}

func bytesOf(t *testing.T, d *disk.Memory, path string) []byte {
	t.Helper()
	b, err := disk.ReadFile(d, path)
	must(t, err)
	return b
}

// judge opens a store damaged in its last sync (last) or before.
func judge(t *testing.T, d *disk.Memory, m *model, whole Report, what string, last bool) {
	t.Helper()
	r, err := Verify("dir", d)
	var found *Damage
	switch {
	case errors.As(err, &found):
		if !strings.HasPrefix(found.File, "dir/") || !strings.Contains(err.Error(), "--rejoin") {
			t.Fatalf("%s: the error does not help: %v", what, err)
		}
		if s, err := Open("dir", new(owner).options(d)); !errors.Is(err, ErrDamaged) {
			t.Fatalf("%s: it opens although it is damaged: %v, %v", what, err, s.Close())
		}
		return
	case err != nil:
		t.Fatalf("%s: %v", what, err)
	case r.Position != whole.Position && !last:
		t.Fatalf("%s: it ends at %d and not at %d, and says nothing", what, r.Position, whole.Position)
	}
	copied := m.clone()
	s, err := Open("dir", new(owner).options(d))
	if err != nil {
		t.Fatalf("%s: verified, but: %v", what, err)
	}
	copied.same(t, s, what)
	must(t, s.Close())
}

// An old manifest with newer logs is detected, and so is one of another store.
func TestStoreFindsOldManifest(t *testing.T) {
	d, m := disk.NewMemory(-1), newModel()
	var old []byte
	for life := range 2 {
		s := opened(t, new(owner).options(d))
		m.scribble(s, m.same(t, s, "so far"), rand.New(rand.NewPCG(1, uint64(life))), 30)
		must(t, s.Close())
		if life == 0 {
			old = bytesOf(t, d, "dir/manifest")
		}
	}
	d.Change("dir/manifest", func([]byte) []byte { return old })
	if _, err := Verify("dir", d); !errors.Is(err, ErrDamaged) {
		t.Errorf("an old manifest: %v", err)
	}
}

// A folder of the earlier format is refused with instructions, and so is one of a later format.
func TestStoreRefusesOtherFormats(t *testing.T) {
	d := disk.NewMemory(-1)
	must(t, d.MkdirAll("old"))
	for _, name := range []string{"old/000002.log", "old/OPTIONS-000003", "old/marker.manifest.000001.MANIFEST-000001"} {
		if _, err := d.Create(name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open("old", Options{Disk: d}); !errors.Is(err, ErrOldFormat) || !strings.Contains(err.Error(), "without --rejoin") {
		t.Errorf("an old folder: %v", err)
	}
	d, _, _ = written(t, false)
	d.Change("dir/manifest", func(b []byte) []byte { return []byte(strings.Replace(string(b), "store 1", "store 2", 1)) })
	if _, err := Open("dir", Options{Disk: d}); err == nil || !strings.Contains(err.Error(), "the format is 2") {
		t.Errorf("a later folder: %v", err)
	}
}

// Records missing between files are detected by their numbers, even if each file is whole and the manifest,
// too.
func TestStoreFindsGaps(t *testing.T) {
	for _, crash := range []bool{false, true} {
		var whole *disk.Memory
		var old *manifest
		for old == nil || len(old.logs) < 2 { // how many are not merged depends on which commits share a sync
			var err error
			whole, _, _ = written(t, crash)
			old, err = readManifest(whole, "dir")
			must(t, err)
		}
		for gone := range len(old.logs) {
			m := old.clone()
			m.logs = slices.Delete(m.logs, gone, gone+1)
			if gone == len(old.logs)-1 && m.open == 0 {
				continue // this is a shorter store
			}
			d := whole.Crash(nil)
			must(t, m.write(d, "dir"))
			if _, err := Verify("dir", d); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "records are missing between") {
				t.Errorf("crash %v, without log %d: %v", crash, old.logs[gone].file, err)
			}
		}
	}
}
