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
	size atomic.Int64 // bytes of the files; logs include reserved space

	held     chan struct{} // a lock of the manifest, held while the disk is written
	manifest *manifest
	log      disk.File // the open log
	header   header    // of the open log
	at       place     // its written part
	logSize  int64

	// The fields below belong to the committing goroutine.
	rotated bool                // a log was closed since the last tidy
	closed  header              // of the last closed log, until noteBooks
	holds   map[uint64][]string // by closed log: the machines that may have records there, if known
	merging chan struct{}       // closed when the current merge has ended; nil if there is none
}

// hold waits for the lock of the manifest. The lock is a channel and not a mutex because its holder may
// wait for the disk for a long time, and tests in virtual time must see this time pass.
func (f *files) hold()    { f.held <- struct{}{} }
func (f *files) release() { <-f.held }

// begin closes the log that an earlier process left open, begins a new one and removes files that are not
// needed.
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
	if len(left) > 0 { // the current manifest may be only in the system's memory
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
		if err := f.resyncLast(*last, l.before.offset); err != nil {
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

// resyncLast writes the last batch of a log again and syncs it. The process before may have ended during
// the sync: then the system has the batch, but the disk may not, whatever a sync reports after one has
// failed.
func (f *files) resyncLast(log sealed, from int64) error {
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

// giveBack frees the unused part of the space reserved for a log. The manifest must name the log as closed.
func (f *files) giveBack(log sealed) error {
	file, err := f.disk.Reopen(filepath.Join(f.dir, logName(log.file)))
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(log.offset), file.Sync(), file.Close())
}

// stride is how many bytes are written before a sync: a working disk stores them in much less than
// Options.Limit, so the length of a batch does not matter.
const stride = 8 << 20

// write writes and syncs bytes.
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
	f.measureBytes()
	return nil
}

// measureBytes measures the size of all files.
func (f *files) measureBytes() {
	f.hold()
	defer f.release()
	f.size.Store(f.header.size + f.manifest.bytes())
}

// create begins a new log with room for a batch of room bytes, and makes the manifest name it, and the log
// before it as closed.
func (f *files) create(closed *sealed, before uint64, room int64) (err error) {
	f.hold()
	defer f.release()
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

// write replaces the manifest. If it fails, the manifest in memory does not change. The caller holds the
// lock.
func (f *files) write(d disk.Disk, m *manifest) error {
	if err := m.write(d, f.dir); err != nil {
		return err
	}
	f.manifest = m
	return nil
}

// commit writes and syncs a batch, which starts with space for its header.
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

// rotate closes the open log and begins another one. It frees reserved space that is not used.
func (f *files) rotate(room int64) error {
	old, at := f.log, f.at
	f.closed = f.header
	if err := f.create(&sealed{logKind, f.closed.number, at}, at.number, room); err != nil {
		return errors.Join(err, old.Close())
	}
	f.rotated = true
	f.measureBytes()
	return errors.Join(old.Truncate(at.offset), old.Close())
}

// end closes the files. If all succeeded, the manifest records it: then nothing may be missing later.
func (f *files) end(s *Store) error {
	if f.merging != nil {
		<-f.merging
	}
	if s.failure() != nil {
		return f.close()
	}
	f.hold()
	defer f.release()
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
