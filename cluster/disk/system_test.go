package disk_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"parley/cluster/disk"
)

// Zeros written ahead change nothing that can be read, wherever a write goes, and do not extend the file.
func TestReservedFileReadsAsWritten(t *testing.T) {
	const size = 3<<20 + 100
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		f, err := disk.System{}.Create(filepath.Join(t.TempDir(), "a"))
		must(t, err)
		must(t, f.Reserve(size))
		want, next := make([]byte, size), 0
		for range 50 {
			b := bytes.Repeat([]byte{byte(1 + r.IntN(255))}, 1+r.IntN(100_000))
			at := next
			if seed%2 == 1 {
				at = r.IntN(size)
			}
			b = b[:min(len(b), size-at)]
			next = at + len(b)
			copy(want[at:], b)
			if n, err := f.WriteAt(b, int64(at)); n != len(b) || err != nil {
				t.Fatalf("seed %d: %d of %d bytes written at %d: %v", seed, n, len(b), at, err)
			}
		}
		got := make([]byte, size)
		length, err := f.Size()
		if _, readErr := f.ReadAt(got, 0); err != nil || readErr != nil || length != size {
			t.Fatalf("seed %d: %d bytes: %v", seed, length, errors.Join(err, readErr))
		}
		if !bytes.Equal(got, want) {
			t.Errorf("seed %d: not what was written", seed)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
