package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
	tidwall "github.com/tidwall/wal"
	"go.etcd.io/bbolt"
	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"parley"
	"parley/cluster/disk"
	"parley/cluster/store"
	"parley/internal/must"
)

// candidate is a log to be compared. The pattern newest matches the names of its log files, the last of
// which is being written. The pattern older matches the names of its older files.
type candidate struct {
	name, newest, older string
	small               int                                  // bytes of a file: a thousand records take several
	faults              bool                                 // it can be given a file system
	begin               func(dir string, o options) *journal // fails by must
}

// open opens the log of a candidate.
func (c candidate) open(dir string, o options) (j *journal, err error) {
	defer must.Return(&err)
	return c.begin(dir, o), nil
}

// options are the settings of a measurement.
type options struct {
	size  int                     // bytes of a file; 0: the candidate's default
	fault func(call string) error // called before each write and sync of a file; nil: none
}

// journal is the opened log of a candidate.
type journal struct {
	read   func() ([][]byte, error)             // all records, oldest first; before the first append
	append func(at int, records [][]byte) error // returns when all are durable; at is the number of the first
	close  func() error
}

var candidates = []candidate{
	{"parley", "log-*", "log-*", 64 << 10, true, openParley},
	{"pebble", "*.log", "*.sst", 64 << 10, true, pebbleOf(pebble.FormatDefault)},
	{"pebble-newest", "*.log", "*.sst", 64 << 10, true, pebbleOf(pebble.FormatNewest)},
	{"raft-wal", "*.wal", "*.wal", 64 << 10, true, openRaftWAL},
	{"etcd-wal", "*.wal", "*.wal", 64 << 10, false, openEtcd},
	{"tidwall", "0*", "0*", 64 << 10, false, openTidwall},
	{"bbolt", "db", "-", 0, false, openBolt},
}

// kept reads records that existed when the log was opened.
func kept[T any](old []T, body func(T) []byte) func() ([][]byte, error) {
	return func() (out [][]byte, _ error) {
		for _, r := range old {
			out = append(out, body(r))
		}
		return out, nil
	}
}

// numbered reads records one by one, from 1 to the last.
func numbered(last func() (uint64, error), get func(i uint64) ([]byte, error)) func() ([][]byte, error) {
	return func() (out [][]byte, err error) {
		defer must.Return(&err)
		for i := range must.Get(last()) {
			out = append(out, must.Get(get(i+1)))
		}
		return out, nil
	}
}

func openParley(dir string, o options) *journal {
	d := disk.Hooked{Disk: disk.System{}, Around: func(op disk.Op, do func() error) error {
		if o.fault != nil && (op.Call == "write" || op.Call == "sync") {
			if err := o.fault(op.Call); err != nil {
				return err
			}
		}
		return do()
	}}
	s := must.Get(store.Open(dir, store.Options{Disk: d, LogSize: int64(o.size)}))
	book, _, old, err := s.Open("machine")
	must.Do(err)
	return &journal{
		kept(old, func(r parley.Record) []byte { return r.Body }),
		func(_ int, records [][]byte) error {
			var last uint64
			for _, r := range records {
				last = book.Append(parley.Record{Body: r})
			}
			return s.Wait(last)
		}, s.Close,
	}
}

// pebbleLogger records what pebble calls fatal, as cluster/store did.
type pebbleLogger struct{ err atomic.Pointer[error] }

func (*pebbleLogger) Infof(string, ...any)                {}
func (*pebbleLogger) Errorf(string, ...any)               {}
func (l *pebbleLogger) Fatalf(format string, args ...any) { l.failed(fmt.Errorf(format, args...)) }
func (l *pebbleLogger) failed(err error)                  { l.err.Store(&err) }

// pebbleOf opens a database as cluster/store did when it used pebble.
func pebbleOf(format pebble.FormatMajorVersion) func(dir string, o options) *journal {
	return func(dir string, o options) *journal {
		l := new(pebbleLogger)
		p := &pebble.Options{FS: vfs.Default, Logger: l, FormatMajorVersion: format, MemTableSize: 16 << 20,
			EventListener: &pebble.EventListener{BackgroundError: l.failed}}
		if o.size != 0 {
			p.MemTableSize = uint64(o.size)
		}
		if o.fault != nil {
			p.FS = errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
				switch op.Kind {
				case errorfs.OpFileWrite:
					return o.fault("write")
				case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
					return o.fault("sync")
				default:
					return nil
				}
			}))
		}
		db := must.Get(pebble.Open(dir, p))
		return &journal{
			func() (out [][]byte, err error) {
				defer must.Return(&err)
				it := must.Get(db.NewIter(nil))
				for it.First(); it.Valid(); it.Next() {
					out = append(out, slices.Clone(it.Value()))
				}
				return out, it.Close()
			},
			func(at int, records [][]byte) error {
				b := db.NewBatch()
				for i, r := range records {
					if err := b.Set(binary.BigEndian.AppendUint64([]byte("\x07machiner"), uint64(at+i)), r, nil); err != nil {
						return err
					}
				}
				if err := errors.Join(b.Commit(pebble.Sync), b.Close()); err != nil || l.err.Load() == nil {
					return err
				}
				return *l.err.Load()
			}, db.Close,
		}
	}
}

func openRaftWAL(dir string, o options) *journal {
	var v types.VFS = fs.New()
	if o.fault != nil {
		v = faultyVFS{v, o.fault}
	}
	must.Do(os.MkdirAll(dir, 0o700))
	w := must.Get(raftwal.Open(dir, raftwal.WithLogger(hclog.NewNullLogger()), raftwal.WithSegmentSize(o.size),
		raftwal.WithSegmentFiler(segment.NewFiler(dir, v))))
	return &journal{
		numbered(w.LastIndex, func(i uint64) ([]byte, error) {
			var r raft.Log
			err := w.GetLog(i, &r)
			return r.Data, err
		}),
		func(at int, records [][]byte) error {
			logs := make([]*raft.Log, len(records))
			for i, r := range records {
				logs[i] = &raft.Log{Index: uint64(at + i + 1), Data: r}
			}
			return w.StoreLogs(logs)
		}, w.Close,
	}
}

// faultyVFS is a file system for raft-wal.
type faultyVFS struct {
	types.VFS
	fault func(string) error
}

type faultyFile struct {
	types.WritableFile
	fault func(string) error
}

func (v faultyVFS) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := v.VFS.Create(dir, name, size)
	return faultyFile{f, v.fault}, err
}

func (f faultyFile) WriteAt(b []byte, at int64) (int, error) {
	if err := f.fault("write"); err != nil {
		return 0, err
	}
	return f.WritableFile.WriteAt(b, at)
}

func (f faultyFile) Sync() error {
	if err := f.fault("sync"); err != nil {
		return err
	}
	return f.WritableFile.Sync()
}

// openEtcd opens a log, and repairs it, as etcd's server does.
func openEtcd(dir string, o options) *journal {
	if o.size != 0 {
		etcdwal.SegmentSizeBytes = int64(o.size)
	}
	var w *etcdwal.WAL
	var old []*raftpb.Entry
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		w = must.Get(etcdwal.Create(zap.NewNop(), dir, nil))
	}
	for repaired := false; w == nil; repaired = true {
		w = must.Get(etcdwal.Open(zap.NewNop(), dir, &walpb.Snapshot{}))
		var err error
		if _, _, old, err = w.ReadAll(); err == nil {
			break
		}
		_ = w.Close()
		if w = nil; repaired || !errors.Is(err, io.ErrUnexpectedEOF) || !etcdwal.Repair(zap.NewNop(), dir) {
			must.Do(err)
		}
	}
	return &journal{
		kept(old, func(e *raftpb.Entry) []byte { return e.Data }),
		func(at int, records [][]byte) error {
			entries := make([]*raftpb.Entry, len(records))
			for i, r := range records {
				entries[i] = &raftpb.Entry{Term: new(uint64(1)), Index: new(uint64(at + i + 1)), Data: r}
			}
			return w.Save(&raftpb.HardState{}, entries)
		}, w.Close,
	}
}

func openTidwall(dir string, o options) *journal {
	l := must.Get(tidwall.Open(dir, &tidwall.Options{SegmentSize: o.size}))
	return &journal{
		numbered(l.LastIndex, l.Read),
		func(at int, records [][]byte) error {
			var b tidwall.Batch
			for i, r := range records {
				b.Write(uint64(at+i+1), r)
			}
			return l.WriteBatch(&b)
		}, l.Close,
	}
}

func openBolt(dir string, _ options) *journal {
	must.Do(os.MkdirAll(dir, 0o700))
	db := must.Get(bbolt.Open(filepath.Join(dir, "db"), 0o600, nil))
	bucket := []byte("machine")
	return &journal{
		func() (out [][]byte, err error) {
			err = db.View(func(tx *bbolt.Tx) error {
				b := tx.Bucket(bucket)
				if b == nil {
					return nil
				}
				return b.ForEach(func(_, v []byte) error {
					out = append(out, slices.Clone(v))
					return nil
				})
			})
			return out, err
		},
		func(at int, records [][]byte) error {
			return db.Update(func(tx *bbolt.Tx) error {
				b, err := tx.CreateBucketIfNotExists(bucket)
				for i, r := range records {
					if err == nil {
						b.FillPercent = 1 // keys rise
						err = b.Put(binary.BigEndian.AppendUint64(nil, uint64(at+i)), r)
					}
				}
				return err
			})
		}, db.Close,
	}
}
