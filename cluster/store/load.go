package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"parley"
	"parley/cluster/disk"
)

// ErrDamaged is the error of a folder in which something is missing or differs from what was written. Every
// *Damage matches it.
var ErrDamaged = errors.New("the records of the node are damaged")

// ErrOldFormat is the error of a folder written by an earlier version of Parley.
var ErrOldFormat = errors.New("this folder was written by an earlier version, and this one cannot read it: " +
	"stop all nodes, replace all, and start them with empty folders and without --rejoin; what was in the folders " +
	"is lost, so export what you need first")

// Damage describes the damage of a folder. Its error text says where, what, and what to do.
type Damage struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"` // in bytes; -1: the file as a whole
	What   string `json:"what"`
}

// Error returns the place, the damage and what to do.
func (d *Damage) Error() string {
	where := d.File
	if d.Offset >= 0 {
		where = fmt.Sprintf("%s, byte %d", d.File, d.Offset)
	}
	return fmt.Sprintf("%s: %s: %v, and what it acknowledged may be lost here: while more than half of all nodes "+
		"are intact, move the folder away and start this node with an empty one and --rejoin", where, d.What, ErrDamaged)
}

// Is returns whether target is ErrDamaged.
func (d *Damage) Is(target error) bool { return target == ErrDamaged }

// content is the remaining records of one book.
type content struct {
	state   []byte // nil if no state has replaced records
	at      uint64 // the number of the state
	records []parley.Record
	bytes   int64 // the size of all these in files
}

// loaded is the contents of a folder.
type loaded struct {
	manifest *manifest // nil: the folder is empty
	books    map[string]*content
	at       place // the end of the open log
	before   place // the beginning of the last batch of the open log
	tail     *Tail
}

// Tail describes the end of the newest log if it was not closed. Data that was written and not synced when the node
// ended is lost, as expected. But damage in the last sync, or after it, looks the same. Only a peer that has seen a
// larger position of this node reveals such damage.
type Tail struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	Torn   bool   `json:"torn"` // the end is followed by something that is not a whole batch
}

// load reads everything in a folder.
func load(d disk.Disk, dir string) (*loaded, error) {
	m, err := readManifest(d, dir)
	if err != nil {
		return nil, err
	}
	l := &loaded{manifest: m, books: make(map[string]*content)}
	if m == nil {
		return l, nil
	}
	for _, s := range m.closed() {
		if err := l.readSealed(d, filepath.Join(dir, s.name()), s); err != nil {
			return nil, err
		}
	}
	if err := l.readOpenLog(d, dir); err != nil {
		return nil, err
	}
	err = l.checkUnnamed(d, dir)
	return l, err
}

// openNamed opens a file that the manifest names.
func openNamed(d disk.Disk, name string) (f disk.File, size int64, err error) {
	f, err = d.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, &Damage{File: name, Offset: -1, What: "the file is missing"}
	} else if err != nil {
		return nil, 0, err
	}
	if size, err = f.Size(); err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, size, nil
}

// readSealed reads a sealed file, which must be complete.
func (l *loaded) readSealed(d disk.Disk, name string, s sealed) error {
	before, err := s.read(d, name, l.manifest.store, l.take)
	if err != nil {
		return err
	}
	if s.kind == logKind && before != l.at.number {
		return gap(name, l.at.number, before)
	}
	l.at = s.place
	return nil
}

// read calls each with all records of a closed file, and returns the number of the last record before the
// file.
func (s sealed) read(d disk.Disk, name string, store uint64, each func(entry) error) (before uint64, err error) {
	f, size, err := openNamed(d, name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if size < s.offset {
		return 0, &Damage{File: name, Offset: size, What: fmt.Sprintf("the file is cut off: it had %d bytes", s.offset)}
	}
	r, wrong, err := read(f, s.kind, store, s.file, s.offset)
	if err != nil || wrong != "" {
		return 0, asDamage(name, 0, wrong, err)
	}
	for r.at.offset < s.offset {
		if wrong, err := r.next(each); err != nil || wrong != "" {
			return 0, asDamage(name, r.at.offset, wrong, err)
		}
	}
	if r.at != s.place {
		return 0, &Damage{File: name, Offset: r.at.offset, What: "the manifest says that the file ends otherwise"}
	}
	return r.h.before, nil
}

func gap(name string, from, to uint64) error {
	return &Damage{File: name, Offset: 0, What: fmt.Sprintf("records are missing between %d and %d", from, to)}
}

func asDamage(name string, offset int64, wrong string, err error) error {
	if err != nil {
		return fmt.Errorf("store: %s: %w", name, err)
	}
	return &Damage{File: name, Offset: offset, What: wrong}
}

// readOpenLog reads the log that was open, if there is one.
func (l *loaded) readOpenLog(d disk.Disk, dir string) (err error) {
	m := l.manifest
	if m.open == 0 {
		return nil
	}
	name := filepath.Join(dir, logName(m.open))
	f, size, err := openNamed(d, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r, wrong, err := read(f, logKind, m.store, m.open, size)
	if err != nil || wrong != "" {
		return asDamage(name, 0, wrong, err)
	}
	switch {
	case r.h.before != l.at.number:
		return gap(name, l.at.number, r.h.before)
	case size < r.h.size: // the whole size was synced before the first record
		return &Damage{File: name, Offset: size, What: fmt.Sprintf("the file is cut off: it had %d bytes", r.h.size)}
	}
	for {
		begin := r.at
		wrong, err := r.next(l.take)
		if err != nil {
			return asDamage(name, r.at.offset, "", err)
		}
		if wrong == "" {
			l.before = begin
			continue
		}
		later, err := r.later(r.at.offset)
		if err != nil || later {
			return asDamage(name, r.at.offset, wrong, err)
		}
		torn, err := r.torn()
		l.at, l.tail = r.at, &Tail{File: name, Offset: r.at.offset, Torn: torn}
		return err
	}
}

// torn returns whether anything follows the last whole batch.
func (r *reading) torn() (bool, error) {
	b := make([]byte, min(1<<20, r.end-r.at.offset))
	for from := r.at.offset; from < r.end; from += int64(len(b)) {
		n, err := r.f.ReadAt(b[:min(int64(len(b)), r.end-from)], from)
		if err != nil && n == 0 {
			return false, err
		}
		for _, x := range b[:n] {
			if x != 0 {
				return true, nil
			}
		}
	}
	return false, nil
}

// take adds a record to its book.
func (l *loaded) take(e entry) error {
	c := l.books[string(e.name)]
	if c == nil {
		c = new(content)
		l.books[string(e.name)] = c
	}
	if body := append([]byte{}, e.body...); e.kind == replacesKind {
		*c = content{state: body, at: e.number}
	} else {
		c.records = append(c.records, parley.Record{Path: e.path, Body: body})
	}
	c.bytes += int64(len(e.raw))
	return nil
}

// checkUnnamed checks the files that the manifest does not name. They remain from changes that a crash
// interrupted, and are removed later; but a log with records is newer than the manifest, which is damage.
func (l *loaded) checkUnnamed(d disk.Disk, dir string) error {
	names, err := l.leftovers(d, dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		var number uint64
		if _, err := fmt.Sscanf(name, "log-%d", &number); err != nil || number < l.manifest.next {
			continue
		}
		if err := l.requireEmpty(d, filepath.Join(dir, name), number); err != nil {
			return err
		}
	}
	return nil
}

// requireEmpty returns an error if a log contains a record.
func (l *loaded) requireEmpty(d disk.Disk, name string, number uint64) (err error) {
	f, size, err := openNamed(d, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r, wrong, err := read(f, logKind, l.manifest.store, number, size)
	if err != nil || wrong != "" {
		return err // it was never initialized
	}
	if r.at.number, r.at.offset = 0, 0; r.end > 0 {
		if later, err := r.later(0); err != nil || later {
			return asDamage(filepath.Join(filepath.Dir(name), manifestName), -1, "it is older than "+filepath.Base(name), err)
		}
	}
	return nil
}

// leftovers returns the files of a store that the manifest does not name.
func (l *loaded) leftovers(d disk.Disk, dir string) (left []string, err error) {
	names, err := d.List(dir)
	if err != nil {
		return nil, err
	}
	named := map[string]bool{manifestName: true, LockName: true}
	if m := l.manifest; m != nil {
		for _, name := range m.names() {
			named[name] = true
		}
		if m.open != 0 {
			named[logName(m.open)] = true
		}
	}
	for _, name := range names {
		if !named[name] && (strings.HasPrefix(name, "log-") || strings.HasPrefix(name, "base-") || name == manifestNew) {
			left = append(left, name)
		}
	}
	return left, nil
}

// Report describes the contents of a folder.
type Report struct {
	Store    uint64 // the store's random ID, drawn when it was created
	Position uint64 // the number of the last record
	Tail     *Tail  // nil if the store was closed
	Bytes    int64  // of the records that count
	Books    int
}

// Verify reads everything in the folder of a store that is not in use, and changes nothing. A nil d means
// the disk of the operating system. The error is a *Damage if something is missing or differs from what was
// written.
func Verify(dir string, d disk.Disk) (Report, error) {
	l, err := load(cmp.Or[disk.Disk](d, disk.System{}), dir)
	if err != nil {
		return Report{}, err
	}
	r := Report{Position: l.at.number, Tail: l.tail, Books: len(l.books)}
	if l.manifest != nil {
		r.Store = l.manifest.store
	}
	for _, c := range l.books {
		r.Bytes += c.bytes
	}
	return r, nil
}
