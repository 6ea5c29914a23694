package store

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync/atomic"

	"parley/cluster/disk"
)

// files are the files of an open store.
type files struct {
	disk disk.Disk
	dir  string
	size atomic.Int64 // bytes of the files, of which logs have more than what is written

	held     chan struct{} // a lock of the manifest, which is held while the disk is written
	manifest *manifest
	log      disk.File // the open one
	header   header    // of it
	at       place     // how far it is written
	logSize  int64

	// These are the committing goroutine's.
	rotated bool                // a log was closed since tidy looked
	closed  header              // of the last one that was closed, until tidy has taken note of it
	holds   map[uint64][]string // by closed log: which machines may have records there, if that is known
	merging chan struct{}       // closed when the merge that was begun has ended; nil if there is none
}

// hold waits for the lock of the manifest. It is a channel and not a mutex because whoever has it may wait for the
// disk for long, and the time that passes meanwhile must be seen to pass in tests.
func (f *files) hold()  { f.held <- struct{}{} }
func (f *files) letGo() { <-f.held }

// begin closes what an earlier life left open, begins a new log and removes what is not needed.
func (f *files) begin(s *Store, l *loaded) error {
	f.disk, f.dir, f.logSize, f.held = s.disk, s.dir, s.o.LogSize, make(chan struct{}, 1)
	f.manifest = l.manifest
	if f.manifest == nil {
		f.manifest = &manifest{store: newID(), next: 1}
		if err := f.manifest.write(f.disk, f.dir); err != nil {
			return err
		}
	}
	left, err := l.leftovers(f.disk, f.dir)
	if err != nil {
		return err
	}
	if len(left) > 0 { // the manifest that does not name them may be in the system's memory alone
		if err := f.disk.SyncDir(f.dir); err != nil {
			return err
		}
	}
	if err := f.remove(f.disk, left); err != nil {
		return err
	}
	var last *sealed
	left = nil
	if m := f.manifest; m.open != 0 && l.at.number > m.end() {
		last = &sealed{logKind, m.open, l.at}
		if err := f.again(*last, l.before.offset); err != nil {
			return err
		}
	} else if m.open != 0 {
		left = append(left, logName(m.open))
	}
	if err := f.create(last, l.at.number, 0); err != nil {
		return err
	}
	if last != nil {
		f.rotated = true
		if err := f.giveBack(*last); err != nil {
			return err
		}
	}
	return f.remove(f.disk, left)
}

// again writes the last batch of a log once more and syncs it. The life before may have ended while it was synced: then
// the system has it, and the disk need not, whatever a sync says that has failed once.
func (f *files) again(log sealed, from int64) error {
	file, err := f.disk.Reopen(filepath.Join(f.dir, logName(log.file)))
	if err != nil {
		return err
	}
	b := make([]byte, log.offset-from)
	if _, err = file.ReadAt(b, from); err == nil {
		err = write(file, b, from)
	}
	return errors.Join(err, file.Close())
}

// giveBack gives back what was reserved for a log and not used. The manifest must name the log as closed.
func (f *files) giveBack(log sealed) error {
	file, err := f.disk.Reopen(filepath.Join(f.dir, logName(log.file)))
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(log.offset), file.Sync(), file.Close())
}

// stride is how many bytes are written before they are synced: a disk that works has these on it in much less time than
// Options.Limit, however long a batch is.
const stride = 8 << 20

// write writes bytes and syncs them.
func write(file disk.File, b []byte, at int64) error {
	for len(b) > 0 {
		part := b[:min(len(b), stride)]
		if _, err := file.WriteAt(part, at); err != nil {
			return err
		}
		if err := file.Sync(); err != nil {
			return err
		}
		b, at = b[len(part):], at+int64(len(part))
	}
	return nil
}

// remove removes files that the manifest does not name.
func (f *files) remove(d disk.Disk, names []string) error {
	for _, name := range names {
		if err := d.Remove(filepath.Join(f.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f.measure()
	return nil
}

// measure counts the bytes of all files.
func (f *files) measure() {
	f.hold()
	defer f.letGo()
	f.size.Store(f.header.size + f.manifest.bytes())
}

// create begins a new log with room for a batch of some bytes, and has the manifest name it, and the one before it
// as closed.
func (f *files) create(closed *sealed, before uint64, room int64) (err error) {
	f.hold()
	defer f.letGo()
	m := f.manifest.clone()
	f.header = header{kind: logKind, store: m.store, number: m.next, before: before, size: max(f.logSize, fileHeader+room)}
	if f.log, err = f.disk.Create(filepath.Join(f.dir, logName(m.next))); err != nil {
		return err
	}
	if err := f.log.Reserve(f.header.size); err != nil {
		return err
	}
	b := f.header.encode()
	if err := write(f.log, b, 0); err != nil {
		return err
	}
	if err := f.disk.SyncDir(f.dir); err != nil {
		return err
	}
	f.at = place{fileHeader, before, checksum(b)}
	if closed != nil {
		m.logs = append(m.logs, *closed)
	}
	m.open, m.next = m.next, m.next+1
	return f.write(f.disk, m)
}

// write replaces the manifest. One that could not be written is not built upon. The lock is held.
func (f *files) write(d disk.Disk, m *manifest) error {
	if err := m.write(d, f.dir); err != nil {
		return err
	}
	f.manifest = m
	return nil
}

// commit writes a batch, for whose header there is room in its first bytes, and syncs it.
func (f *files) commit(b []byte, records int, upto uint64) error {
	if f.at.offset+int64(len(b)) > f.header.size {
		if err := f.rotate(int64(len(b))); err != nil {
			return err
		}
	}
	chain := seal(b, records, upto, f.at.chain, f.header.store)
	if err := write(f.log, b, f.at.offset); err != nil {
		return err
	}
	f.at = place{f.at.offset + int64(len(b)), upto, chain}
	return nil
}

// rotate closes the open log and begins another one. What was reserved and not used is given back.
func (f *files) rotate(room int64) error {
	old, at := f.log, f.at
	f.closed = f.header
	if err := f.create(&sealed{logKind, f.closed.number, at}, at.number, room); err != nil {
		return errors.Join(err, old.Close())
	}
	f.rotated = true
	f.measure()
	return errors.Join(old.Truncate(at.offset), old.Close())
}

// end closes the files. If all is well the manifest says so: then nothing may be missing later.
func (f *files) end(s *Store) error {
	if f.merging != nil {
		<-f.merging
	}
	if s.failure() != nil {
		return f.close()
	}
	f.hold()
	defer f.letGo()
	m := f.manifest.clone()
	name, empty := logName(m.open), f.at.number == m.end()
	if !empty {
		m.logs = append(m.logs, sealed{logKind, m.open, f.at})
	}
	m.open = 0
	if err := f.write(f.disk, m); err != nil {
		return errors.Join(err, f.log.Close())
	}
	if empty {
		return errors.Join(f.log.Close(), f.disk.Remove(filepath.Join(f.dir, name)))
	}
	return errors.Join(f.log.Truncate(f.at.offset), f.log.Close())
}

// close closes the open log as it is.
func (f *files) close() error {
	if f.log == nil {
		return nil
	}
	return f.log.Close()
}
