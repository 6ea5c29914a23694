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

// The room on a disk, in bytes, below which a node warns, and below which it takes nothing new from its clients.
const (
	RoomWarn   = 256 << 20
	RoomRefuse = 64 << 20
)

// RoomError says that there is little room left on the disk of a store.
type RoomError struct {
	Dir    string // where the store lies
	Free   uint64 // bytes, at most a second ago
	Needed uint64 // bytes
}

// Error says where, how much there is and how much is needed.
func (e *RoomError) Error() string {
	return fmt.Sprintf("%d MiB are free in %s, and %d MiB are needed: make room there", e.Free>>20, e.Dir, e.Needed>>20)
}

// Room returns nil if needed bytes were free on the disk at most a second ago, and otherwise a *RoomError.
// It does not ask the disk.
func (s *Store) Room(needed uint64) error {
	if free := s.free.Load(); free < needed {
		return &RoomError{s.dir, free, needed}
	}
	return nil
}

// Least is how many bytes must be free for a node to take anything new: RoomRefuse, in which two logs fit with which
// what is under way ends, and more if these are longer because a state is.
func (s *Store) Least() uint64 {
	return RoomRefuse + 2*uint64(max(0, s.long.Load()+fileHeader+batchHeader+maxName-s.o.LogSize))
}

// looks is how often the room on the disk is looked at, beside after each new log.
const looks = time.Second

// watch looks at the room on the disk until the store ends, and whether the files are still there.
func (s *Store) watch() {
	tick := time.NewTicker(looks)
	defer tick.Stop()
	d := s.as("Store.watch")
	for {
		select {
		case <-tick.C:
			_ = s.look(d) // where the disk cannot say, what it said before holds
			s.present(d)
		case <-s.quit:
			return
		case <-s.bad:
			return
		}
	}
}

// look asks the disk for its room, and logs when there is little of it, or enough again.
func (s *Store) look(d disk.Disk) error {
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

// present ends the store if a file is gone that it needs: the system would go on writing to a file that nobody can
// open again, and what is acknowledged would be lost when the process ends.
func (s *Store) present(d disk.Disk) {
	before := s.needed()
	names, err := d.List(s.dir)
	if err != nil {
		return
	}
	needed := s.needed() // what the store itself removes meanwhile is not among these
	for _, name := range before {
		if slices.Contains(needed, name) && !slices.Contains(names, name) {
			s.fail(&Damage{filepath.Join(s.dir, name), -1, "it was removed while the store was in use"})
			return
		}
	}
}

// needed are the names of the files without which the store could not be opened again; none when it ends.
func (s *Store) needed() []string {
	f := &s.files
	select {
	case f.held <- struct{}{}:
	case <-s.quit:
		return nil
	case <-s.bad:
		return nil
	}
	defer f.letGo()
	names := append(f.manifest.names(), manifestName)
	if f.manifest.open != 0 {
		names = append(names, logName(f.manifest.open))
	}
	return names
}

// roomLevels say what so little room means.
var roomLevels = [...]string{
	"disk has room again",
	"disk has little room left; make room in the folder",
	"disk is nearly full; new requests of clients are refused until there is room in the folder",
}

// level is 1 if a node warns of so many free bytes, and 2 if it takes nothing new.
func level(free, least uint64) int {
	switch {
	case free < least:
		return 2
	case free < RoomWarn:
		return 1
	}
	return 0
}
