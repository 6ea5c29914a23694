package kernel

import "sync"

// Work is what a node does in goroutines of its own because it must not be done within a step of a machine. It begins
// when all services are open, since it may end any of them. Its zero value has not begun.
type Work struct {
	mu           sync.Mutex
	began, ended bool
	early        []func()
	running      sync.WaitGroup
}

// Go calls a function in a goroutine: now, or when Begin is called. After End it does nothing. It tells whether the
// work has begun and not ended.
func (w *Work) Go(f func()) (now bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ended:
		return false
	case !w.began:
		w.early = append(w.early, f)
		return false
	}
	w.running.Go(f)
	return true
}

// Begin begins what came too early.
func (w *Work) Begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began = true
	if !w.ended {
		for _, f := range w.early {
			w.running.Go(f)
		}
	}
	w.early = nil
}

// End begins nothing more.
func (w *Work) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

// Wait returns when all that was begun has ended.
func (w *Work) Wait() { w.running.Wait() }
