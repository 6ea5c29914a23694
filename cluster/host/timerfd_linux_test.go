package host

import (
	"testing"
	"time"
)

// An alarm that is set when the descriptor is readable, which nobody has seen to yet, does not
// take that back: others that come before it would be forgotten.
func TestAlarmsAreNotForgotten(t *testing.T) {
	h := New(Config{N: 1})
	first, second, third := &Process{h: h}, &Process{h: h}, &Process{h: h}
	h.table.Store(&map[uint32]*Process{0: first, 1: second, 2: third})
	w := openTimerfdAlarm(h)
	if w == nil {
		t.Fatal("no descriptor")
	}
	defer w.close()
	w.after(first, time.Nanosecond)
	w.after(second, time.Hour)
	readable := w.next
	if readable != time.Duration(first.rings.Load()) {
		t.Fatalf("set to %v, and the first alarm is at %v", readable, time.Duration(first.rings.Load()))
	}
	for time.Since(w.born) < readable+time.Millisecond {
		time.Sleep(time.Millisecond)
	}
	w.after(third, 2*time.Hour)
	if w.next != readable {
		t.Fatalf("set to %v though it is readable since %v", w.next, readable)
	}
	var times [8]byte
	if _, err := w.timer.Read(times[:]); err != nil || times == [8]byte{} {
		t.Fatal("not readable", err)
	}
	w.again()
	if w.next != time.Duration(second.rings.Load()) {
		t.Errorf("set to %v, and the next alarm is at %v", w.next, time.Duration(second.rings.Load()))
	}
	first.rings.Store(int64(w.next - time.Minute))
	w.after(first, 30*time.Minute)
	if w.next != time.Duration(first.rings.Load()) {
		t.Errorf("set to %v, and there is an earlier alarm at %v", w.next, time.Duration(first.rings.Load()))
	}
}
