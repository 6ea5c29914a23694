package conform_test

import (
	"testing"

	"parley/internal/conform"
)

// A device without an end, whose size is 0, is refused as a long file is.
func TestEndlessFile(t *testing.T) {
	_, err := conform.File("/dev/zero")
	if want := "/dev/zero: more than 67108864 bytes: no vector file is so long"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
