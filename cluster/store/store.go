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

// ErrClosed is the error of a closed store.
var ErrClosed = errors.New("store: closed")

// Store is the durable memory of one node. Its methods are safe for concurrent use.
type Store struct {
	o      Options
	dir    string
	id     uint64
	disk   disk.Disk // for the goroutine that role names; these run one after another
	role   atomic.Value
	lock   io.Closer
	done   chan struct{} // closed when no more commits follow
	failed chan struct{} // closed when the disk has failed

	mu    sync.Mutex
	moved sync.Cond // signaled when there is more to commit, after a commit, and at the end
	batch pending   // gathers the next commit
	spare pending
	upto  uint64 // the number of the last appended record
	// synced is the number of the last record on the disk.
	synced        uint64
	startPosition uint64 // synced when the store was opened
	slowest       time.Duration
	books         map[string]*book
	closing       bool
	err           error

	files        files
	free         atomic.Uint64 // free bytes on the disk when last checked
	longestState atomic.Int64  // bytes of the longest state found at the start or appended since
	quit         chan struct{} // closed by Close
}

// pending is a batch that gathers records, with space for its header in front.
type pending struct {
	b       []byte
	records int
}

// Options configure a store. A zero field means its default.
type Options struct {
	// Durable is called after each commit, from one goroutine. Then all records with numbers up to upto are on the
	// disk.
	Durable func(upto uint64)
	// Failed is called once if the disk fails. No record becomes durable after that. It must not block.
	Failed func(error)
	Log    *slog.Logger
	// Disk is the disk. nil means the disk of the operating system.
	Disk disk.Disk
	// Limit is how long one disk call may take before the disk counts as failed; 0 means 5 s.
	Limit time.Duration
	// LogSize is the size of a log in bytes; 0 means 32 MiB.
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
	loaded *content // until the book is opened
	bytes  int64    // approximate size of the records that count
	last   uint64   // the number of the last appended record
	states []uint64 // numbers of its states, from the last one in the files closed at the last merge
}

// Open opens the store in a folder, and creates the folder if it does not exist. Only one store may use a
// folder at a time. It fails with a *Damage if the contents are damaged, and with disk.ErrLocked if the
// folder is in use.
func Open(dir string, o Options) (*Store, error) {
	o.fill()
	s := &Store{
		o: o, dir: dir, done: make(chan struct{}), failed: make(chan struct{}), quit: make(chan struct{}),
		books: make(map[string]*book),
	}
	s.moved.L = &s.mu
	s.role.Store("Open")
	s.disk = disk.Hooked{Disk: o.Disk, Around: func(op disk.Op, do func() error) error {
		return s.withLimit(s.role.Load().(string), op, do)
	}}
	err := unlessFailed(s.failed, s.start)
	if err = errors.Join(s.failure(), err); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s.role.Store("Store.run")
	go s.run()
	go s.watchRoom()
	return s, nil
}

// patience is how long Open and Close wait for a call of a failed disk.
const patience = 400 * time.Millisecond

// advice says what to do when a disk has failed.
const advice = "nothing is acknowledged from now on; mend the disk, or make room on it, and start the node again"

// start reads the contents of the folder, and begins a new log after it.
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
			s.longestState.Store(max(s.longestState.Load(), int64(len(c.state))))
		}
	}
	s.upto, s.synced, s.startPosition = l.at.number, l.at.number, l.at.number
	if t := l.tail; t != nil {
		s.o.Log.LogAttrs(context.Background(), slog.LevelInfo,
			"store was not closed in order; it resumes after its last whole batch",
			slog.String("file", t.File), slog.Int64("offset", t.Offset), slog.Bool("torn", t.Torn),
			slog.Uint64("position", l.at.number))
	}
	if err := s.files.begin(s, l); err != nil {
		return err
	}
	s.id = s.files.manifest.store
	s.batch.b, s.spare.b = make([]byte, batchHeader), make([]byte, batchHeader)
	s.free.Store(RoomWarn)
	return s.checkRoom(s.disk)
}

// withLimit makes a disk call, and treats the disk as failed if the call does not return in time. A failed
// disk gets no further calls except closes. An error names the call and the file.
func (s *Store) withLimit(goroutine string, op disk.Op, do func() error) error {
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

// diskFor returns the disk for another goroutine.
func (s *Store) diskFor(goroutine string) disk.Disk {
	return disk.Hooked{Disk: s.o.Disk, Around: func(op disk.Op, do func() error) error {
		return s.withLimit(goroutine, op, do)
	}}
}

// Book is the durable records of one machine.
type Book struct {
	s *Store
	b *book
}

// LockName is the name of a file that is locked by the process that uses the store. The file contains no data of the
// store.
const LockName = "lock"

// maxName is the maximum length of a book's name in bytes.
const maxName = 255

// maxRecord is the maximum size of the body of a record or a state in bytes, and maxBatch that of the
// records that wait for one commit: the length is written in four bytes.
const (
	maxRecord = 1 << 30
	maxBatch  = 3 << 30
)

// Open returns the book of a machine, with its state and its records, the oldest first. No other machine may have the
// same name. The state is nil if no state has replaced records.
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

// Append appends a record without waiting, and returns its number among all records of the store. The
// record is durable when Options.Durable is called with this number or a larger one.
func (b *Book) Append(r parley.Record) (number uint64) { return b.submit(recordKind, r.Path, r.Body) }

// Replace appends a state that replaces all records so far, and returns its number. The state is copied.
func (b *Book) Replace(state []byte) (number uint64) { return b.submit(replacesKind, 0, state) }

// submit appends a record or a state. A store that has failed drops it: it will never be durable.
func (b *Book) submit(kind byte, path parley.Path, body []byte) uint64 {
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
		s.longestState.Store(max(s.longestState.Load(), int64(len(body))))
		b.b.bytes, b.b.states = 0, append(b.b.states, s.upto)
	}
	b.b.bytes, b.b.last = b.b.bytes+int64(len(s.batch.b)-before), s.upto
	s.moved.Broadcast()
	return s.upto
}

// Wait returns nil when a record is durable. If the record will never be durable, Wait returns the error.
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

// run commits the gathered records repeatedly.
func (s *Store) run() {
	defer close(s.done)
	for {
		batch, upto, ok := s.nextBatch()
		if !ok {
			return
		}
		began := time.Now()
		if err := s.files.commit(batch.b, batch.records, upto); err != nil {
			s.fail(fmt.Errorf("the disk failed: %w; %s", err, advice))
			return
		}
		if !s.noteCommit(batch, upto, time.Since(began)) {
			return
		}
		s.o.Durable(upto)
		s.files.tidy(s)
	}
}

// nextBatch waits for something to commit. ok is false if there is nothing and the store is being closed,
// or if the disk has failed.
func (s *Store) nextBatch() (batch pending, upto uint64, ok bool) {
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

// keep is the size in bytes up to which a buffer is reused: enough for the longest history of a group.
const keep = 12 << 20

// slow is the duration above which a commit is logged.
const slow = time.Second

// noteCommit records that a batch is durable, and returns false if the disk has failed meanwhile.
func (s *Store) noteCommit(batch pending, upto uint64, took time.Duration) bool {
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
		s.o.Log.LogAttrs(context.Background(), slog.LevelWarn, "disk is slow; commits wait for it",
			slog.Duration("commit", took))
	}
	return true
}

// fail records the first failure and reports it to the owner.
func (s *Store) fail(err error) {
	s.mu.Lock()
	first := s.err == nil
	if first {
		err = fmt.Errorf("store: %w", err)
		s.err = err
		s.batch, s.spare = pending{}, pending{}
		close(s.failed)
		s.moved.Broadcast()
	}
	s.mu.Unlock()
	if first {
		s.o.Failed(err)
	}
}

// Fail makes the store treat its disk as failed, because of a failure of something written outside the
// store.
func (s *Store) Fail(err error) { s.fail(fmt.Errorf("the disk failed: %w; %s", err, advice)) }

// failure returns why nothing becomes durable any more, nil if it does.
func (s *Store) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// ID returns the random number that the store got when it was created.
func (s *Store) ID() uint64 { return s.id }

// Position returns the number of the last record on the disk. It grows over all incarnations of the node.
func (s *Store) Position() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced
}

// Began returns the position at which the store was opened.
func (s *Store) Began() uint64 { return s.startPosition }

// Stats are counts and measurements of a store since it was opened.
type Stats struct {
	Records  uint64        // appended since it was opened, including states
	Durable  uint64        // how many of them are on the disk
	Position uint64        // the number of the last record on the disk
	Bytes    uint64        // of the folder
	Free     uint64        // free bytes on the disk, at most a second old
	Slowest  time.Duration // the slowest commit
	Err      error         // why nothing becomes durable any more
}

// Stats returns the statistics of the store.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{
		Records: s.upto - s.startPosition, Durable: s.synced - s.startPosition, Position: s.synced,
		Bytes: uint64(s.files.size.Load()), Free: s.free.Load(), Slowest: s.slowest, Err: s.err,
	}
}

// Close waits until all appended records are durable, and closes the store. If the disk has failed, it
// returns the failure within a second.
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
	err := unlessFailed(s.failed, s.end)
	return errors.Join(s.failure(), err)
}

// unlessFailed calls do, and abandons the call if the disk has failed: it may be in the kernel forever.
func unlessFailed(bad <-chan struct{}, do func() error) (err error) {
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

// end closes the files after the last commit.
func (s *Store) end() error {
	<-s.done
	s.role.Store("Store.end")
	err := s.files.end(s)
	return errors.Join(err, s.lock.Close())
}

// newID returns a random number, which no other store should have.
func newID() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return binary.BigEndian.Uint64(b[:])
}

var _ io.Closer = (*Store)(nil)
