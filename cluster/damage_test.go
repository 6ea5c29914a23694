package cluster_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/cluster"
	"parley/cluster/disk"
	"parley/cluster/store"
)

var updateDamage = flag.Bool("update", false, "rewrite docs/reference/damage.md")

// Outcomes of damage to the folder of one node, while one other node of three is down.
const (
	whole   = "nothing is lost"
	refuses = "refuses to start"
	behind  = "the other node refuses it"
	unknown = "a tail is lost that the other node never saw"
)

// recording is what three nodes have on disk after acknowledged load.
type recording struct {
	disks  [3]*disk.Memory
	dir    string // of the first node
	acked  []acked
	report store.Report // of the first node
}

// acked is an acknowledged put or broadcast, with the position of the first node's disk at that time.
type acked struct {
	key, payload string
	position     uint64
}

// record runs three nodes under load. The second one is stopped while the first one still merges logs and begins
// new ones, and the load continues. The first one has a power failure, and then the third one, which has received
// all positions, is stopped.
func record(t *testing.T, r *rig) (rec recording) {
	ctx := soon(t, 5*time.Minute)
	load := func(from int, until func() bool) {
		t.Helper()
		for node := from; !until(); node = max(from, (node+1)%3) {
			for range 10 {
				k := len(rec.acked)
				a := acked{key: fmt.Sprint("key", k%7), payload: fmt.Sprintf("%d %0500d", k, 0)}
				must(t, second(r.table(0).KeyValue().Put(ctx, []byte(a.key), []byte(a.payload))))
				if k%8 == 0 {
					a.key = ""
					must(t, second(r.nodes[0].Load().Group("g").Broadcast(ctx, []byte(a.payload))))
				}
				a.position = r.nodes[0].Load().Status().Store.Position
				rec.acked = append(rec.acked, a)
			}
			time.Sleep(100 * time.Millisecond) // while checkpoints replace records
		}
	}
	records := filepath.Join(r.configs[0].Dir, "records")
	load(0, func() bool { return files(t, r.disk(0), records).base != "" })
	r.stop(0)
	r.start(0)
	r.back(0)
	r.stop(1)
	last := "" // newest log
	load(0, func() bool {
		f := files(t, r.disk(0), records)
		if last == "" {
			last = f.newest
		}
		report, err := store.Verify(records, r.disk(0).Crash(nil))
		must(t, err)
		return f.newest != last && f.older != "" && f.base != "" && report.Tail.Offset > 16<<10
	})
	time.Sleep(3 * time.Second) // the third one has received all positions
	rec.disks[0] = r.disk(0).Crash(nil)
	r.stop(0)
	time.Sleep(time.Second)
	r.stop(2)
	rec.disks[1], rec.disks[2], rec.dir = r.disk(1), r.disk(2), r.configs[0].Dir
	var err error
	if rec.report, err = store.Verify(records, rec.disks[0]); err != nil || rec.report.Tail == nil {
		t.Fatalf("%+v, %v", rec.report, err)
	}
	return rec
}

// kinds are the names of the files of a store: the newest log, the oldest closed log, and the file into which
// logs were merged.
type kinds struct{ newest, older, base string }

func files(t *testing.T, d disk.Disk, dir string) (f kinds) {
	t.Helper()
	names, err := d.List(dir)
	must(t, err)
	for _, name := range names {
		switch path := filepath.Join(dir, name); {
		case strings.HasPrefix(name, "base-"):
			f.base = path
		case strings.HasPrefix(name, "log-") && f.newest == "":
			f.newest = path
		case strings.HasPrefix(name, "log-"):
			if f.older == "" {
				f.older = f.newest
			}
			f.newest = path
		}
	}
	return f
}

// cell is one kind of damage to the folder of the first node.
type cell struct {
	what, how, part string
	file            string
	tail            bool // the last sync of the newest log is damaged, or everything after some record
	damage          func(d *disk.Memory)
}

// cells returns all kinds of damage to each kind of file, in each of its parts.
func (rec recording) cells(t *testing.T) (all []cell) {
	t.Helper()
	records := filepath.Join(rec.dir, "records")
	f := files(t, rec.disks[0], records)
	mark := filepath.Join(rec.dir, "README.txt")
	for _, of := range []struct{ what, file string }{
		{"newest log", f.newest}, {"older log", f.older}, {"base", f.base}, {"manifest", filepath.Join(records, "manifest")},
		{"mark", mark},
	} {
		size := sizeOf(t, rec.disks[0], of.file)
		newest := of.what == "newest log"
		if newest {
			size = int(rec.report.Tail.Offset)
		}
		for i, part := range []string{"first", "middle", "last"} {
			// The first part begins after the headers, the last one ends with the last sync.
			at := []int{120, size / 2, size - 20}[i]
			zeros := []int{0, size/2 - 2048, size - 4096}[i]
			if size < 4096 { // such a file is one part
				at, zeros = size/2, 0
			}
			add := func(how string, tail bool, change func(b []byte) []byte) {
				all = append(all, cell{of.what, how, part, of.file, newest && tail, func(d *disk.Memory) { d.Change(of.file, change) }})
			}
			add("bit flip", i == 2, func(b []byte) []byte { b[at] ^= 4; return b })
			add("zeroed 4 KiB", i == 2, func(b []byte) []byte { clear(b[max(0, zeros):min(len(b), zeros+4096)]); return b })
			add("cut tail", false, func(b []byte) []byte { return b[:at] })
			if size < 4096 {
				for k := range 3 {
					all[len(all)-1-k].part = ""
				}
				break
			}
		}
		all = append(all,
			cell{of.what, "cut to 0", "", of.file, false, func(d *disk.Memory) {
				d.Change(of.file, func([]byte) []byte { return nil })
			}},
			cell{of.what, "deleted", "", of.file, false, func(d *disk.Memory) { remove(t, d, of.file) }})
	}
	end := int(rec.report.Tail.Offset)
	all = append(all,
		cell{"newest log", "bit flip", "unwritten", f.newest, false, func(d *disk.Memory) {
			d.Change(f.newest, func(b []byte) []byte { b[end+100] ^= 4; return b })
		}},
		cell{"newest log", "zeroed to the end", "middle", f.newest, true, func(d *disk.Memory) {
			d.Change(f.newest, func(b []byte) []byte { clear(b[end/2:]); return b })
		}})
	// The book of incarnations is a record: its newest copy is in one of these files.
	for _, of := range []struct{ what, text string }{{"incarnation", "own "}, {"lives", "saw "}} {
		file, at := rec.find(t, of.text, f)
		for how, change := range map[string]func(b []byte) []byte{
			"bit flip":     func(b []byte) []byte { b[at+6] ^= 1; return b },
			"zeroed 4 KiB": func(b []byte) []byte { clear(b[at:min(len(b), at+4096)]); return b },
			"cut tail":     func(b []byte) []byte { return b[:at] },
		} {
			all = append(all, cell{of.what, how, "", file, false, func(d *disk.Memory) { d.Change(file, change) }})
		}
	}
	all = append(all, cell{"records", "deleted", "", records, false, func(d *disk.Memory) {
		names, err := d.List(records)
		must(t, err)
		for _, name := range names {
			remove(t, d, filepath.Join(records, name))
		}
	}}, cell{"nothing", "", "", rec.dir, false, func(*disk.Memory) {}})
	slices.SortStableFunc(all, func(a, b cell) int { return strings.Compare(a.what+a.how, b.what+b.how) })
	return all
}

// sizeOf returns how much of a file is written, without the zeros of reserved space.
func sizeOf(t *testing.T, d *disk.Memory, file string) int {
	t.Helper()
	b, err := disk.ReadFile(d, file)
	must(t, err)
	return len(bytes.TrimRight(b, "\x00"))
}

func remove(t *testing.T, d *disk.Memory, file string) {
	t.Helper()
	must(t, errors.Join(d.Remove(file), d.SyncDir(filepath.Dir(file))))
}

// find returns the position of the newest record with a text.
func (rec recording) find(t *testing.T, text string, f kinds) (file string, at int) {
	t.Helper()
	names, err := rec.disks[0].List(filepath.Dir(f.newest))
	must(t, err)
	slices.Reverse(names) // logs before bases, newer ones first
	for _, name := range names {
		file = filepath.Join(filepath.Dir(f.newest), name)
		b, err := disk.ReadFile(rec.disks[0], file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if at = bytes.LastIndex(b, []byte(text)); at >= 0 {
			return file, at
		}
	}
	t.Fatalf("no record has %q", text)
	return "", 0
}

// TestDamageMatrix damages each kind of file of a node's folder in each way, while one other node of three is
// down. Either the node refuses to start, with an advice, or it has everything that it acknowledged. Only if the
// end of the newest log is damaged, which looks like a power failure, it starts without that end; then a node
// that has received its position refuses it, and nothing else is lost. docs/reference/damage.md has the table.
func TestDamageMatrix(t *testing.T) {
	var table strings.Builder
	bubble(t, func(t *testing.T) {
		r := newRig(t, 3, func(c *cluster.Config) {
			withTable(true)(c)
			c.Groups = []cluster.GroupConfig{{Name: "g"}}
			c.Test().LogSize, c.Test().Compact = 24<<10, 16
		})
		rec := record(t, r)
		t.Logf("%d acknowledged, up to record %d, byte %d of %s", len(rec.acked), rec.report.Position,
			rec.report.Tail.Offset, rec.report.Tail.File)
		for _, c := range rec.cells(t) {
			var outcomes [3]string
			for other := 1; other < 3; other++ {
				outcomes[other] = rec.judge(t, r, c, other)
			}
			if t.Failed() {
				return
			}
			row := fmt.Sprintf("| %s | %s | %s | %s | %s |\n", c.what, c.how, c.part, outcomes[1], outcomes[2])
			table.WriteString(strings.ReplaceAll(row, "  ", " "))
		}
	})
	t.Logf("\n%s", table.String())
	compareDamage(t, table.String())
}

// judge damages a copy of the first node's disk, starts that node with one other, and returns the outcome.
func (rec recording) judge(t *testing.T, r *rig, c cell, other int) (outcome string) {
	t.Helper()
	name := fmt.Sprintf("%s: %s %s, with node %d", c.what, c.how, c.part, other)
	d := rec.disks[0].Crash(nil)
	c.damage(d)
	report, verified := store.Verify(filepath.Join(rec.dir, "records"), d.Crash(nil))
	if errors.Is(verified, store.ErrDamaged) || c.what == "records" {
		rec.refuses(t, r, d, c, name)
		return refuses
	} else if verified != nil {
		t.Errorf("%s: %v", name, verified)
		return ""
	}
	lost := report.Position < rec.report.Position
	if lost && !c.tail {
		t.Errorf("%s: records %d to %d are missing, and nobody says so", name, report.Position+1, rec.report.Position)
	}
	for i := range 3 {
		r.configs[i].Disk = rec.disks[i].Crash(nil)
	}
	r.configs[0].Disk = d
	r.start(other)
	defer func() { r.stop(other) }()
	why := make(chan error, 10)
	config := r.configs[0]
	config.Broken = func(err error) { why <- err }
	node, err := cluster.Join(t.Context(), config)
	if err == nil {
		defer func() { _ = node.Close() }()
		err = rec.reads(t, node, report.Position, why)
	}
	switch {
	case err == nil && lost:
		return unknown
	case err == nil:
		return whole
	case errors.Is(err, cluster.ErrStaleIncarnation) && lost && strings.Contains(err.Error(), "--rejoin"):
		return behind
	}
	t.Errorf("%s: %v", name, err)
	return ""
}

// refuses requires that the node does not start, and names the damaged file, the position, and what to do.
func (rec recording) refuses(t *testing.T, r *rig, d *disk.Memory, c cell, name string) {
	t.Helper()
	config := r.configs[0]
	config.Disk = d
	node, err := cluster.Join(t.Context(), config)
	if err == nil {
		t.Errorf("%s: it starts: %v", name, node.Close())
		return
	}
	want := []string{c.file, "--rejoin"}
	var found *store.Damage
	if c.what == "records" {
		want[0] = rec.dir
	} else if !errors.As(err, &found) {
		t.Errorf("%s: %v", name, err)
		return
	}
	if found != nil && found.Offset >= 0 {
		want = append(want, "byte "+strconv.FormatInt(found.Offset, 10))
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v does not say %q", name, err, text)
		}
	}
}

// reads requires everything that was acknowledged up to a position of the node's disk. If the node fails, it
// returns why.
func (rec recording) reads(t *testing.T, node *cluster.Node, position uint64, why <-chan error) error {
	ctx := soon(t, 10*time.Second)
	values, payloads := make(map[string]string), make(map[string]bool)
	for _, a := range rec.acked {
		if a.position > position {
			break
		}
		if a.key == "" {
			payloads[a.payload] = true
		} else {
			values[a.key] = a.payload
		}
	}
	fails := func(err error) error {
		select {
		case stopped := <-why:
			return stopped
		case <-time.After(5 * time.Second):
			return err
		}
	}
	for key, want := range values {
		got, _, err := node.Table("t").KeyValue().Get(ctx, []byte(key))
		if err != nil {
			return fails(fmt.Errorf("%s: %w", key, err))
		}
		if n, m := number(string(got)), number(want); n < m {
			return fails(fmt.Errorf("%s: write %d is lost, there is %d", key, m, n))
		}
	}
	s, err := node.Group("g").Subscribe(1)
	if err != nil {
		return fails(err)
	}
	defer func() { _ = s.Close() }()
	for len(payloads) > 0 {
		one, err := s.Next(ctx)
		if err != nil {
			return fails(fmt.Errorf("%d broadcasts are lost: %w", len(payloads), err))
		}
		delete(payloads, string(one.Payload))
	}
	select {
	case stopped := <-why:
		return stopped
	case <-time.After(3 * time.Second): // the others have sent everything that they know
		return nil
	}
}

// number parses the number of the write in a key or a payload.
func number(payload string) (n int) {
	if _, err := fmt.Sscan(payload, &n); err != nil {
		return -1
	}
	return n
}

// compareDamage compares the table with the one in docs.
func compareDamage(t *testing.T, table string) {
	t.Helper()
	const file, head = "../docs/reference/damage.md", "| --- | --- | --- | --- | --- |\n"
	b, err := os.ReadFile(file)
	must(t, err)
	text, kept, ok := strings.Cut(string(b), head)
	if *updateDamage && ok {
		must(t, os.WriteFile(file, []byte(text+head+table), 0o644))
	} else if kept != table {
		t.Errorf("%s is not what comes of damage now; -update accepts it:\n%s", file, table)
	}
}
