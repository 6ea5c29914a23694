package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/internal/must"
)

const (
	written = 1000 // records
	early   = 980  // the newest log is also copied after this many records
	draws   = 10   // how often a damage with a position is done, each time at another one
)

// folder is a copy of the files of a candidate, to be damaged.
type folder struct {
	newest, older string // files; older is empty if there is none
	early         []byte // the earlier content of the newest file, if it existed then
	draw          *rand.Rand
}

// damages are all damages done to a folder. A function returns false if it does not apply.
var damages = []struct {
	name  string
	draws int
	do    func(f *folder) bool
}{
	{"bit flip in the first third", draws, func(f *folder) bool { return f.change(f.newest, 0, flip) }},
	{"bit flip in the middle third", draws, func(f *folder) bool { return f.change(f.newest, 1, flip) }},
	{"bit flip in the last third", draws, func(f *folder) bool { return f.change(f.newest, 2, flip) }},
	{"4 KiB zeroed in the middle", draws, func(f *folder) bool { return f.change(f.newest, 1, zero) }},
	{"tail cut in the middle", draws, func(f *folder) bool { return f.change(f.newest, 1, cut) }},
	{"as it was 20 records before", 1, func(f *folder) bool {
		return f.early != nil && os.WriteFile(f.newest, f.early, 0o600) == nil
	}},
	{"cut to 0", 1, func(f *folder) bool { return os.Truncate(f.newest, 0) == nil }},
	{"deleted", 1, func(f *folder) bool { return os.Remove(f.newest) == nil }},
	{"older file: bit flip", draws, func(f *folder) bool { return f.change(f.older, f.draw.IntN(3), flip) }},
	{"older file: deleted", 1, func(f *folder) bool { return os.Remove(f.older) == nil }},
}

func flip(b []byte, at int) []byte { b[at] ^= 1 << (at % 8); return b }
func zero(b []byte, at int) []byte { clear(b[at:min(at+4096, len(b))]); return b }
func cut(b []byte, at int) []byte  { return b[:at] }

// change changes a file at a random position in one of the three thirds of its written part.
func (f *folder) change(name string, third int, how func(b []byte, at int) []byte) bool {
	b, err := os.ReadFile(name)
	if err != nil {
		return false
	}
	n := len(bytes.TrimRight(b, "\x00"))
	return os.WriteFile(name, how(b, (third*n+f.draw.IntN(n))/3), 0o600) == nil
}

// damageTables prints the result of each damage, for folders of closed logs and for those of killed
// processes.
func damageTables(dir string, chosen []candidate) {
	names := []string{""}
	for _, c := range chosen {
		names = append(names, c.name)
		if err := c.prepare(filepath.Join(dir, c.name)); err != nil {
			must.Failf("%s: %w", c.name, err)
		}
	}
	for _, how := range []string{"closed", "killed"} {
		names[0] = "newest log, " + how
		heading(names...)
		last, totals := []string{"in all"}, make(map[string]map[string]int)
		for _, d := range damages {
			cells := []string{d.name}
			for _, c := range chosen {
				count := make(map[string]int)
				for k := range d.draws {
					f, copied := c.copied(filepath.Join(dir, c.name), how, uint64(k))
					if d.do(f) {
						count[runApart(c, "judge", copied, strconv.Itoa(written))]++
					}
				}
				cells = append(cells, counted(count, d.draws))
				for verdict, n := range count {
					if totals[c.name] == nil {
						totals[c.name] = make(map[string]int)
					}
					totals[c.name][verdict] += n
				}
			}
			row(cells...)
		}
		for _, c := range chosen {
			last = append(last, counted(totals[c.name], -1))
		}
		row(last...)
		fmt.Println()
	}
}

// counted lists verdicts, with their numbers if they differ.
func counted(count map[string]int, all int) string {
	var out []string
	for _, verdict := range []string{whole, told, crashed, "hangs", tail, wrong} {
		if n := count[verdict]; n == all {
			return verdict
		} else if n > 0 {
			out = append(out, fmt.Sprintf("%s %d", verdict, n))
		}
	}
	if out == nil {
		return "–"
	}
	return strings.Join(out, ", ")
}

// prepare writes the records, each with its own sync, and makes three folders: closed; killed, as before it
// was closed; and early, as some records before.
func (c candidate) prepare(dir string) (err error) {
	defer must.Return(&err)
	must.Do(os.MkdirAll(dir, 0o700))
	closed := filepath.Join(dir, "closed")
	l := c.begin(closed, options{size: c.small})
	for i := range written {
		if i == early {
			must.Do(os.CopyFS(filepath.Join(dir, "early"), os.DirFS(closed)))
		}
		must.Do(l.append(i, [][]byte{record(i, small)}))
	}
	time.Sleep(time.Second) // for background work to end
	must.Do(os.CopyFS(filepath.Join(dir, "killed"), os.DirFS(closed)))
	return l.close()
}

// copied copies a folder, so that it can be damaged. It fails by must.
func (c candidate) copied(dir, how string, seed uint64) (*folder, string) {
	to := filepath.Join(dir, "copy")
	must.Do(os.RemoveAll(to))
	must.Do(os.CopyFS(to, os.DirFS(filepath.Join(dir, how))))
	newest, _ := filepath.Glob(filepath.Join(to, c.newest))
	older, _ := filepath.Glob(filepath.Join(to, c.older))
	f := &folder{newest: slices.Max(newest), draw: rand.New(rand.NewPCG(seed, 2))}
	if len(older) > 0 && older[0] != f.newest {
		f.older = older[0]
	}
	f.early, _ = os.ReadFile(filepath.Join(dir, "early", filepath.Base(f.newest)))
	return f, to
}
