package console

import (
	"bytes"
	"errors"
	"syscall"
	"testing"
)

// late is a writer of which only the second write fails.
type late struct {
	bytes.Buffer
	writes int
}

func (l *late) Write(b []byte) (int, error) {
	if l.writes++; l.writes == 2 {
		return 0, syscall.ENOSPC
	}
	return l.Buffer.Write(b)
}

// After a write has failed, nothing more is written, because the gap would not show.
func TestOutputWithoutGap(t *testing.T) {
	var to late
	out := &Output{To: &to}
	for _, text := range []string{"a", "b", "c"} {
		_, _ = out.Write([]byte(text))
	}
	if !errors.Is(out.Failed(), syscall.ENOSPC) || to.String() != "a" {
		t.Errorf("got %q and %v", to.String(), out.Failed())
	}
}
