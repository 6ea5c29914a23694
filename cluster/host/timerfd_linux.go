package host

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// timerfdAlarm makes alarms fire on time. A program that waits for the network does so in whole
// milliseconds, so its timers are up to 1 ms late; but a descriptor that becomes readable at a time wakes
// it at that time, and then it runs its timers.
type timerfdAlarm struct {
	h     *Host
	born  time.Time
	timer *os.File
	fd    int

	mu     sync.Mutex
	next   time.Duration // since born: when it becomes readable; 0: never
	closed bool          // the number fd may belong to another file
}

// newTimerfdAlarm returns nil if the system provides no such descriptor: alarms are late then.
func newTimerfdAlarm(h *Host) *timerfdAlarm {
	w := openTimerfdAlarm(h)
	if w != nil {
		go w.run()
	}
	return w
}

func openTimerfdAlarm(h *Host) *timerfdAlarm {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil
	}
	return &timerfdAlarm{h: h, born: time.Now(), timer: os.NewFile(uintptr(fd), "timer"), fd: fd}
}

// run runs due alarms whenever the descriptor becomes readable, until it is closed.
func (w *timerfdAlarm) run() {
	var times [8]byte
	for {
		if _, err := w.timer.Read(times[:]); err != nil {
			return
		}
		w.rearm()
	}
}

// rearm sets the descriptor to the next of all alarms.
func (w *timerfdAlarm) rearm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, next := time.Since(w.born), time.Duration(0)
	for _, p := range *w.h.table.Load() {
		if at := time.Duration(p.alarmDue.Load()); at > now && (next == 0 || at < next) {
			next = at
		}
	}
	w.set(next)
}

// schedule handles an alarm that was just set to fire after wait, and must not fire before. If the
// descriptor is already readable, or about to be, it stays unchanged: setting it would cancel that, and
// with it the other alarms; rearm handles the new one.
func (w *timerfdAlarm) schedule(p *Process, wait time.Duration) {
	if w == nil {
		return
	}
	at := time.Since(w.born) + wait
	p.alarmDue.Store(int64(at))
	w.mu.Lock()
	if w.next == 0 || at < w.next {
		w.set(at)
	}
	w.mu.Unlock()
}

// set sets the descriptor. The caller holds the lock.
func (w *timerfdAlarm) set(at time.Duration) {
	if w.next = at; at == 0 || w.closed {
		return
	}
	wait := unix.NsecToTimespec(int64(max(1, at-time.Since(w.born))))
	if unix.TimerfdSettime(w.fd, 0, &unix.ItimerSpec{Value: wait}, nil) != nil {
		w.next = 0 // alarms are late
	}
}

func (w *timerfdAlarm) close() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	_ = w.timer.Close() // nothing is written to it
}
