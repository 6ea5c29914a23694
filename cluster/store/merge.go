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

// manyLogs is how many closed logs are merged whatever their size: each start of a node closes one.
const manyLogs = 64

// tidy begins to merge the closed logs if most of what is in them has been replaced: what still counts is copied
// into a base, which takes their place. The bytes copied are at most half of those written.
func (f *files) tidy(s *Store) {
	f.note(s)
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
	closed, logs := f.manifest.bytes(), len(f.manifest.logs)
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
	holds := f.holds
	f.holds = nil // of logs that this merge does not take
	go func(done chan struct{}) {
		defer close(done)
		if err := f.merge(s, s.as("files.merge"), holds); err != nil {
			s.fail(fmt.Errorf("the disk failed: merging logs: %w; %s", err, advice))
		}
	}(f.merging)
}

// note takes down which machines may have records in a log that was closed just now. It may name more of them: what
// was handed over since is not told apart.
func (f *files) note(s *Store) {
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

// counts returns how many bytes of the records count.
func (s *Store) counts() (bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.books {
		bytes += b.bytes
	}
	return bytes
}

// states returns the number of each book's last state up to a number: all that is older is replaced.
func (s *Store) states(upto uint64) map[string]uint64 {
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

// merge copies what counts of the base and the closed logs into a new base. What a state in the open log has
// replaced counts too: were the open log damaged, all before it would still be whole. A log of which nothing counts is
// not read.
func (f *files) merge(s *Store, d disk.Disk, holds map[uint64][]string) error {
	f.hold()
	m := f.manifest
	of, number := m.clone(), m.next
	m.next++ // no log has the number of a base
	f.letGo()
	replaced := s.states(of.end())
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
	err = f.each(d, of, idle, func(e entry) error {
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

// each calls a function with all records of the files of a manifest that are closed, but for logs that are idle.
func (f *files) each(d disk.Disk, m *manifest, idle func(sealed) bool, do func(entry) error) error {
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
	synced  int64 // up to where the file is
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
