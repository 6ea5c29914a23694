package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/cli/client"
	"parley/cluster/api/parleyv1"
	"parley/trace"
)

// system is a cluster with what the lab knows of its processes. A cluster that was started elsewhere has none.
type system struct {
	made  *Made // nil: started elsewhere
	level string
	nodes []*node
	began time.Time
	tell  func() // that the state has changed
	work  sync.WaitGroup
	ended chan struct{} // closed at the end of the cluster

	reader *reader

	mu      sync.Mutex
	cuts    []cut
	lines   []Line
	traffic bool
	sent    int // texts of the automatic traffic
	stopped chan struct{}
}

// Line is an event in the life of the cluster, in words.
type Line struct {
	Number int    `json:"number"`
	At     string `json:"at"`
	Text   string `json:"text"`
}

// mostLines is how many lines are kept.
const mostLines = 12

// cut is a time during which the link between two nodes is cut. until is zero if it is cut now.
type cut struct {
	a, b        int
	from, until time.Time
}

// mostMarks is how many marks of a node, and how many cuts, are kept.
const mostMarks = 64

// mark is what the lab did to a node, or what happened to its process.
type mark struct {
	at time.Time
	op trace.Op // Crash, Restart, Pause or Resume
}

// node is a node with its process.
type node struct {
	client.Node
	at int
	c  *system

	mu      sync.Mutex
	process Process // the last one; nil: none yet, or started elsewhere
	starts  int
	paused  bool
	killed  bool   // by the lab
	ending  string // how its process ended by itself
	marks   []mark
}

func newSystem(nodes []client.Node, level string, tell func()) *system {
	c := &system{level: level, began: time.Now(), tell: tell, ended: make(chan struct{})}
	for i, n := range nodes {
		c.nodes = append(c.nodes, &node{Node: n, at: i, c: c})
	}
	c.reader = newReader(c)
	return c
}

// close ends all processes and removes the cluster.
func (c *system) close() error {
	c.setTraffic(false)
	close(c.ended)
	var errs []error
	if c.made != nil {
		for _, n := range c.nodes {
			if n.runs() {
				errs = append(errs, n.process.Kill())
			}
		}
		for _, n := range c.nodes {
			if n.process != nil {
				<-n.process.Ended()
			}
		}
	}
	c.work.Wait()
	c.reader.work.Wait()
	if c.made != nil {
		errs = append(errs, c.made.Remove())
	}
	return errors.Join(errs...)
}

// find returns the node with a name, or nil.
func (c *system) find(name string) *node {
	for _, n := range c.nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

func (c *system) onNode(name string, do func(*node) error) error {
	n := c.find(name)
	if n == nil {
		return unknown(name)
	}
	return do(n)
}

// note adds a line.
func (c *system) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := 1
	if len(c.lines) > 0 {
		next = c.lines[len(c.lines)-1].Number + 1
	}
	at := time.Since(c.began).Round(time.Second)
	c.lines = append(c.lines, Line{next, duration(at), fmt.Sprintf(format, args...)})
	c.lines = c.lines[max(len(c.lines)-mostLines, 0):]
}

// runs reports whether the node has a process, paused or not.
func (n *node) runs() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.alive()
}

// alive is runs for callers that hold the lock.
func (n *node) alive() bool {
	if n.process == nil {
		return false
	}
	select {
	case <-n.process.Ended():
		return false
	default:
		return true
	}
}

// mark remembers what happens to the node now. The caller holds the lock.
func (n *node) mark(op trace.Op) {
	n.marks = append(n.marks, mark{time.Now(), op})
	n.marks = n.marks[max(len(n.marks)-mostMarks, 0):]
}

// begin starts a process of a node that has none.
func (c *system) begin(n *node) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.alive() {
		return fmt.Errorf("%s runs already", n.Name)
	}
	p, err := c.made.Start(n.at)
	if err != nil {
		return err
	}
	n.process, n.paused, n.killed, n.ending = p, false, false, ""
	if n.starts++; n.starts > 1 {
		n.mark(trace.Restart)
		c.note("%s is started again", n.Name)
	}
	c.work.Go(func() { n.follow(p) })
	return nil
}

// follow notices that a process is a member, and that it ends by itself.
func (n *node) follow(p Process) {
	select {
	case <-p.Joined():
		n.c.tell()
	case <-p.Ended():
	}
	<-p.Ended()
	select {
	case <-n.c.ended:
		return
	default:
	}
	if n.endedBy(p) {
		n.c.tell()
	}
}

// endedBy notices that a process has ended, and returns whether it ended by itself.
func (n *node) endedBy(p Process) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process != p || n.killed {
		return false
	}
	n.paused, n.ending = false, p.Ending()
	n.mark(trace.Crash)
	n.c.note("%s has ended by itself: %s", n.Name, n.ending)
	return true
}

// kill ends the process at once, whatever its state.
func (n *node) kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.alive() {
		return fmt.Errorf("%s does not run", n.Name)
	}
	n.killed, n.paused = true, false
	err := n.process.Kill()
	<-n.process.Ended()
	n.mark(trace.Crash)
	n.c.note("%s is killed", n.Name)
	return err
}

// pause stops the process until resume.
func (n *node) pause() error {
	return n.hold("is paused", trace.Pause, true, Process.Pause)
}

// resume continues a paused process.
func (n *node) resume() error {
	return n.hold("is resumed", trace.Resume, false, Process.Resume)
}

func (n *node) hold(done string, op trace.Op, paused bool, do func(Process) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case !n.alive():
		return fmt.Errorf("%s does not run", n.Name)
	case n.paused == paused:
		return nil
	}
	if err := do(n.process); err != nil {
		return err
	}
	n.paused = paused
	n.mark(op)
	n.c.note("%s %s", n.Name, done)
	return nil
}

// cut cuts the link between two nodes, or mends it.
func (c *system) cut(names []string, on bool) error {
	if len(names) != 2 {
		return errors.New("the names of two nodes were expected")
	}
	a, b := c.find(names[0]), c.find(names[1])
	switch {
	case a == nil:
		return unknown(names[0])
	case b == nil:
		return unknown(names[1])
	case a == b:
		return errors.New("a node has no link to itself")
	}
	if a.at > b.at {
		a, b = b, a
	}
	c.mu.Lock()
	open := -1
	for i, one := range c.cuts {
		if one.a == a.at && one.b == b.at && one.until.IsZero() {
			open = i
		}
	}
	if (open >= 0) == on {
		c.mu.Unlock()
		return nil
	}
	c.made.Cut(a.at, b.at, on)
	if on {
		c.cuts = append(c.cuts, cut{a: a.at, b: b.at, from: time.Now()})
		for i := 0; len(c.cuts) > mostMarks && i < len(c.cuts); i++ {
			if !c.cuts[i].until.IsZero() {
				c.cuts = append(c.cuts[:i], c.cuts[i+1:]...)
			}
		}
	} else {
		c.cuts[open].until = time.Now()
	}
	c.mu.Unlock()
	if on {
		c.note("The link between %s and %s is cut", a.Name, b.Name)
	} else {
		c.note("The link between %s and %s is mended", a.Name, b.Name)
	}
	return nil
}

// broadcast broadcasts a text at a node, in the group of the cluster.
func (c *system) broadcast(ctx context.Context, n *node, text string) (said string, err error) {
	r, err := n.Group.Broadcast(ctx, &parleyv1.BroadcastRequest{Group: c.level, Payload: []byte(text)})
	if err != nil {
		return "", fmt.Errorf("%q: %w", text, client.Said(n.Node, err))
	}
	return fmt.Sprintf("%s has delivered %q, at position %d", n.Name, text, r.GetPosition()), nil
}

// agree makes the nodes agree on a text that a node proposes.
func (c *system) agree(ctx context.Context, n *node, text string) (said string, err error) {
	r, err := n.Agree.Agree(ctx, &parleyv1.AgreeRequest{Value: []byte(text)})
	if err != nil {
		return "", fmt.Errorf("%q: %w", text, client.Said(n.Node, err))
	}
	source := fmt.Sprintf("/%d", n.at)
	c.reader.want(func(machine string) bool {
		return strings.HasPrefix(machine, "agree/") && strings.HasSuffix(machine, source)
	})
	d := r.GetDecision()
	if d.Value == nil {
		return fmt.Sprintf("All correct nodes decide that %s sent nothing, in slot %d", n.Name, d.GetSlot()), nil
	}
	return fmt.Sprintf("All correct nodes decide %q, in slot %d of %s", parley.Printable(d.GetValue()), d.GetSlot(),
		n.Name), nil
}

// pace is the time between two texts of the automatic traffic.
const pace = time.Second

// setTraffic begins or ends the automatic traffic.
func (c *system) setTraffic(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.traffic == on {
		return
	}
	c.traffic = on
	if !on {
		close(c.stopped)
		return
	}
	stopped := make(chan struct{})
	c.stopped = stopped
	c.work.Go(func() { c.busy(stopped) })
}

// busy broadcasts a text once a second, at one node after the other, until it is stopped.
func (c *system) busy(stopped <-chan struct{}) {
	ctx, end := context.WithCancel(context.Background())
	var calls sync.WaitGroup
	defer calls.Wait()
	defer end()
	room := make(chan struct{}, mostCalls)
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for next := 0; ; next++ {
		if n := c.running(next); n != nil {
			select {
			case room <- struct{}{}:
				c.mu.Lock()
				c.sent++
				text := fmt.Sprintf("m%d", c.sent)
				c.mu.Unlock()
				calls.Go(func() {
					defer func() { <-room }()
					soon, done := context.WithTimeout(ctx, 5*time.Second)
					defer done()
					_, _ = c.broadcast(soon, n, text) // the picture shows what becomes of it
				})
			default: // the cluster does not keep up
			}
		}
		select {
		case <-stopped:
			return
		case <-tick.C:
		}
	}
}

// running returns a node that runs, beginning with a given one, or nil.
func (c *system) running(first int) *node {
	for i := range c.nodes {
		n := c.nodes[(first+i)%len(c.nodes)]
		n.mu.Lock()
		well := n.alive() && !n.paused
		n.mu.Unlock()
		if well {
			return n
		}
	}
	return nil
}
