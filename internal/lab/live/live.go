// Package live shows a cluster of real nodes while it runs, as the view "Live" of the lab. It starts a small cluster
// on this computer on request: each node is a process of this program. Then it can kill, pause, and restart the nodes,
// and cut the links between them. It can also show a cluster that somebody else started; then it only reads.
//
// The page sends requests (see Do), and receives the state of the cluster once a second (see Watch). The state
// includes a picture of the last seconds. It is made from the flight recorders of all nodes, which their admin API
// serves.
//
// # Decisions
//
// Requests from the page name nodes, never processes of the operating system, and there is at most one cluster.
// Motive: a request can only affect processes that this package started itself. Cost: the lab cannot pause a node of
// another cluster.
//
// The nodes reach each other through relays within this process, one relay for each pair of nodes. A cut relay holds
// all data back and closes no connection. Motive: a cut cable does the same, and relays need no special rights and no
// tools of the operating system. Cost: the connections of the nodes take a detour, and end with this process.
//
// A node that is killed or paused no longer answers, so this package keeps the last events that the node reported.
// Motive: the user wants to see what the node did before. Cost: up to one second of events just before the crash is
// missing.
package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/cli/client"
)

// Limits.
const (
	leastNodes = 3
	mostNodes  = 7
	mostText   = 200 // bytes of a text to broadcast or to agree on
	mostCalls  = 8   // broadcasts and agreements in flight
	// turn is how long a request that acts on processes waits for others.
	turn = 5 * time.Second
	// MostWatching is the maximum number of pages that watch at the same time.
	MostWatching = 8
	// MaxRequest is the size of the largest request, in bytes.
	MaxRequest = 4 << 10
)

// Process is a process of a node.
type Process interface {
	Kill() error
	Pause() error
	Resume() error
	Joined() <-chan struct{} // closed when the node is a member of all its groups and tables
	Ended() <-chan struct{}
	Ending() string // how it ended, and why
}

// Made is a cluster whose nodes are not started yet.
type Made struct {
	Nodes []client.Node
	// Start starts a process of a node, which must have none.
	Start func(node int) (Process, error)
	// Cut cuts the link between two nodes, or mends it.
	Cut func(a, b int, on bool)
	// Remove removes the cluster from this computer, after all its processes have ended.
	Remove func() error
}

// Options configure the view.
type Options struct {
	// Make makes a cluster on this computer.
	Make func(ctx context.Context, n int, level string) (*Made, error)
	// CannotPause is the reason why nodes cannot be paused; empty if they can.
	CannotPause string
	// Other are the nodes of a cluster that was started elsewhere. If there are any, the view only reads.
	Other []client.Node
}

// Lab is the view. It is safe for concurrent use.
type Lab struct {
	o     Options
	acts  chan struct{} // holds an element while a request acts on processes
	calls chan struct{} // holds an element for each call in flight
	watch chan struct{} // holds an element for each page that watches

	mu      sync.Mutex
	closed  bool
	cluster *system       // nil: none
	news    chan struct{} // closed when the state changes, and then replaced
	readers int           // pages that watch
	failure string        // why the last cluster could not be removed
}

// New returns a view without a cluster, or of the other cluster.
func New(o Options) *Lab {
	l := &Lab{
		o: o, acts: make(chan struct{}, 1), calls: make(chan struct{}, mostCalls),
		watch: make(chan struct{}, MostWatching), news: make(chan struct{}),
	}
	if len(o.Other) > 0 {
		l.cluster = newSystem(o.Other, "", l.tell)
	}
	return l
}

// tell wakes all pages that watch.
func (l *Lab) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.news)
	l.news = make(chan struct{})
}

// Close stops the cluster, removes it, and refuses further requests. It returns when no process is left.
func (l *Lab) Close() error {
	l.acts <- struct{}{}
	defer func() { <-l.acts }()
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	return l.stop()
}

// stop stops the cluster, if there is one.
func (l *Lab) stop() error {
	l.mu.Lock()
	c := l.cluster
	l.cluster = nil
	if c != nil {
		c.reader.end()
	}
	l.mu.Unlock()
	if c == nil {
		return nil
	}
	err := c.close()
	l.mu.Lock()
	l.failure = ""
	if err != nil {
		l.failure = err.Error()
	}
	l.mu.Unlock()
	l.tell()
	return err
}

// request is a request of the page.
type request struct {
	Do    string   `json:"do"`
	N     int      `json:"n,omitempty"`
	Level string   `json:"level,omitempty"`
	Node  string   `json:"node,omitempty"`
	Nodes []string `json:"nodes,omitempty"` // the two ends of a link
	Text  string   `json:"text,omitempty"`
	On    bool     `json:"on,omitempty"`
}

// answer is the answer to a request.
type answer struct {
	Said  string `json:"said,omitempty"`  // what happened
	Error string `json:"error,omitempty"` // why nothing happened, or that the outcome is unknown
}

var (
	errOther  = errors.New("this cluster was started elsewhere, so the lab only shows it")
	errNone   = errors.New("no cluster runs: start one")
	errBusy   = errors.New("another request is in progress: try again")
	errClosed = errors.New("the lab is ending")
)

// Do carries out a request of the page. Its answer is a JSON object: "said" says what happened, "error" why not.
func (l *Lab) Do(ctx context.Context, b []byte) []byte {
	var q request
	err := strict(b, &q)
	var said string
	if err == nil {
		said, err = l.do(ctx, q)
	}
	a := answer{Said: said}
	if err != nil {
		a.Error = err.Error()
	}
	out, err := json.Marshal(a)
	if err != nil {
		panic(err) // texts
	}
	return out
}

// act carries out a request that concerns processes or links of the running cluster.
type act func(c *system, q request) error

var acting = map[string]act{
	"kill":    func(c *system, q request) error { return c.onNode(q.Node, (*node).kill) },
	"begin":   func(c *system, q request) error { return c.onNode(q.Node, c.begin) },
	"pause":   func(c *system, q request) error { return c.onNode(q.Node, (*node).pause) },
	"resume":  func(c *system, q request) error { return c.onNode(q.Node, (*node).resume) },
	"cut":     func(c *system, q request) error { return c.cut(q.Nodes, true) },
	"mend":    func(c *system, q request) error { return c.cut(q.Nodes, false) },
	"traffic": func(c *system, q request) error { c.setTraffic(q.On); return nil },
}

func (l *Lab) do(ctx context.Context, q request) (said string, err error) {
	if len(l.o.Other) > 0 {
		return "", errOther
	}
	switch q.Do {
	case "broadcast", "agree":
		return l.call(ctx, q)
	case "start", "stop":
	default:
		if acting[q.Do] == nil {
			return "", fmt.Errorf("the request %.40q is not known: load the page again", q.Do)
		}
	}
	if q.Do == "pause" && l.o.CannotPause != "" {
		return "", errors.New(l.o.CannotPause)
	}
	select {
	case l.acts <- struct{}{}:
		defer func() { <-l.acts }()
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(turn):
		return "", errBusy
	}
	defer l.tell()
	l.mu.Lock()
	c, closed := l.cluster, l.closed
	l.mu.Unlock()
	switch {
	case closed:
		return "", errClosed
	case q.Do == "start":
		return "", l.start(ctx, c, q)
	case q.Do == "stop":
		return "", l.stop()
	case c == nil:
		return "", errNone
	}
	return "", acting[q.Do](c, q)
}

// levels are the levels of a group that the page offers.
var levels = []string{"total", "atomic", "causal", "fifo", "uniform", "reliable", "byzantine"}

// start starts a cluster.
func (l *Lab) start(ctx context.Context, running *system, q request) error {
	switch {
	case running != nil:
		return errors.New("a cluster runs already: stop it first")
	case q.N < leastNodes || q.N > mostNodes:
		return fmt.Errorf("%d nodes: allowed are %d to %d", q.N, leastNodes, mostNodes)
	case !slices.Contains(levels, q.Level):
		return fmt.Errorf("the level %.40q is not known", q.Level)
	case q.Level == "byzantine" && q.N < 4:
		return errors.New("a group of level byzantine needs at least 4 nodes")
	}
	made, err := l.o.Make(context.WithoutCancel(ctx), q.N, q.Level)
	if err != nil {
		return err
	}
	c := newSystem(made.Nodes, q.Level, l.tell)
	c.made = made
	for _, n := range c.nodes {
		if err := c.begin(n); err != nil {
			return errors.Join(err, c.close())
		}
	}
	l.mu.Lock()
	l.cluster, l.failure = c, ""
	if l.readers > 0 {
		c.reader.begin()
	}
	l.mu.Unlock()
	return nil
}

// call broadcasts a text or agrees on it.
func (l *Lab) call(ctx context.Context, q request) (said string, err error) {
	l.mu.Lock()
	c := l.cluster
	l.mu.Unlock()
	switch {
	case c == nil:
		return "", errNone
	case q.Text == "" || len(q.Text) > mostText:
		return "", fmt.Errorf("a text of %d bytes: allowed are 1 to %d", len(q.Text), mostText)
	}
	n := c.find(q.Node)
	if n == nil {
		return "", unknown(q.Node)
	}
	select {
	case l.calls <- struct{}{}:
		defer func() { <-l.calls }()
	default:
		return "", fmt.Errorf("%d calls are in progress: wait for one of them", mostCalls)
	}
	ctx, end := context.WithTimeout(ctx, 10*time.Second)
	defer end()
	call := c.broadcast
	if q.Do == "agree" {
		call = c.agree
	}
	if q.Do == "broadcast" {
		c.reader.want(func(machine string) bool { return machine == "group/"+c.level })
	}
	said, err = call(ctx, n, q.Text)
	if err != nil {
		c.note("%s: %v", q.Node, err)
	} else {
		c.note("%s", said)
	}
	l.tell()
	return said, err
}

func unknown(node string) error { return fmt.Errorf("there is no node %.40q", node) }
