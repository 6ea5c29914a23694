package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"

	"parley/cluster/disk"
)

// manyLogs is the number of closed logs that are merged whatever their size: each start of a node closes
// one.
const manyLogs = 64

// tidy starts to merge the closed logs if most of their contents has been replaced: what still counts is
// copied into a base, which replaces them. The copied bytes are at most half of those written.
func (f *files) tidy(s *Store) {
	f.noteBooks(s)
	if f.merging != nil {
		select {
		case <-f.merging:
			f.merging = nil
		default:
			return
		}
	}
	if !f.rotated {
		return
	}
	f.rotated = false
	_ = s.checkRoom(s.disk) // a new log has used much of it
	f.hold()
	closed, logs := f.manifest.bytes(), len(f.manifest.logs)
	f.release()
	counts := s.liveBytes()
	if closed < 2*counts+2*f.logSize && logs < manyLogs {
		return
	}
	// The open log may be full before old ones are gone. Low space is no reason to wait: a merge frees
	// some.
	if err := s.Room(uint64(counts + f.logSize)); err != nil {
		s.o.Log.LogAttrs(context.Background(), slog.LevelWarn,
			"disk has too little room to merge logs; merging is postponed", slog.Any("err", err))
		return
	}
	f.merging = make(chan struct{})
	holds := f.holds
	f.holds = nil // for logs that this merge does not include
	go func(done chan struct{}) {
		defer close(done)
		if err := f.merge(s, s.diskFor("files.merge"), holds); err != nil {
			s.fail(fmt.Errorf("the disk failed: merging logs: %w; %s", err, advice))
		}
	}(f.merging)
}

// noteBooks records which machines may have records in the log closed last. It may name too many machines,
// because it also counts records appended since.
func (f *files) noteBooks(s *Store) {
	if f.closed.number == 0 {
		return
	}
	var names []string
	s.mu.Lock()
	for name, b := range s.books {
		if b.last > f.closed.before {
			names = append(names, name)
		}
	}
	s.mu.Unlock()
	if f.holds == nil {
		f.holds = make(map[uint64][]string)
	}
	f.holds[f.closed.number], f.closed = names, header{}
}

// liveBytes returns the size in bytes of the records that count.
func (s *Store) liveBytes() (bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.books {
		bytes += b.bytes
	}
	return bytes
}

// lastStates returns the number of each book's last state up to upto: it replaces everything older.
func (s *Store) lastStates(upto uint64) map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := make(map[string]uint64)
	for name, b := range s.books {
		for len(b.states) > 1 && b.states[1] <= upto {
			b.states = b.states[1:]
		}
		if len(b.states) > 0 && b.states[0] <= upto {
			last[name] = b.states[0]
		}
	}
	return last
}

// merge copies what counts in the base and the closed logs into a new base. What a state in the open log
// has replaced counts too: if the open log is damaged, everything before it is still whole. A log in which
// nothing counts is not read.
func (f *files) merge(s *Store, d disk.Disk, holds map[uint64][]string) error {
	f.hold()
	m := f.manifest
	of, number := m.clone(), m.next
	m.next++ // no log has the number of a base
	f.release()
	replaced := s.lastStates(of.end())
	w, err := newBase(d, filepath.Join(f.dir, baseName(number)), header{
		kind: baseKind, store: m.store, number: number, before: of.end(),
	})
	if err != nil {
		return err
	}
	idle := func(log sealed) bool {
		names, known := holds[log.file]
		return known && !slices.ContainsFunc(names, func(name string) bool { return replaced[name] <= log.number })
	}
	err = f.eachEntry(d, of, idle, func(e entry) error {
		if e.number < replaced[string(e.name)] {
			return nil
		}
		return w.add(e.raw)
	})
	at, ended := w.end()
	if err := errors.Join(err, ended); err != nil {
		return err
	}
	if err := f.replace(d, sealed{baseKind, number, at}, len(of.logs)); err != nil {
		return err
	}
	return f.remove(d, of.names())
}

// eachEntry calls do with all records of the closed files of a manifest, except idle logs.
func (f *files) eachEntry(d disk.Disk, m *manifest, idle func(sealed) bool, do func(entry) error) error {
	for _, file := range m.closed() {
		if file.kind == logKind && idle(file) {
			continue
		}
		if _, err := file.read(d, filepath.Join(f.dir, file.name()), m.store, do); err != nil {
			return err
		}
	}
	return nil
}

// replace makes the manifest name a new base instead of the old one and the first logs.
func (f *files) replace(d disk.Disk, base sealed, logs int) error {
	f.hold()
	defer f.release()
	if err := d.SyncDir(f.dir); err != nil {
		return err
	}
	m := f.manifest.clone()
	m.base, m.logs = &base, m.logs[logs:]
	return f.write(d, m)
}

// baseWriter writes a base.
type baseWriter struct {
	f       disk.File
	h       header
	at      place
	synced  int64 // the offset up to which the file is synced
	b       []byte
	records int
}

func newBase(d disk.Disk, name string, h header) (*baseWriter, error) {
	f, err := d.Create(name)
	if err != nil {
		return nil, err
	}
	b := h.encode()
	if _, err := f.WriteAt(b, 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &baseWriter{f: f, h: h, at: place{fileHeader, h.before, checksum(b)}, b: make([]byte, batchHeader)}, nil
}

// baseBatch is the approximate size of a batch of a base in bytes.
const baseBatch = 1 << 20

func (w *baseWriter) add(raw []byte) error {
	w.b = append(w.b, raw...)
	w.records++
	if len(w.b) < baseBatch {
		return nil
	}
	return w.write()
}

func (w *baseWriter) write() error {
	if w.records == 0 {
		return nil
	}
	w.at.chain = seal(w.b, w.records, w.h.before, w.at.chain, w.h.store)
	for b := w.b; len(b) > 0; {
		part := b[:min(len(b), stride)]
		if _, err := w.f.WriteAt(part, w.at.offset); err != nil {
			return err
		}
		if b, w.at.offset = b[len(part):], w.at.offset+int64(len(part)); w.at.offset-w.synced < stride {
			continue
		}
		if err := w.f.Sync(); err != nil {
			return err
		}
		w.synced = w.at.offset
	}
	w.b, w.records = w.b[:batchHeader], 0
	return nil
}

func (w *baseWriter) end() (place, error) {
	err := w.write()
	if err == nil {
		err = w.f.Sync()
	}
	return w.at, errors.Join(err, w.f.Close())
}
