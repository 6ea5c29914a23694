package host

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// timerfdAlarm has alarms go off in time. A program that waits for the network does so in whole
// milliseconds, and its timers are late by as much as one; but a descriptor that becomes
// readable at a time wakes it right then, and it sees to its timers.
type timerfdAlarm struct {
	h     *Host
	born  time.Time
	timer *os.File
	fd    int

	mu     sync.Mutex
	next   time.Duration // since it was born: when it becomes readable; 0: never
	closed bool          // the number fd may be another's
}

// newTimerfdAlarm returns nil if the system gives no such descriptor: alarms are late then.
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

// run is for the next alarm whenever the descriptor has been readable, until it is closed.
func (w *timerfdAlarm) run() {
	var times [8]byte
	for {
		if _, err := w.timer.Read(times[:]); err != nil {
			return
		}
		w.again()
	}
}

// again sets the descriptor to the next alarm of all that there are.
func (w *timerfdAlarm) again() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, next := time.Since(w.born), time.Duration(0)
	for _, p := range *w.h.table.Load() {
		if at := time.Duration(p.rings.Load()); at > now && (next == 0 || at < next) {
			next = at
		}
	}
	w.set(next)
}

// after is for an alarm that was set to go off so much later, just now: not before it is due.
// When the descriptor is, or is about to be, readable already, that is left so, for setting it
// would take it back, and with it the other alarms: they are seen to by again.
func (w *timerfdAlarm) after(p *Process, wait time.Duration) {
	if w == nil {
		return
	}
	at := time.Since(w.born) + wait
	p.rings.Store(int64(at))
	w.mu.Lock()
	if w.next == 0 || at < w.next {
		w.set(at)
	}
	w.mu.Unlock()
}

// set sets the descriptor. The lock is held.
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
