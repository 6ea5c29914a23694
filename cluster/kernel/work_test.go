package kernel

import (
	"slices"
	"testing"
)

// Work before Begin waits for it, work after End is ignored, and Go reports whether the work runs.
func TestWork(t *testing.T) {
	for _, c := range []struct {
		name  string
		calls string // b: Begin, e: End, g: Go; calls of Go are numbered
		ran   []int
		now   []bool
	}{
		{"never begun", "gg", nil, []bool{false, false}},
		{"early", "ggb", []int{0, 1}, []bool{false, false}},
		{"begun", "bg", []int{0}, []bool{true}},
		{"ended", "bgeg", []int{0}, []bool{true, false}},
		{"ended early", "geb", nil, []bool{false}},
	} {
		var w Work
		ran := make(chan int, len(c.calls))
		var now []bool
		for _, call := range c.calls {
			switch call {
			case 'b':
				w.Begin()
			case 'e':
				w.End()
			case 'g':
				i := len(now)
				now = append(now, w.Go(func() { ran <- i }))
			}
		}
		w.Wait()
		close(ran)
		var got []int
		for i := range ran {
			got = append(got, i)
		}
		slices.Sort(got)
		if !slices.Equal(got, c.ran) || !slices.Equal(now, c.now) {
			t.Errorf("%s: ran %v, told %v, want %v, %v", c.name, got, now, c.ran, c.now)
		}
	}
}
