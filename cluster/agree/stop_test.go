package agree

import (
	"io"
	"testing"
)

// The Stop of Decisions works by call and by Close, any number of times, and ends its own function only.
func TestStop(t *testing.T) {
	t.Parallel()
	s, heard := new(Service), ""
	note := func(name string) func(Decision) { return func(Decision) { heard += name } }
	a, b, c := s.Decisions(note("a")), s.Decisions(note("b")), s.Decisions(note("c"))
	defer c()
	a()
	for _, one := range []io.Closer{a, b, b} {
		if err := one.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, each := range s.listeners() {
		(*each)(Decision{})
	}
	if heard != "c" {
		t.Errorf("%q have heard, c was expected", heard)
	}
}
