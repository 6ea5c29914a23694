package commits

import (
	"context"
	"fmt"
	"sync"
	"time"

	"parley"
	"parley/commit/service"
)

// participantCalls makes the calls of the participant: one after another for each transaction, and at most `most`
// at a time of each kind. Calls that end a transaction do not wait for calls of Prepare, which may be waiting for
// them.
type participantCalls struct {
	participant Participant
	most        int
	votes       time.Duration
	// voted and applied receive the result of a call.
	voted   func(path parley.Path, yes bool, why string)
	applied func(path parley.Path)
	failed  func(tx string, err error) // the participant does not do what it voted for

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	jobs     map[parley.Path]*participantCall
	prepares pool
	ends     pool
	again    int                // calls in flight for transactions prepared before a crash
	waiting  []*participantCall // calls that wait until again is 0
}

// pool is a queue of calls, and the number of goroutines that make them.
type pool struct {
	queue []*participantCall
	busy  int
}

// participantCall is a transaction in which the participant has a part.
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

// prepare schedules a call of Prepare.
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

// end schedules a call of Commit or Abort.
func (c *participantCalls) end(path parley.Path, tx string, commit bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	j := c.jobs[path]
	if j == nil { // never prepared, or by an earlier incarnation
		j = &participantCall{path: path, tx: tx, begun: true}
		c.jobs[path] = j
	}
	j.ended, j.commit = true, commit
	switch {
	case j.running:
		j.cancel()
	case j.again && !j.begun: // doPrepare pushes it to ends
	default:
		c.push(&c.ends, j, c.doEnd)
	}
}

// push adds a job to a pool, and starts another goroutine if one more is allowed. The lock is held.
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

// doPrepare calls Prepare. The lock is held, and released during the call.
func (c *participantCalls) doPrepare(j *participantCall) {
	if j.ended && !j.again {
		return // aborted before its turn: see end
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.votes)
	j.begun, j.running, j.cancel = true, true, cancel
	c.mu.Unlock()
	yes, why := c.call(ctx, j)
	cancel()
	if !j.again {
		c.voted(j.path, yes, why)
	} else if !yes {
		c.failed(j.tx, fmt.Errorf("it voted yes, and cannot prepare the transaction again after a restart: %s", why))
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

// call calls Prepare, or Again, and returns the vote and the reason of a no.
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

// doEnd calls Commit or Abort. The lock is held, and released during the call.
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

// preparing returns how many calls of Prepare are in flight or waiting.
func (c *participantCalls) preparing() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.prepares.busy + len(c.prepares.queue) + len(c.waiting)
}

// close makes no further calls, and waits for those in flight.
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
