package kernel

import "sync"

// Work runs functions in goroutines because they must not run within a step of a machine. It begins when all
// services are open, since the functions may end any of them. The zero value has not begun.
type Work struct {
	mu           sync.Mutex
	began, ended bool
	early        []func()
	running      sync.WaitGroup
}

// Go calls f in a goroutine: at once, or when Begin is called. After End it does nothing. It reports whether the
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

// Begin starts the functions that came before it.
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

// End makes Go do nothing.
func (w *Work) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

// Wait returns when all started functions have returned.
func (w *Work) Wait() { w.running.Wait() }
