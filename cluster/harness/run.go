package harness

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"parley"
	"parley/cluster/cert"
	"parley/internal/lists"
	"parley/sim"
	"parley/trace"
)

// Run is a run between real processes.
type Run struct {
	// Options has the options of a simulation. More, and options that count the steps of a whole run, have no effect
	// here. Crashes determines when a liar crashes. Everything else that a liar does is determined by its machine.
	// Promised has no default.
	sim.Options
	Header trace.Header // of the trace to be made, without facts
	Dir    string       // an empty folder for certificates and traces
	Tick   time.Duration
	Early  bool          // see [Spec]
	Liars  parley.Set    // processes that may violate the protocol
	Limit  time.Duration // the run is given up after this time
	Start  func(context.Context, parley.ID) (*Child, error)
}

// Child is a started process that runs [Serve].
type Child struct {
	In                   io.WriteCloser
	Out                  io.Reader
	Kill, Stop, Continue func() error
	Wait                 func() error // called after the end of Out
}

// running is the state of a run in progress.
type running struct {
	runRecord
	members []*child
	signers []ed25519.PublicKey
	came    chan said
	due     []action // sorted by time
	more    bool     // there are new ones
	peers   []string // addresses, by process
	round   uint64   // how often all have been asked for their status
	asking  bool     // and not all have answered
	before  []uint64 // events, by process, when the run was last quiescent; nil: it was not
}

// child is a process, seen from the run.
type child struct {
	*Child
	id        parley.ID
	life      uint64
	lines     *json.Encoder
	address   string
	connected bool
	killed    bool
	dead      bool // and has ended
	ended     chan struct{}
	status    *status
}

// said is an answer of a process, or its end.
type said struct {
	by *child
	answer
	gone bool
}

// action is an action on a process at a given time.
type action struct {
	when parley.Tick
	do   func(context.Context) error
}

// Do makes the run. The returned trace is in causal order, with the facts in its header.
func (r *Run) Do(ctx context.Context) (trace.Header, *trace.Log, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	run := &running{runRecord: newRunRecord(r), came: make(chan said, 64)}
	over, err := run.run(ctx)
	for _, c := range run.members {
		if c != nil {
			_ = c.In.Close()
			_ = c.Kill()
		}
	}
	run.drain()
	if err != nil {
		return trace.Header{}, nil, err
	}
	return run.merge(run.members, over)
}

// drain waits until all processes have ended.
func (r *running) drain() {
	for _, c := range r.members {
		for c != nil {
			select {
			case <-r.came:
				continue
			case <-c.ended:
			}
			break
		}
	}
}

func (r *running) run(ctx context.Context) (over bool, err error) {
	if err := r.prepare(); err != nil {
		return false, err
	}
	r.members = make([]*child, r.Header.N)
	for id := range r.members {
		if err := r.start(ctx, parley.ID(id), 1, ""); err != nil {
			return false, err
		}
	}
	if err := r.waitFor(ctx, func(c *child) bool { return c.address != "" }); err != nil {
		return false, err
	}
	peers := lists.Of(r.members, func(c *child) string { return c.address })
	r.sendAll(order{Peers: peers})
	if err := r.waitFor(ctx, func(c *child) bool { return c.connected }); err != nil {
		return false, err
	}
	ahead := 50 * time.Millisecond
	if r.Early { // a process that starts late takes no part
		ahead = 200 * time.Millisecond
	}
	r.began = clock{time.Now().Add(ahead).Round(0), r.Tick}
	r.plan(peers)
	r.sendAll(order{Begin: r.began.began})
	return r.runActions(ctx)
}

// prepare makes the certificates.
func (r *running) prepare() (err error) {
	whole := cert.Whole{Cluster: "run", Nodes: names(r.Header.N), Valid: 24 * time.Hour}
	r.signers, err = whole.Create(filepath.Join(r.Dir, "certs"))
	return err
}

// start starts a process, and sends it its Spec.
func (r *running) start(ctx context.Context, id parley.ID, life uint64, listen string) error {
	made, err := r.Start(ctx, id)
	if err != nil {
		return err
	}
	c := &child{Child: made, id: id, life: life, lines: json.NewEncoder(made.In), ended: make(chan struct{})}
	r.members[id] = c
	go r.read(ctx, c)
	s := Spec{
		Self: id, Header: r.headerOf(id, life), Certs: filepath.Join(r.Dir, "certs"), Listen: listen,
		Trace: r.traceOf(id, life), Life: life, Signers: r.signers, Tick: r.Tick, Early: r.Early, Until: r.Until,
		Requests: r.asked(id), Weather: r.Weather(),
	}
	for _, c := range r.Clocks {
		if c.At == id {
			s.Wrong = c
		}
	}
	for _, c := range r.Crashes {
		if c.At == id && (life == 1 || c.Step > 0 || c.When > r.began.Now()) {
			s.Crashes = append(s.Crashes, c)
		}
	}
	if slices.ContainsFunc(r.Crashes, func(c sim.Crash) bool { return c.At == id && c.Back > 0 }) {
		s.Store = filepath.Join(r.Dir, name(id))
	}
	if life > 1 {
		var err error
		if s.Steps, err = r.stepsBefore(id, life); err != nil {
			return err
		}
		s.Requests = slices.DeleteFunc(s.Requests, func(q sim.Request) bool { return q.When <= r.began.Now() })
	}
	return c.tell(s)
}

// asked returns the requests to a process and its false suspicions, sorted by time.
func (r *Run) asked(id parley.ID) (all []sim.Request) {
	for _, v := range r.Suspicions {
		if v.At == id {
			all = append(all, sim.Request{At: id, When: v.When, Msg: parley.Msg{Kind: parley.Suspect, Origin: v.Of}})
		}
	}
	for _, q := range r.Requests {
		if q.At == id {
			all = append(all, q)
		}
	}
	slices.SortStableFunc(all, func(a, b sim.Request) int { return cmp.Compare(a.When, b.When) })
	return all
}

func (c *child) tell(what any) error {
	if err := c.lines.Encode(what); err != nil && !c.killed {
		return fmt.Errorf("process %s accepts no messages: %w", name(c.id), err)
	}
	return nil
}

// sendAll sends an order to all processes that are up. A failed send shows when the process has ended.
func (r *running) sendAll(o order) {
	for _, c := range r.members {
		if !c.killed {
			_ = c.tell(o)
		}
	}
}

// read forwards the answers of a process.
func (r *running) read(ctx context.Context, c *child) {
	defer close(c.ended)
	lines := json.NewDecoder(c.Out)
	for {
		s := said{by: c}
		if err := lines.Decode(&s.answer); err != nil {
			break
		}
		r.pass(ctx, s)
	}
	_, _ = io.Copy(io.Discard, c.Out)
	if err := c.Wait(); err != nil {
		r.pass(ctx, said{by: c, gone: true, answer: answer{Failed: err.Error()}})
		return
	}
	r.pass(ctx, said{by: c, gone: true, answer: answer{Failed: "its output ended"}})
}

func (r *running) pass(ctx context.Context, s said) {
	select {
	case r.came <- s:
	case <-ctx.Done():
	}
}

// handle handles an answer of a process.
func (r *running) handle(s said) error {
	c := s.by
	switch {
	case s.gone && c.killed:
		c.dead = true
	case s.Crashed != nil && !c.killed:
		r.noteCrash(c, s.Crashed)
	case s.Crashed != nil: // it was killed after it had crashed
	case s.gone, s.Failed != "":
		return fmt.Errorf("process %s has ended: %s", name(c.id), s.Failed)
	case s.Listens != "":
		c.address = s.Listens
	case s.Connected:
		c.connected = true
	case s.Status != nil && (s.Status.Asked == r.round || s.Status.Over):
		c.status = s.Status
		r.late = max(r.late, s.Status.Late)
	}
	return nil
}

// waitFor waits until so holds for all processes that are up.
func (r *running) waitFor(ctx context.Context, so func(*child) bool) error {
	late := time.After(20 * time.Second)
	for slices.ContainsFunc(r.members, func(c *child) bool { return !c.killed && !so(c) }) {
		select {
		case s := <-r.came:
			if err := r.handle(s); err != nil {
				return err
			}
		case <-late:
			return errors.New("the processes are not connected to each other after 20 s")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// plan schedules the actions of the run.
func (r *running) plan(peers []string) {
	add := r.add
	r.peers = peers
	for _, c := range r.Crashes {
		switch {
		case c.Step > 0 || c.When == 0 && c.Effects == 0: // the process does that itself
		case c.Effects > 0:
			add(c.When+sim.Patience, func(context.Context) error { return r.kill(c) })
		default:
			add(c.When, func(context.Context) error { return r.kill(c) })
		}
	}
	for _, p := range r.Pauses {
		add(p.From, func(context.Context) error { return r.hold(p.At, trace.Pause, r.members[p.At].Stop) })
		add(p.From+p.For, func(context.Context) error { return r.hold(p.At, trace.Resume, r.members[p.At].Continue) })
	}
}

// restart restarts a process that was killed, or crashed by itself.
func (r *running) restart(ctx context.Context, id parley.ID, lost bool) error {
	c := r.members[id]
	if err := r.waitGone(c); err != nil {
		return err
	}
	if lost {
		r.lost[id] = c.life + 1
		if err := os.RemoveAll(filepath.Join(r.Dir, name(id))); err != nil {
			return err
		}
	}
	r.restarted[id] = append(r.restarted[id], r.began.Now())
	if err := r.start(ctx, id, c.life+1, r.peers[id]); err != nil {
		return err
	}
	c, r.asking = r.members[id], false // the new one has not been asked
	if err := c.tell(order{Peers: r.peers}); err != nil {
		return err
	}
	r.detect(r.began.Now(), func() (who, of []*child) {
		for _, other := range r.members {
			if other.killed {
				of = append(of, other)
			}
		}
		return []*child{c}, of
	})
	return c.tell(order{Begin: r.began.began})
}

func (r *running) hold(id parley.ID, op trace.Op, do func() error) error {
	if r.members[id].killed {
		return nil
	}
	r.stopped[id] = append(r.stopped[id], trace.Event{Op: op, At: id, Time: r.began.Now()})
	return do()
}

// runActions executes the actions and waits for the end. It returns false if the run was given up.
func (r *running) runActions(ctx context.Context) (over bool, err error) {
	limit := time.NewTimer(time.Until(r.began.began) + r.Limit)
	defer limit.Stop()
	ask := time.NewTicker(10 * time.Millisecond)
	defer ask.Stop()
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case s := <-r.came:
			if err := r.handle(s); err != nil {
				return false, err
			}
			if r.more {
				r.more = false
				next.Reset(0)
			}
			if r.asking && r.answered() {
				r.asking = false
				if r.ended() {
					return true, nil
				}
				if r.quiescent() {
					return true, r.end(ctx)
				}
			}
		case <-next.C:
			for len(r.due) > 0 && r.due[0].when <= r.began.Now() {
				do := r.due[0].do
				r.due = r.due[1:]
				if err := do(ctx); err != nil {
					return false, err
				}
			}
			if len(r.due) > 0 {
				next.Reset(r.began.Until(r.due[0].when))
			}
		case <-ask.C:
			if !r.asking || r.answered() {
				r.asking = true
				r.round++
				for _, c := range r.members {
					c.status = nil
				}
				r.sendAll(order{Ask: r.round})
			}
		case <-limit.C:
			return false, r.end(ctx)
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// answered returns whether all processes that are up have sent their status.
func (r *running) answered() bool {
	return !slices.ContainsFunc(r.members, func(c *child) bool { return !c.killed && c.status == nil })
}

// ended returns whether all processes that are up have ended by themselves.
func (r *running) ended() bool {
	return r.Until > 0 && !slices.ContainsFunc(r.members, func(c *child) bool {
		return !c.killed && (c.status == nil || !c.status.Over)
	})
}

// quiescent returns whether nothing is due any more: every process is idle, everything sent has arrived,
// and the same was true of the previous statuses.
func (r *running) quiescent() bool {
	var events []uint64
	rest := len(r.due) == 0
	for _, c := range r.members {
		switch {
		case c.killed:
			rest = rest && c.dead
			events = append(events, 0)
			continue
		case !c.status.Rests:
			rest = false
		}
		events = append(events, c.status.Events)
		for _, other := range r.members {
			if other.killed {
				rest = rest && slices.Contains(c.status.Down, other.id)
			} else if other.id != c.id {
				rest = rest && c.status.Sent[other.id] == other.status.Received[c.id]
			}
		}
	}
	same := rest && slices.Equal(events, r.before)
	if r.before = nil; rest {
		r.before = events
	}
	return same
}

// end stops all processes.
func (r *running) end(ctx context.Context) error {
	for _, c := range r.members {
		if !c.killed {
			_ = c.Continue()
		}
	}
	r.sendAll(order{End: true})
	return r.waitFor(ctx, func(c *child) bool { return c.status != nil && c.status.Over })
}
