package conform_test

import (
	"testing"

	"parley/internal/conform"
)

// A device without an end, whose size is 0, is refused as a long file is.
func TestEndlessFile(t *testing.T) {
	_, err := conform.File("/dev/zero")
	if want := "/dev/zero: the file is too long: at most 67108864 bytes are allowed"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
