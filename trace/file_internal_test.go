package trace

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A line that is too long is an error that says which line it is, and the limit.
func TestLongLine(t *testing.T) {
	r := newReader(strings.NewReader("{}\n" + strings.Repeat("x", 1000)))
	r.lines.Buffer(nil, 100) // instead of maxLine
	for r.scan() {
	}
	err := r.missing(errors.New("it is missing"))
	if want := fmt.Sprintf("line 2: the line is too long: at most %d bytes are allowed (at byte 3)", maxLine); err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
