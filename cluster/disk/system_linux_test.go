package disk_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"parley/cluster/disk"
)

// A small write writes more blocks than its own, so that the next sync records none. On file systems that
// do not distinguish allocated from written blocks the test shows nothing.
func TestReservedFileIsWrittenAhead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	f, err := disk.System{}.Create(name)
	must(t, err)
	unwritten := func() int64 {
		t.Helper()
		f, err := os.Open(name)
		must(t, err)
		at, err := unix.Seek(int(f.Fd()), 0, unix.SEEK_HOLE)
		must(t, errors.Join(err, f.Close()))
		return at
	}
	must(t, f.Reserve(4<<20))
	if at := unwritten(); at != 0 {
		t.Logf("this file system takes %d reserved bytes for written", at)
		return
	}
	if _, err := f.WriteAt([]byte("record"), 0); err != nil {
		t.Fatal(err)
	}
	if at := unwritten(); at < 256<<10 || at > 1<<20 {
		t.Errorf("%d bytes are written with the first record", at)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
