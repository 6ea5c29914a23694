package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"parley/cluster/disk"
	"parley/cluster/lives"
	"parley/cluster/store"
	"parley/cluster/traces"
)

// folder is where a node keeps its durable state. Calls of its disk have a time limit.
type folder struct {
	dir   string // empty if the node has none
	disk  disk.Disk
	limit time.Duration
}

// folder returns the data folder of the configuration.
func (c Config) folder() folder {
	return folder{c.Dir, cmp.Or[disk.Disk](c.Disk, disk.System{}), c.DiskLimit}
}

// MarkName is the name of a file in a node's data folder. The file tells people what the folder is. If a node finds
// this file but no records, it knows that its records were removed.
const MarkName = "README.txt"

const markText = `This folder belongs to one node of a cluster, and is written while that node runs.
Do not restore it from a copy: the other nodes know more of this node than an old copy does.
If it is lost or damaged, start the node with an empty folder and with --rejoin.
`

// open opens the node's store. It refuses a folder whose records were removed, because the others would assume
// that the node still has them. It returns nil if there is no folder.
func (f folder) open(o store.Options) (*store.Store, error) {
	if f.dir == "" {
		return nil, nil
	}
	records, mark := filepath.Join(f.dir, "records"), filepath.Join(f.dir, MarkName)
	list := func(dir string) ([]string, error) {
		return diskAnswers(f.limit, "list "+dir, func() ([]string, error) { return f.disk.List(dir) })
	}
	names, err := list(f.dir)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	held, err := list(records)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	held = slices.DeleteFunc(held, func(name string) bool { return name == store.LockName })
	known := slices.Contains(names, MarkName)
	if known && len(held) == 0 {
		return nil, fmt.Errorf("cluster: %s: the folder records is missing, and with it what this node acknowledged: "+
			"while more than half of all nodes are intact, start this node with an empty folder and --rejoin", f.dir)
	}
	o.Limit = f.limit
	s, err := store.Open(records, o)
	if err != nil || known {
		return s, err
	}
	_, err = diskAnswers(f.limit, "write "+mark, func() (none struct{}, err error) { return none, f.write(mark) })
	if err != nil {
		err = fmt.Errorf("cluster: %s: %w", mark, err)
		s.Fail(err) // otherwise Close would wait for the disk again
	}
	return s, err
}

func (f folder) write(mark string) error {
	file, err := f.disk.Create(mark)
	if err == nil {
		_, err = file.WriteAt([]byte(markText), 0)
		err = errors.Join(err, file.Sync(), file.Close(), f.disk.SyncDir(f.dir))
	}
	return err
}

// dump writes the recorded events into the folder: see DumpFlight.
func (f folder) dump(t *traces.Tracer) (file string, err error) {
	return diskAnswers(f.limit, "write "+traces.FlightFile, func() (string, error) { return t.Dump(f.disk, f.dir) })
}

// diskPatience is how long a node waits for calls of a disk that has failed.
const diskPatience = 400 * time.Millisecond

// errNoAnswer is the error of a disk that did not answer in time.
var errNoAnswer = errors.New("the disk does not answer")

// diskAnswers runs do, which makes calls of the disk, and returns its result, or errNoAnswer after the limit.
func diskAnswers[T any](limit time.Duration, what string, do func() (T, error)) (T, error) {
	type result struct {
		of  T
		err error
	}
	done := make(chan result, 1)
	go func() {
		of, err := do()
		done <- result{of, err}
	}()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case r := <-done:
		return r.of, r.err
	case <-t.C:
		var none T
		return none, fmt.Errorf("%w: %v have passed since it was to %s: goroutine cluster.diskAnswers is left in the kernel",
			errNoAnswer, limit, what)
	}
}

// life numbers this incarnation in the node's store. It returns the known incarnations, and whether the node has
// started before. Without a store the book is in memory, and again is false.
func (c Config) life(s *store.Store) (l *lives.Book, again bool, err error) {
	const inMemory = "not durable; acknowledged data is lost if a majority of the nodes fails"
	switch {
	case s == nil && c.Durable:
		return nil, false, errors.New("cluster: Durable needs a data folder (Dir)")
	case s == nil:
		c.Log.Warn(inMemory)
		return lives.InMemory(c.Trust.Revoked), false, nil
	}
	if l, again, err = lives.Open(s, c.Rejoin, c.Trust.Revoked); err != nil {
		return nil, false, fmt.Errorf("cluster: %s: %w", c.Dir, err)
	}
	switch {
	case again && !c.Durable:
		c.Log.Warn("restarted without durable state; it waits until a member admits it, and if all nodes have ended, "+
			"all must start with empty folders", "incarnation", l.Own())
	case !c.Durable:
		c.Log.Warn(inMemory)
	}
	return l, again, nil
}
