package host

import (
	"testing"
	"time"
)

// Setting an alarm while the descriptor is readable but not yet read does not cancel that: earlier alarms
// would be lost.
func TestAlarmsAreNotForgotten(t *testing.T) {
	h := New(Config{N: 1})
	first, second, third := &Process{h: h}, &Process{h: h}, &Process{h: h}
	h.table.Store(&map[uint32]*Process{0: first, 1: second, 2: third})
	w := openTimerfdAlarm(h)
	if w == nil {
		t.Fatal("no descriptor")
	}
	defer w.close()
	w.schedule(first, time.Nanosecond)
	w.schedule(second, time.Hour)
	readable := w.next
	if readable != time.Duration(first.alarmDue.Load()) {
		t.Fatalf("set to %v, and the first alarm is at %v", readable, time.Duration(first.alarmDue.Load()))
	}
	for time.Since(w.born) < readable+time.Millisecond {
		time.Sleep(time.Millisecond)
	}
	w.schedule(third, 2*time.Hour)
	if w.next != readable {
		t.Fatalf("set to %v though it is readable since %v", w.next, readable)
	}
	var times [8]byte
	if _, err := w.timer.Read(times[:]); err != nil || times == [8]byte{} {
		t.Fatal("not readable", err)
	}
	w.rearm()
	if w.next != time.Duration(second.alarmDue.Load()) {
		t.Errorf("set to %v, and the next alarm is at %v", w.next, time.Duration(second.alarmDue.Load()))
	}
	first.alarmDue.Store(int64(w.next - time.Minute))
	w.schedule(first, 30*time.Minute)
	if w.next != time.Duration(first.alarmDue.Load()) {
		t.Errorf("set to %v, and there is an earlier alarm at %v", w.next, time.Duration(first.alarmDue.Load()))
	}
}
