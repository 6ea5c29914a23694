package store

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"parley/cluster/disk"
)

// Free space on a disk, in bytes, below which a node warns, and below which it refuses new requests of
// clients.
const (
	RoomWarn   = 256 << 20
	RoomRefuse = 64 << 20
)

// RoomError reports that a store's disk has too little free space.
type RoomError struct {
	Dir    string // the folder of the store
	Free   uint64 // free bytes, at most a second ago
	Needed uint64 // bytes
}

// Error returns the folder, the free space and the needed space.
func (e *RoomError) Error() string {
	return fmt.Sprintf("%d MiB are free in %s, and %d MiB are needed: make room there", e.Free>>20, e.Dir, e.Needed>>20)
}

// Room returns nil if needed bytes were free on the disk at most a second ago, and otherwise a *RoomError.
// It makes no disk call.
func (s *Store) Room(needed uint64) error {
	if free := s.free.Load(); free < needed {
		return &RoomError{s.dir, free, needed}
	}
	return nil
}

// Least returns how many bytes must be free for a node to accept new requests. This is RoomRefuse, or more if a state
// is longer than a log. Two logs fit into RoomRefuse, so requests in flight can complete.
func (s *Store) Least() uint64 {
	return RoomRefuse + 2*uint64(max(0, s.longestState.Load()+fileHeader+batchHeader+maxName-s.o.LogSize))
}

// roomInterval is the interval of checks of the free space; each new log is followed by another check.
const roomInterval = time.Second

// watchRoom checks the free space, and whether the files still exist, until the store ends.
func (s *Store) watchRoom() {
	tick := time.NewTicker(roomInterval)
	defer tick.Stop()
	d := s.diskFor("Store.watch")
	for {
		select {
		case <-tick.C:
			_ = s.checkRoom(d) // if the disk cannot say, the last value stays
			s.checkFiles(d)
		case <-s.quit:
			return
		case <-s.failed:
			return
		}
	}
}

// checkRoom measures the free space, and logs when it becomes low or sufficient.
func (s *Store) checkRoom(d disk.Disk) error {
	free, err := d.Free(s.dir)
	if err != nil {
		return err
	}
	least := s.Least()
	before := level(s.free.Swap(free), least)
	now, severity := level(free, least), slog.LevelWarn
	if now == 0 {
		severity = slog.LevelInfo
	}
	if now > before || now == 0 && before > 0 {
		s.o.Log.LogAttrs(context.Background(), severity, roomLevels[now],
			slog.String("folder", s.dir), slog.Uint64("free", free))
	}
	return nil
}

// checkFiles ends the store if a file that it needs is gone: the system would continue to write to a file
// that cannot be opened again, and acknowledged records would be lost when the process ends.
func (s *Store) checkFiles(d disk.Disk) {
	before := s.neededFiles()
	names, err := d.List(s.dir)
	if err != nil {
		return
	}
	needed := s.neededFiles() // excludes files that the store removed meanwhile
	for _, name := range before {
		if slices.Contains(needed, name) && !slices.Contains(names, name) {
			s.fail(&Damage{filepath.Join(s.dir, name), -1, "it was removed while the store was in use"})
			return
		}
	}
}

// neededFiles returns the names of the files without which the store could not be opened again, nil if it
// is ending.
func (s *Store) neededFiles() []string {
	f := &s.files
	select {
	case f.held <- struct{}{}:
	case <-s.quit:
		return nil
	case <-s.failed:
		return nil
	}
	defer f.release()
	names := append(f.manifest.names(), manifestName)
	if f.manifest.open != 0 {
		names = append(names, logName(f.manifest.open))
	}
	return names
}

// roomLevels are the log messages for each level.
var roomLevels = [...]string{
	"disk has room again",
	"disk is getting full; free space on it",
	"disk is nearly full; requests that write are refused until space is free",
}

// level returns 1 if a node warns about the free bytes, 2 if it accepts nothing new, and otherwise 0.
func level(free, least uint64) int {
	switch {
	case free < least:
		return 2
	case free < RoomWarn:
		return 1
	}
	return 0
}
