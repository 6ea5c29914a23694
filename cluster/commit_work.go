package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"parley"
	"parley/commit/service"
)

// works are the calls of the participant: one after the other for each transaction, and at
// most so many at a time. Those that end a transaction do not wait for those that prepare,
// which may be waiting for them.
type works struct {
	participant Participant
	most        int
	votes       time.Duration
	// voted and applied take what came of a call.
	voted   func(path parley.Path, yes bool, why string)
	applied func(path parley.Path)
	failed  func(tx string, err error) // a participant that does not do what it had said

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	jobs     map[parley.Path]*job
	prepares pool
	ends     pool
	again    int    // calls under way of what was prepared before a crash
	waiting  []*job // for them to be over
}

// pool is what may be called next.
type pool struct {
	queue []*job
	busy  int
}

// job is a transaction that the participant has a part in.
type job struct {
	path    parley.Path
	tx      string
	body    []byte
	again   bool
	begun   bool // Prepare has been called
	running bool // and has not returned
	ended   bool // the outcome is known
	commit  bool
	cancel  context.CancelFunc // of Prepare
}

func newWorks(p Participant, most int, votes time.Duration) *works {
	w := &works{participant: p, most: most, votes: votes, jobs: make(map[parley.Path]*job)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// prepare has a part prepared.
func (w *works) prepare(path parley.Path, tx string, body []byte, again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.jobs[path] != nil {
		return
	}
	j := &job{path: path, tx: tx, body: body, again: again}
	w.jobs[path] = j
	switch {
	case again:
		w.again++
	case w.again > 0:
		w.waiting = append(w.waiting, j)
		return
	}
	w.push(&w.prepares, j, w.doPrepare)
}

// end has a part carried out or taken back.
func (w *works) end(path parley.Path, tx string, commit bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	j := w.jobs[path]
	if j == nil { // it was never prepared, or not in this life
		j = &job{path: path, tx: tx, begun: true}
		w.jobs[path] = j
	}
	j.ended, j.commit = true, commit
	switch {
	case j.running:
		j.cancel()
	case j.again && !j.begun: // its turn comes
	default:
		w.push(&w.ends, j, w.doEnd)
	}
}

// push puts a job into a pool, and begins another goroutine if there may be one more. The
// lock is held.
func (w *works) push(p *pool, j *job, do func(*job)) {
	p.queue = append(p.queue, j)
	if p.busy == w.most {
		return
	}
	p.busy++
	w.wg.Go(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for len(p.queue) > 0 && !w.closed {
			j := p.queue[0]
			p.queue[0] = nil
			p.queue = p.queue[1:]
			do(j)
		}
		p.busy--
	})
}

// doPrepare calls Prepare. The lock is held, and let go meanwhile.
func (w *works) doPrepare(j *job) {
	if j.ended && !j.again {
		return // it was aborted before its turn: see end
	}
	ctx, cancel := context.WithTimeout(w.ctx, w.votes)
	j.begun, j.running, j.cancel = true, true, cancel
	w.mu.Unlock()
	yes, why := w.call(ctx, j)
	cancel()
	if !j.again {
		w.voted(j.path, yes, why)
	} else if !yes {
		w.failed(j.tx, fmt.Errorf("it had said yes, and can not prepare it again: %s", why))
	}
	w.mu.Lock()
	j.running = false
	if j.again {
		if w.again--; w.again == 0 {
			for _, next := range w.waiting {
				w.push(&w.prepares, next, w.doPrepare)
			}
			w.waiting = nil
		}
	}
	if j.ended {
		w.push(&w.ends, j, w.doEnd)
	}
}

// call calls Prepare.
func (w *works) call(ctx context.Context, j *job) (yes bool, why string) {
	if w.participant == nil {
		return false, "has no participant"
	}
	var err error
	if r, remote := w.participant.(RemoteParticipant); remote && j.again {
		err = r.Again(j.tx, j.body)
		yes = err == nil
	} else {
		yes, err = w.participant.Prepare(ctx, j.tx, j.body)
	}
	switch {
	case err != nil:
		why = err.Error()
	case !yes:
		why = "said no"
	case ctx.Err() != nil && !j.again:
		yes, why = false, "was not ready in time"
	}
	return yes && err == nil, why[:min(len(why), service.MaxReason)]
}

// doEnd tells the participant the outcome. The lock is held, and let go meanwhile.
func (w *works) doEnd(j *job) {
	w.mu.Unlock()
	switch {
	case w.participant == nil || !j.begun:
	case j.commit:
		w.participant.Commit(j.tx)
	default:
		w.participant.Abort(j.tx)
	}
	w.mu.Lock()
	delete(w.jobs, j.path)
	w.mu.Unlock()
	w.applied(j.path)
	w.mu.Lock()
}

// preparing is how many calls of Prepare are under way or wait.
func (w *works) preparing() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.prepares.busy + len(w.prepares.queue) + len(w.waiting)
}

// close calls nothing more, and waits for the calls that are under way.
func (w *works) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.cancel()
	if r, remote := w.participant.(RemoteParticipant); remote {
		r.End()
	}
	w.wg.Wait()
}
