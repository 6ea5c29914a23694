package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"parley"
	"parley/cli/client"
	"parley/cluster/api/parleyv1"
	"parley/trace"
)

// reader asks the nodes of a cluster once a second, as long as somebody watches.
type reader struct {
	c    *system
	stop context.CancelFunc // nil: it does not read now
	turn chan struct{}      // holds an element during run
	work sync.WaitGroup

	mu      sync.Mutex
	machine string  // whose events are read; empty until it is known
	found   []found // by node
	ruling  Ruling
	wanted  func(machine string) bool // reports whether a machine is the next one to read; nil: none
}

// found is what was read last of a node.
type found struct {
	status  *parleyv1.StatusResponse
	measure *parleyv1.MeasureResponse
	err     error
	asked   bool          // status, measure and err are of the last round
	tail    []trace.Trace // the last events of the machine, one trace for each life of the node, the latest one last
	partly  error         // why there are no new events
}

// heard reports whether the node answered in the last round.
func (f *found) heard() bool { return f.asked && f.err == nil }

// Patience is the time limit for the answers of a node.
const Patience = 900 * time.Millisecond

const (
	often    = time.Second      // between two rounds
	window   = 20 * time.Second // the age of the oldest events
	mostRead = 4000             // events of a node
	// mostBytes is the maximum size of the events of a node.
	mostBytes = 4 << 20
)

func newReader(c *system) *reader {
	r := &reader{c: c, turn: make(chan struct{}, 1), found: make([]found, len(c.nodes))}
	if c.level != "" {
		r.machine = "group/" + c.level
	}
	return r
}

// begin begins to read, and end ends that. Lab calls them in turn, with its lock. What was read remains: a node that
// has died since is not read again.
func (r *reader) begin() {
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.work.Go(func() { r.run(ctx) })
}

func (r *reader) end() {
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

func (r *reader) run(ctx context.Context) {
	r.turn <- struct{}{} // the last round of the run before may not have ended
	defer func() { <-r.turn }()
	tick := time.NewTicker(often)
	defer tick.Stop()
	for {
		r.round(ctx)
		if ctx.Err() != nil {
			return
		}
		f := &facts{now: time.Now()}
		r.c.facts(f)
		judged := f.judge()
		r.mu.Lock()
		r.ruling = judged
		r.mu.Unlock()
		r.c.tell()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// round asks all nodes that can answer, at the same time.
func (r *reader) round(ctx context.Context) {
	ctx, end := context.WithTimeout(ctx, Patience)
	defer end()
	var calls sync.WaitGroup
	for i, n := range r.c.nodes {
		n.mu.Lock()
		mute := r.c.made != nil && (n.paused || !n.alive())
		n.mu.Unlock()
		if mute {
			r.mu.Lock()
			r.found[i].asked = false
			r.mu.Unlock()
			continue
		}
		calls.Go(func() { r.ask(ctx, i, n.Node) })
	}
	calls.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wanted != nil {
		if i := slices.IndexFunc(r.machines(), func(m Machine) bool { return r.wanted(m.Name) }); i >= 0 {
			r.machine, r.wanted = r.machines()[i].Name, nil
		}
	}
	if r.machine == "" {
		for _, f := range r.found {
			if groups := f.status.GetGroups(); len(groups) > 0 {
				r.machine = "group/" + groups[0].GetName()
				break
			}
		}
	}
}

// ask asks a node.
func (r *reader) ask(ctx context.Context, i int, n client.Node) {
	r.mu.Lock()
	machine := r.machine
	r.mu.Unlock()
	var got found
	var calls sync.WaitGroup
	calls.Go(func() { got.status, got.err = n.Admin.Status(ctx, &parleyv1.StatusRequest{}) })
	calls.Go(func() { got.measure, _ = n.Admin.Measure(ctx, &parleyv1.MeasureRequest{}) })
	var tail []trace.Trace
	if machine != "" {
		calls.Go(func() { tail, got.partly = record(ctx, n, machine) })
	}
	calls.Wait()
	if errors.Is(ctx.Err(), context.Canceled) {
		return // nobody watches any more: the node may well answer
	}
	if got.err != nil {
		got.err = client.Said(n, got.err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	old := &r.found[i]
	got.asked, got.tail = true, joined(old.tail, tail, machine)
	if got.err != nil {
		got.status, got.measure = old.status, old.measure
	}
	r.found[i] = got
}

// record returns the last events of a machine at a node.
func record(ctx context.Context, n client.Node, machine string) ([]trace.Trace, error) {
	s, err := n.Admin.Record(ctx, &parleyv1.RecordRequest{
		Machine: machine, Last: durationpb.New(window), Most: mostRead,
	})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var b bytes.Buffer
	for s.Receive() {
		if b.Write(s.Msg().GetData()); b.Len() > mostBytes {
			return nil, fmt.Errorf("more than %d bytes", mostBytes)
		}
	}
	if err := s.Err(); err != nil || b.Len() == 0 {
		return nil, err
	}
	all, err := trace.ReadAll(n.Name, &b)
	return slices.DeleteFunc(all, func(t trace.Trace) bool {
		return t.Header.Node == nil || t.Header.Node.Machine != machine
	}), err
}

// mostLives is how many lives of a node have a tail.
const mostLives = 4

// joined adds what was read to the tail of a node. It keeps the lives that the node has ended, and not the events of
// another machine.
func joined(old, read []trace.Trace, machine string) []trace.Trace {
	out := slices.DeleteFunc(slices.Clone(old), func(t trace.Trace) bool {
		return t.Header.Node.Machine != machine || slices.ContainsFunc(read, func(one trace.Trace) bool {
			return one.Header.Node.Life == t.Header.Node.Life
		})
	})
	out = append(out, read...)
	return out[max(len(out)-mostLives, 0):]
}

// want changes the machine whose events are read to one that the nodes may be about to open.
func (r *reader) want(is func(machine string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = is
}

// choose changes the machine whose events are read.
func (r *reader) choose(machine string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.machines(), func(m Machine) bool { return m.Name == machine }) {
		r.machine, r.wanted = machine, nil
	}
}

// machines returns the machines that pictures can show: groups first. The caller holds the lock.
func (r *reader) machines() (all []Machine) {
	for _, f := range r.found {
		for _, g := range f.status.GetGroups() {
			all = append(all, Machine{"group/" + g.GetName(), "the group " + g.GetName()})
		}
		for _, s := range f.status.GetStreams() {
			if m := stream(f.status, s); m.Name != "" && s.GetSlots().GetOpened() > 0 {
				all = append(all, m)
			}
		}
	}
	slices.SortFunc(all, func(a, b Machine) int { return cmp.Compare(b.Name[:1]+a.Name, a.Name[:1]+b.Name) })
	return slices.Compact(all)
}

// stream returns the machine of a stream of agreements on the values of one node, and nothing for other streams.
func stream(of *parleyv1.StatusResponse, s *parleyv1.StreamStatus) Machine {
	source := slices.IndexFunc(of.GetMembers(), func(m *parleyv1.MemberStatus) bool {
		return m.GetName() == s.GetSource()
	})
	if source < 0 {
		return Machine{}
	}
	algorithm := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(s.GetAlgorithm().String(), "ALGORITHM_"), "_", ""))
	return Machine{
		fmt.Sprintf("agree/%s/%d/%v", algorithm, s.GetM(), parley.ID(source)),
		fmt.Sprintf("agreements on values of %s (%s, m = %d)", s.GetSource(), algorithm, s.GetM()),
	}
}
