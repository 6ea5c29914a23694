package console

import (
	"bytes"
	"errors"
	"syscall"
	"testing"
)

// late fails at its second write alone.
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

// After an output has failed nothing more is written: the gap would not be seen.
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
