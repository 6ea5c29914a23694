package commits

import (
	"context"
	"fmt"
	"sync"
	"time"

	"parley"
	"parley/commit/service"
)

// participantCalls are the calls of the participant: one after the other for each transaction, and at
// most so many at a time. Those that end a transaction do not wait for those that prepare,
// which may be waiting for them.
type participantCalls struct {
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
	jobs     map[parley.Path]*participantCall
	prepares pool
	ends     pool
	again    int                // calls under way of what was prepared before a crash
	waiting  []*participantCall // for them to be over
}

// pool is what may be called next.
type pool struct {
	queue []*participantCall
	busy  int
}

// participantCall is a transaction that the participant has a part in.
type participantCall struct {
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

func newParticipantCalls(p Participant, most int, votes time.Duration) *participantCalls {
	c := &participantCalls{participant: p, most: most, votes: votes, jobs: make(map[parley.Path]*participantCall)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// prepare has a part prepared.
func (c *participantCalls) prepare(path parley.Path, tx string, body []byte, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.jobs[path] != nil {
		return
	}
	j := &participantCall{path: path, tx: tx, body: body, again: again}
	c.jobs[path] = j
	switch {
	case again:
		c.again++
	case c.again > 0:
		c.waiting = append(c.waiting, j)
		return
	}
	c.push(&c.prepares, j, c.doPrepare)
}

// end has a part carried out or taken back.
func (c *participantCalls) end(path parley.Path, tx string, commit bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	j := c.jobs[path]
	if j == nil { // it was never prepared, or not in this life
		j = &participantCall{path: path, tx: tx, begun: true}
		c.jobs[path] = j
	}
	j.ended, j.commit = true, commit
	switch {
	case j.running:
		j.cancel()
	case j.again && !j.begun: // its turn comes
	default:
		c.push(&c.ends, j, c.doEnd)
	}
}

// push puts a job into a pool, and begins another goroutine if there may be one more. The
// lock is held.
func (c *participantCalls) push(p *pool, j *participantCall, do func(*participantCall)) {
	p.queue = append(p.queue, j)
	if p.busy == c.most {
		return
	}
	p.busy++
	c.wg.Go(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for len(p.queue) > 0 && !c.closed {
			j := p.queue[0]
			p.queue[0] = nil
			p.queue = p.queue[1:]
			do(j)
		}
		p.busy--
	})
}

// doPrepare calls Prepare. The lock is held, and let go meanwhile.
func (c *participantCalls) doPrepare(j *participantCall) {
	if j.ended && !j.again {
		return // it was aborted before its turn: see end
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.votes)
	j.begun, j.running, j.cancel = true, true, cancel
	c.mu.Unlock()
	yes, why := c.call(ctx, j)
	cancel()
	if !j.again {
		c.voted(j.path, yes, why)
	} else if !yes {
		c.failed(j.tx, fmt.Errorf("it had said yes, and can not prepare it again: %s", why))
	}
	c.mu.Lock()
	j.running = false
	if j.again {
		if c.again--; c.again == 0 {
			for _, next := range c.waiting {
				c.push(&c.prepares, next, c.doPrepare)
			}
			c.waiting = nil
		}
	}
	if j.ended {
		c.push(&c.ends, j, c.doEnd)
	}
}

// call calls Prepare.
func (c *participantCalls) call(ctx context.Context, j *participantCall) (yes bool, why string) {
	if c.participant == nil {
		return false, "has no participant"
	}
	var err error
	if r, remote := c.participant.(RemoteParticipant); remote && j.again {
		err = r.Again(j.tx, j.body)
		yes = err == nil
	} else {
		yes, err = c.participant.Prepare(ctx, j.tx, j.body)
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
func (c *participantCalls) doEnd(j *participantCall) {
	c.mu.Unlock()
	switch {
	case c.participant == nil || !j.begun:
	case j.commit:
		c.participant.Commit(j.tx)
	default:
		c.participant.Abort(j.tx)
	}
	c.mu.Lock()
	delete(c.jobs, j.path)
	c.mu.Unlock()
	c.applied(j.path)
	c.mu.Lock()
}

// preparing is how many calls of Prepare are under way or wait.
func (c *participantCalls) preparing() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.prepares.busy + len(c.prepares.queue) + len(c.waiting)
}

// close calls nothing more, and waits for the calls that are under way.
func (c *participantCalls) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	if r, remote := c.participant.(RemoteParticipant); remote {
		r.End()
	}
	c.wg.Wait()
}
