package host

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// punctual has alarms go off in time. A program that waits for the network does so in whole
// milliseconds, and its timers are late by as much as one; but a descriptor that becomes
// readable at a time wakes it right then, and it sees to its timers.
type punctual struct {
	h     *Host
	born  time.Time
	timer *os.File
	fd    int

	mu     sync.Mutex
	next   time.Duration // since it was born: when it becomes readable; 0: never
	closed bool          // the number fd may be another's
}

// newPunctual returns nil if the system gives no such descriptor: alarms are late then.
func newPunctual(h *Host) *punctual {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil
	}
	w := &punctual{h: h, born: time.Now(), timer: os.NewFile(uintptr(fd), "timer"), fd: fd}
	go w.run()
	return w
}

// run is for the next alarm whenever one has gone off, until it is closed.
func (w *punctual) run() {
	var times [8]byte
	for {
		if _, err := w.timer.Read(times[:]); err != nil {
			return
		}
		now := time.Since(w.born)
		next := time.Duration(0)
		w.mu.Lock()
		for _, p := range *w.h.table.Load() {
			if at := time.Duration(p.rings.Load()); at > now && (next == 0 || at < next) {
				next = at
			}
		}
		w.set(next, now)
		w.mu.Unlock()
	}
}

// after is for an alarm that was set to go off so much later, just now: not before it is due.
func (w *punctual) after(p *Process, wait time.Duration) {
	if w == nil {
		return
	}
	now := time.Since(w.born)
	at := now + wait
	p.rings.Store(int64(at))
	w.mu.Lock()
	if w.next <= now || at < w.next {
		w.set(at, now)
	}
	w.mu.Unlock()
}

// set sets the descriptor. The lock is held.
func (w *punctual) set(at, now time.Duration) {
	if w.next = at; at == 0 || w.closed {
		return
	}
	wait := unix.NsecToTimespec(int64(max(1, at-now)))
	_ = unix.TimerfdSettime(w.fd, 0, &unix.ItimerSpec{Value: wait}, nil) // at worst the alarm is late
}

func (w *punctual) close() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	_ = w.timer.Close() // nothing is written to it
}
