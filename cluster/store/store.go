// Package store keeps what the machines of a node have made durable: for each
// machine its records, and the state that has replaced earlier ones.
//
// Records are handed over without waiting. One goroutine commits what has gathered
// since its last commit, with one write and one sync for all, and then says up to where
// all is on the disk. Nothing that depends on a record may leave the node before that.
//
// A disk that fails is not asked again: what it has kept of a failed write is unknown,
// and so is whether it will say so. The store then takes in nothing more and tells its
// owner, who stops the node.
package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"parley"
)

// ErrClosed is the error of a store that has been closed.
var ErrClosed = errors.New("store: closed")

// Store is the durable memory of one node. Its methods may be used at the same time.
type Store struct {
	db      *pebble.DB
	durable func(upto uint64)
	failed  func(error)

	mu    sync.Mutex
	work  sync.Cond
	batch *pebble.Batch // what gathers for the next commit
	spare *pebble.Batch
	upto  uint64 // records handed over so far, of all books
	// committed is how many of them are on the disk.
	committed uint64
	books     map[string]*Book
	closing   bool
	err       error
	done      chan struct{}
}

// Options are those of a store.
type Options struct {
	// Durable is called after each commit, from one goroutine: all that was handed over
	// with a number up to this one is on the disk.
	Durable func(upto uint64)
	// Failed is called once if the disk fails. Nothing is durable any more after that.
	Failed func(error)
	Log    *slog.Logger

	// Disk is that of the system by default. Tests have another.
	Disk vfs.FS
}

// Open opens the store in a folder, which it makes if there is none. A folder belongs
// to one store at a time.
func Open(dir string, o Options) (*Store, error) {
	if o.Disk == nil {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		o.Disk = vfs.Default
	}
	s := &Store{durable: o.Durable, failed: o.Failed, books: make(map[string]*Book), done: make(chan struct{})}
	if s.durable == nil {
		s.durable = func(uint64) {}
	}
	if s.failed == nil {
		s.failed = func(error) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s.work.L = &s.mu
	db, err := pebble.Open(dir, &pebble.Options{
		FS:     o.Disk,
		Logger: logger{o.Log, s.fail},
		// What it writes in the background it would try again, on a disk that failed.
		EventListener: &pebble.EventListener{BackgroundError: s.fail},
		// Records live until a state replaces them: most never leave the first table.
		MemTableSize: 16 << 20,
	})
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", dir, err)
	}
	s.db, s.batch, s.spare = db, db.NewBatch(), db.NewBatch()
	go s.run()
	return s, nil
}

// Book is what one machine has made durable.
type Book struct {
	s      *Store
	prefix []byte
	next   uint64 // the number of the next record
}

// The keys of a book: its name with its length in front, and then one of these. The
// number of a record follows, so that records are in order.
const (
	stateKey  = 's'
	recordKey = 'r'
	endKey    = 'r' + 1
)

// maxName is the longest name of a book.
const maxName = 255

// Open returns the book of a machine, by a name that no other one has, with the state and
// the records in it, oldest first; the state is nil if none has replaced records.
func (s *Store) Open(name string) (b *Book, state []byte, records []parley.Record, err error) {
	if name == "" || len(name) > maxName {
		return nil, nil, nil, fmt.Errorf("store: a book's name has 1 to %d bytes, not %d", maxName, len(name))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.books[name] != nil {
		return nil, nil, nil, fmt.Errorf("store: %q is open already", name)
	}
	b = &Book{s: s, prefix: append([]byte{byte(len(name))}, name...)}
	if state, err = s.get(b.key(stateKey)); err != nil {
		return nil, nil, nil, err
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: b.key(recordKey), UpperBound: b.key(endKey)})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("store: %w", err)
	}
	for it.First(); it.Valid(); it.Next() {
		r, number, ok := b.read(it.Key(), it.Value())
		if !ok {
			return nil, nil, nil, errors.Join(fmt.Errorf("store: %q has a record that cannot be read", name), it.Close())
		}
		records, b.next = append(records, r), number+1
	}
	if err := it.Close(); err != nil {
		return nil, nil, nil, fmt.Errorf("store: %w", err)
	}
	s.books[name] = b
	return b, state, records, nil
}

func (s *Store) get(key []byte) ([]byte, error) {
	v, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	out := append([]byte{}, v...)
	return out, closer.Close()
}

func (b *Book) key(what byte) []byte { return append(b.prefix[:len(b.prefix):len(b.prefix)], what) }

// read takes a record apart: its path stands before its body.
func (b *Book) read(key, value []byte) (r parley.Record, number uint64, ok bool) {
	at := key[len(b.prefix)+1:]
	path, body, err := parley.ReadUvarint(value, 1<<64-1)
	if len(at) != 8 || err != nil {
		return r, 0, false
	}
	return parley.Record{Path: parley.Path(path), Body: append([]byte(nil), body...)}, binary.BigEndian.Uint64(at), true
}

// Append hands over a record and returns its number among all that the store has been
// given: it is durable when Options.Durable says so of this number.
func (b *Book) Append(r parley.Record) (number uint64) {
	s := b.s
	s.mu.Lock()
	defer s.mu.Unlock()
	var key [maxName + 10]byte
	k := append(append(key[:0], b.prefix...), recordKey)
	k = binary.BigEndian.AppendUint64(k, b.next)
	value := append(binary.AppendUvarint(nil, uint64(r.Path)), r.Body...)
	b.next++
	return s.hand(s.batch.Set(k, value, nil))
}

// Replace hands over a state that takes the place of all records so far.
func (b *Book) Replace(state []byte) (number uint64) {
	s := b.s
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hand(errors.Join(
		s.batch.DeleteRange(b.key(recordKey), b.key(endKey), nil),
		s.batch.Set(b.key(stateKey), state, nil),
	))
}

// hand counts what was put into the batch. The lock is held.
func (s *Store) hand(err error) uint64 {
	if err != nil {
		panic(fmt.Sprintf("store: a batch in memory: %v", err)) // which has nothing that can fail
	}
	s.upto++
	s.work.Signal()
	return s.upto
}

// run commits what has gathered, again and again. After a failure it goes on to take in
// what it is given, and says no more that anything is durable.
func (s *Store) run() {
	defer close(s.done)
	for committed := uint64(0); ; {
		batch, upto, ok := s.gathered(committed)
		if !ok {
			return
		}
		if s.broken() == nil {
			if err := batch.Commit(pebble.Sync); err != nil {
				s.fail(err)
			}
		}
		// The database may have called a failure fatal, and gone on.
		if committed = upto; s.broken() == nil {
			s.mu.Lock()
			s.committed = upto
			s.mu.Unlock()
			s.durable(upto)
		}
		batch.Reset()
		s.mu.Lock()
		s.spare = batch
		s.mu.Unlock()
	}
}

// gathered waits for something to commit. It is the end if there is nothing and the
// store is to be closed.
func (s *Store) gathered(committed uint64) (batch *pebble.Batch, upto uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.upto == committed {
		if s.closing {
			return nil, 0, false
		}
		s.work.Wait()
	}
	batch, s.batch = s.batch, s.spare
	return batch, s.upto, true
}

func (s *Store) broken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// fail tells the owner, once.
func (s *Store) fail(err error) {
	s.mu.Lock()
	first := s.err == nil
	s.err = errors.Join(s.err, err)
	s.mu.Unlock()
	if first {
		// Not here: it may be the database that tells, with its locks held.
		go s.failed(fmt.Errorf("store: the disk failed: %w", err))
	}
}

// Stats is what a store has done.
type Stats struct {
	Records uint64 // handed over, states too
	Durable uint64 // of them on the disk
	Bytes   uint64 // of the folder
	Err     error  // why nothing is durable any more
}

// Stats tells what the store has done since it was opened.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Stats{Records: s.upto, Durable: s.committed, Err: s.err}
	if !s.closing {
		out.Bytes = s.db.Metrics().DiskSpaceUsage()
	}
	return out
}

// Close waits until all that was handed over is durable, and closes the store.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return ErrClosed
	}
	s.closing = true
	s.work.Signal()
	s.mu.Unlock()
	<-s.done
	return errors.Join(s.broken(), s.db.Close())
}

// logger hands on what the database says. What it calls fatal is a failure of the disk.
type logger struct {
	log  *slog.Logger
	fail func(error)
}

func (l logger) Infof(string, ...any) {}

func (l logger) Errorf(format string, args ...any) {
	l.log.LogAttrs(context.Background(), slog.LevelError, "store: "+fmt.Sprintf(format, args...))
}

func (l logger) Fatalf(format string, args ...any) { l.fail(fmt.Errorf(format, args...)) }

var _ io.Closer = (*Store)(nil)
