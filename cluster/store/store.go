package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/cluster/disk"
)

// ErrClosed is the error of a store that has been closed.
var ErrClosed = errors.New("store: closed")

// Store is the durable memory of one node. Its methods may be used at the same time.
type Store struct {
	o    Options
	dir  string
	id   uint64
	disk disk.Disk // for the goroutine that role names: they follow each other
	role atomic.Value
	lock io.Closer
	done chan struct{} // closed when commits have ended
	bad  chan struct{} // closed when the disk has failed

	mu    sync.Mutex
	moved sync.Cond // more is to be committed, or was, or the store ends
	batch pending   // what gathers for the next commit
	spare pending
	upto  uint64 // the number of the last record handed over
	// synced is the number of the last record on the disk.
	synced  uint64
	begun   uint64 // synced at the start
	slowest time.Duration
	books   map[string]*book
	closing bool
	err     error

	files files
	free  atomic.Uint64 // bytes on the disk, as they were last looked at
	long  atomic.Int64  // of the longest state that was there at the start, or was handed over since, in bytes
	quit  chan struct{} // closed by Close
}

// pending is a batch that gathers, with room for its header in front.
type pending struct {
	b       []byte
	records int
}

// Options configure a store. What is zero has a default.
type Options struct {
	// Durable is called after each commit, from one goroutine: every record with a number up to upto
	// is on the disk.
	Durable func(upto uint64)
	// Failed is called once if the disk fails. Nothing is durable any more after that. It must not block.
	Failed func(error)
	Log    *slog.Logger
	// Disk is by default that of the operating system.
	Disk disk.Disk
	// Limit is how long one call of the disk may take before the disk counts as failed; by default 5 s.
	Limit time.Duration
	// LogSize is how many bytes a log is given; by default 32 MiB.
	LogSize int64
}

func (o *Options) fill() {
	if o.Durable == nil {
		o.Durable = func(uint64) {}
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	o.Log, o.Disk = cmp.Or(o.Log, slog.New(slog.DiscardHandler)), cmp.Or[disk.Disk](o.Disk, disk.System{})
	o.Limit, o.LogSize = cmp.Or(o.Limit, 5*time.Second), cmp.Or(o.LogSize, 32<<20)
}

// book is what the store knows of the records of one machine.
type book struct {
	name   string
	open   bool
	loaded *content // until it is opened
	bytes  int64    // of the records that count, about
	last   uint64   // the number of the last record handed over
	states []uint64 // the numbers of its states, from the last one on that the closed files had at the last merge
}

// Open opens the store in a folder, which it makes if there is none. A folder belongs
// to one store at a time. It fails with a *Damage if what is there is damaged, and with
// disk.ErrLocked if the folder is in use.
func Open(dir string, o Options) (*Store, error) {
	o.fill()
	s := &Store{
		o: o, dir: dir, done: make(chan struct{}), bad: make(chan struct{}), quit: make(chan struct{}),
		books: make(map[string]*book),
	}
	s.moved.L = &s.mu
	s.role.Store("Open")
	s.disk = disk.Hooked{Disk: o.Disk, Around: func(op disk.Op, do func() error) error {
		return s.watched(s.role.Load().(string), op, do)
	}}
	err := unlessBad(s.bad, s.start)
	if err = errors.Join(s.failure(), err); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s.role.Store("Store.run")
	go s.run()
	go s.watch()
	return s, nil
}

// patience is how long one waits for a call of a disk that has failed.
const patience = 400 * time.Millisecond

// advice says what to do when a disk has failed.
const advice = "nothing is acknowledged from now on; mend the disk, or make room on it, and start the node again"

// start reads what there is, and begins a new log behind it.
func (s *Store) start() (err error) {
	if err := s.disk.MkdirAll(s.dir); err != nil {
		return err
	}
	if err := s.disk.SyncDir(filepath.Dir(s.dir)); err != nil {
		return err
	}
	if s.lock, err = s.disk.Lock(filepath.Join(s.dir, LockName)); err != nil {
		return fmt.Errorf("%s: %w", s.dir, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.files.close(), s.lock.Close())
		}
	}()
	l, err := load(s.disk, s.dir)
	if err != nil {
		return err
	}
	for name, c := range l.books {
		s.books[name] = &book{name: name, loaded: c, bytes: c.bytes}
		if c.state != nil {
			s.books[name].states = []uint64{c.at}
			s.long.Store(max(s.long.Load(), int64(len(c.state))))
		}
	}
	s.upto, s.synced, s.begun = l.at.number, l.at.number, l.at.number
	if t := l.tail; t != nil {
		s.o.Log.LogAttrs(context.Background(), slog.LevelInfo, "store was not closed; resuming behind its last whole batch",
			slog.String("file", t.File), slog.Int64("offset", t.Offset), slog.Bool("torn", t.Torn),
			slog.Uint64("position", l.at.number))
	}
	if err := s.files.begin(s, l); err != nil {
		return err
	}
	s.id = s.files.manifest.store
	s.batch.b, s.spare.b = make([]byte, batchHeader), make([]byte, batchHeader)
	s.free.Store(RoomWarn)
	return s.look(s.disk)
}

// watched makes a call of the disk, and takes the disk for failed if the call does not end in time. A disk that has
// failed is asked for nothing more. An error names the file.
func (s *Store) watched(goroutine string, op disk.Op, do func() error) error {
	if err := s.failure(); err != nil && op.Call != "close" {
		return err
	}
	t := time.AfterFunc(s.o.Limit, func() {
		s.fail(fmt.Errorf("the disk has not answered for %v to a %s of %s: goroutine store.%s is left in the kernel; %s",
			s.o.Limit, op.Call, op.Name, goroutine, advice))
	})
	defer t.Stop()
	err := do()
	if err == nil || errors.Is(err, io.EOF) || errors.As(err, new(*fs.PathError)) || errors.As(err, new(*os.LinkError)) {
		return err
	}
	return fmt.Errorf("%s %s: %w", op.Call, op.Name, err)
}

// as returns the disk for another goroutine.
func (s *Store) as(goroutine string) disk.Disk {
	return disk.Hooked{Disk: s.o.Disk, Around: func(op disk.Op, do func() error) error {
		return s.watched(goroutine, op, do)
	}}
}

// Book is what one machine has made durable.
type Book struct {
	s *Store
	b *book
}

// LockName is the file that the process holds which uses a store. It tells nothing of what is in the folder.
const LockName = "lock"

// maxName is the longest name of a book.
const maxName = 255

// maxRecord is the largest body of a record or a state, in bytes, and maxBatch what may wait for one commit: its length
// is written in four bytes.
const (
	maxRecord = 1 << 30
	maxBatch  = 3 << 30
)

// Open returns the book of a machine, by a name that no other one has, with the state and
// the records in it, oldest first; the state is nil if none has replaced records.
func (s *Store) Open(name string) (b *Book, state []byte, records []parley.Record, err error) {
	if name == "" || len(name) > maxName {
		return nil, nil, nil, fmt.Errorf("store: a book's name has 1 to %d bytes, not %d", maxName, len(name))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.books[name] == nil {
		s.books[name] = &book{name: name}
	}
	of := s.books[name]
	if of.open {
		return nil, nil, nil, fmt.Errorf("store: %q is open already", name)
	}
	of.open = true
	if c := of.loaded; c != nil {
		state, records, of.loaded = c.state, c.records, nil
	}
	return &Book{s, of}, state, records, nil
}

// Append hands over a record and returns its number among all that the store has been
// given: it is durable when Options.Durable says so of this number.
func (b *Book) Append(r parley.Record) (number uint64) { return b.hand(recordKind, r.Path, r.Body) }

// Replace hands over a state that takes the place of all records so far. The state is copied.
func (b *Book) Replace(state []byte) (number uint64) { return b.hand(replacesKind, 0, state) }

// hand hands over a record or a state. A store that has failed forgets it: it will never be durable.
func (b *Book) hand(kind byte, path parley.Path, body []byte) uint64 {
	s := b.s
	if len(body) > maxRecord {
		s.fail(fmt.Errorf("%s made a record of %d bytes, and %d are allowed", b.b.name, len(body), maxRecord))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.upto++
	if s.err != nil || s.closing {
		return s.upto
	}
	before := len(s.batch.b)
	if before+len(body)+maxName+64 > maxBatch {
		s.mu.Unlock()
		s.fail(fmt.Errorf("more than %d bytes wait for the disk; %s", maxBatch, advice))
		s.mu.Lock()
		return s.upto
	}
	s.batch.b = appendRecord(s.batch.b, kind, b.b.name, path, body)
	s.batch.records++
	if kind == replacesKind {
		s.long.Store(max(s.long.Load(), int64(len(body))))
		b.b.bytes, b.b.states = 0, append(b.b.states, s.upto)
	}
	b.b.bytes, b.b.last = b.b.bytes+int64(len(s.batch.b)-before), s.upto
	s.moved.Broadcast()
	return s.upto
}

// Wait returns when a record is durable, or with the error because of which it never will be.
func (s *Store) Wait(number uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.synced < number {
		if err := s.err; err != nil {
			return err
		} else if s.closing {
			return ErrClosed
		}
		s.moved.Wait()
	}
	return nil
}

// run commits what has gathered, again and again.
func (s *Store) run() {
	defer close(s.done)
	for {
		batch, upto, ok := s.gathered()
		if !ok {
			return
		}
		began := time.Now()
		if err := s.files.commit(batch.b, batch.records, upto); err != nil {
			s.fail(fmt.Errorf("the disk failed: %w; %s", err, advice))
			return
		}
		if !s.committed(batch, upto, time.Since(began)) {
			return
		}
		s.o.Durable(upto)
		s.files.tidy(s)
	}
}

// gathered waits for something to commit. It is the end if there is nothing and the
// store is to be closed, or if the disk has failed.
func (s *Store) gathered() (batch pending, upto uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.batch.records == 0 && s.err == nil {
		if s.closing {
			return batch, 0, false
		}
		s.moved.Wait()
	}
	batch, s.batch = s.batch, s.spare
	return batch, s.synced + uint64(batch.records), s.err == nil
}

// keep is the largest buffer that is kept for the next batch: one with the longest history of a group.
const keep = 12 << 20

// slow is how long a commit may take before that is worth a line in the log.
const slow = time.Second

// committed notes that a batch is durable, unless the disk was taken for failed meanwhile.
func (s *Store) committed(batch pending, upto uint64, took time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false
	}
	s.synced, s.slowest = upto, max(s.slowest, took)
	if batch.b = batch.b[:batchHeader]; cap(batch.b) > keep {
		batch.b = make([]byte, batchHeader)
	}
	s.spare = pending{b: batch.b}
	s.moved.Broadcast()
	if took > slow {
		s.o.Log.LogAttrs(context.Background(), slog.LevelWarn, "disk is slow", slog.Duration("commit", took))
	}
	return true
}

// fail tells the owner, once.
func (s *Store) fail(err error) {
	s.mu.Lock()
	first := s.err == nil
	if first {
		err = fmt.Errorf("store: %w", err)
		s.err = err
		s.batch, s.spare = pending{}, pending{}
		close(s.bad)
		s.moved.Broadcast()
	}
	s.mu.Unlock()
	if first {
		s.o.Failed(err)
	}
}

// Fail has the store take its disk for failed, because of something that was written beside the store.
func (s *Store) Fail(err error) { s.fail(fmt.Errorf("the disk failed: %w; %s", err, advice)) }

// failure is why nothing is durable any more.
func (s *Store) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// ID returns the number of this store, which it was given at random when it began.
func (s *Store) ID() uint64 { return s.id }

// Position returns the number of the last record on the disk. It grows over all lives of the store.
func (s *Store) Position() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced
}

// Began returns the position at which this life of the store began.
func (s *Store) Began() uint64 { return s.begun }

// Stats is what a store has done.
type Stats struct {
	Records  uint64        // handed over since it was opened, states too
	Durable  uint64        // of them on the disk
	Position uint64        // the number of the last record on the disk
	Bytes    uint64        // of the folder
	Free     uint64        // bytes on the disk, as they were at most a second ago
	Slowest  time.Duration // the slowest commit
	Err      error         // why nothing is durable any more
}

// Stats returns what the store has done since it was opened.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{
		Records: s.upto - s.begun, Durable: s.synced - s.begun, Position: s.synced,
		Bytes: uint64(s.files.size.Load()), Free: s.free.Load(), Slowest: s.slowest, Err: s.err,
	}
}

// Close waits until all that was handed over is durable, and closes the store. If the disk has failed it
// returns within a second, with the failure.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return ErrClosed
	}
	s.closing = true
	s.moved.Broadcast()
	s.mu.Unlock()
	close(s.quit)
	err := unlessBad(s.bad, s.end)
	return errors.Join(s.failure(), err)
}

// unlessBad does something, and leaves it behind if the disk has failed: it may be in the kernel for ever.
func unlessBad(bad <-chan struct{}, do func() error) (err error) {
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	select {
	case err = <-ended:
	case <-bad:
		select {
		case err = <-ended:
		case <-time.After(patience):
		}
	}
	return err
}

// end closes the files when all is committed.
func (s *Store) end() error {
	<-s.done
	s.role.Store("Store.end")
	err := s.files.end(s)
	return errors.Join(err, s.lock.Close())
}

// newID returns a number that no other store has.
func newID() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // which never fails
	return binary.BigEndian.Uint64(b[:])
}

var _ io.Closer = (*Store)(nil)
