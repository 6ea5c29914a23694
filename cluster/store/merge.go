package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"parley/cluster/disk"
)

// manyLogs is how many closed logs are merged whatever their size: each start of a node closes one.
const manyLogs = 64

// tidy begins to merge the closed logs if most of what is in them has been replaced: what still counts is copied
// into a base, which takes their place. The bytes copied are at most half of those written.
func (f *files) tidy(s *Store) {
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
	_ = s.look(s.disk) // a new log has taken much of it
	f.hold()
	closed, logs := f.manifest.sealed(), len(f.manifest.logs)
	f.letGo()
	counts := s.counts()
	if closed < 2*counts+2*f.logSize && logs < manyLogs {
		return
	}
	// The open log may be full before old ones are gone. Little room is no reason to wait: a merge makes more.
	if err := s.Room(uint64(counts + f.logSize)); err != nil {
		s.o.Log.LogAttrs(context.Background(), slog.LevelWarn, "too little room to merge logs", slog.Any("err", err))
		return
	}
	f.merging = make(chan struct{})
	go func(done chan struct{}) {
		defer close(done)
		if err := f.merge(s.as("files.merge")); err != nil {
			s.fail(fmt.Errorf("the disk failed: merging logs: %w; %s", err, advice))
		}
	}(f.merging)
}

// counts returns how many bytes of the records count.
func (s *Store) counts() (bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.books {
		bytes += b.bytes
	}
	return bytes
}

// merge copies what counts of the base and the closed logs into a new base. What a state in the open log has
// replaced counts too: were the open log damaged, all before it would still be whole.
func (f *files) merge(d disk.Disk) error {
	f.hold()
	m := f.manifest
	of, number := m.clone(), m.next
	m.next++ // no log has the number of a base
	f.letGo()
	replaced := make(map[string]uint64)
	err := f.each(d, of, func(e entry) error {
		if e.kind == replacesKind {
			replaced[string(e.name)] = e.number
		}
		return nil
	})
	if err != nil {
		return err
	}
	w, err := newBase(d, filepath.Join(f.dir, baseName(number)), header{
		kind: baseKind, store: m.store, number: number, before: of.end(),
	})
	if err != nil {
		return err
	}
	err = f.each(d, of, func(e entry) error {
		if e.number < replaced[string(e.name)] {
			return nil
		}
		return w.add(e.raw)
	})
	at, ended := w.end()
	if err := errors.Join(err, ended); err != nil {
		return err
	}
	if err := f.replace(d, sealed{number, at}, len(of.logs)); err != nil {
		return err
	}
	return f.remove(d, of.names())
}

// each calls a function with all records of the files of a manifest that are closed.
func (f *files) each(d disk.Disk, m *manifest, do func(entry) error) error {
	if m.base != nil {
		if _, err := m.base.read(d, filepath.Join(f.dir, baseName(m.base.file)), baseKind, m.store, do); err != nil {
			return err
		}
	}
	for _, log := range m.logs {
		if _, err := log.read(d, filepath.Join(f.dir, logName(log.file)), logKind, m.store, do); err != nil {
			return err
		}
	}
	return nil
}

// replace has the manifest name a new base in place of the old one and the first logs.
func (f *files) replace(d disk.Disk, base sealed, logs int) error {
	f.hold()
	defer f.letGo()
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

// baseBatch is about how large a batch of a base is.
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
	if _, err := w.f.WriteAt(w.b, w.at.offset); err != nil {
		return err
	}
	w.at.offset += int64(len(w.b))
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
