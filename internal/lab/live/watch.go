package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// watching is the request of a page that watches.
type watching struct {
	Width   int    `json:"width"`             // of the picture, in pixels; 0: no picture
	Machine string `json:"machine,omitempty"` // whose events it shows; empty: as before
}

const (
	mostWidth = 4000
	// rest is the minimum time between two states.
	rest = 150 * time.Millisecond
	// alive is the maximum time between two states.
	alive = 5 * time.Second
)

// strict reads JSON whose fields must be known.
func strict(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the request is not understood: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the request is not understood: it has more than one object")
	}
	return nil
}

// wrong is the error of a request that is always refused. The method tells the server.
type wrong struct{ error }

func (wrong) BadRequest() bool { return true }

// Watch calls emit with the state, as a JSON object, whenever it changes, until ctx ends or emit fails.
func (l *Lab) Watch(ctx context.Context, b []byte, emit func([]byte) error) error {
	var q watching
	if err := strict(b, &q); err != nil {
		return wrong{err}
	}
	if q.Width < 0 || q.Width > mostWidth {
		return wrong{fmt.Errorf("a width of %d: allowed are 0 to %d", q.Width, mostWidth)}
	}
	select {
	case l.watch <- struct{}{}:
		defer func() { <-l.watch }()
	default:
		return fmt.Errorf("%d pages are watching already: close one of them", MostWatching)
	}
	l.enter()
	defer l.leave()
	for first := true; ; first = false {
		l.mu.Lock()
		news, c := l.news, l.cluster
		l.mu.Unlock()
		if first && c != nil {
			c.reader.choose(q.Machine)
		}
		out, err := json.Marshal(l.facts().state(q.Width))
		if err != nil {
			return err
		}
		if err := emit(out); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rest):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-news:
		case <-time.After(alive):
		}
	}
}

// enter begins to read the cluster when the first page watches, and leave ends that with the last one.
func (l *Lab) enter() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readers++; l.readers == 1 && l.cluster != nil {
		l.cluster.reader.begin()
	}
}

func (l *Lab) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readers--; l.readers == 0 && l.cluster != nil {
		l.cluster.reader.end()
	}
}

// facts collects what the state is computed from.
func (l *Lab) facts() *facts {
	l.mu.Lock()
	c, failure := l.cluster, l.failure
	l.mu.Unlock()
	f := &facts{own: len(l.o.Other) == 0, cannotPause: l.o.CannotPause, failure: failure, now: time.Now()}
	if c == nil {
		return f
	}
	c.facts(f)
	return f
}

// facts adds what is known of a cluster.
func (c *system) facts(f *facts) {
	f.level, f.began = c.level, c.began
	c.mu.Lock()
	f.traffic, f.sent, f.cuts, f.lines = c.traffic, c.sent, slices.Clone(c.cuts), slices.Clone(c.lines)
	c.mu.Unlock()
	for _, n := range c.nodes {
		f.nodes = append(f.nodes, n.facts())
	}
	r := c.reader
	r.mu.Lock()
	defer r.mu.Unlock()
	f.found, f.machine, f.machines, f.ruling = slices.Clone(r.found), r.machine, r.machines(), r.ruling
}

func (n *node) facts() nodeFacts {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := nodeFacts{
		Node: n.Node, managed: n.c.made != nil, alive: n.alive(), paused: n.paused, killed: n.killed, ending: n.ending,
		starts: n.starts, marks: slices.Clone(n.marks),
	}
	if n.process != nil {
		select {
		case <-n.process.Joined():
			f.joined = true
		default:
		}
	}
	return f
}
