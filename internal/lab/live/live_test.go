package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"parley/cli/client"
	api "parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
)

// fakeProcess is a process without a system.
type fakeProcess struct {
	f             *fake
	node          int
	joined, ended chan struct{}
	once          sync.Once
}

func (p *fakeProcess) end() { p.once.Do(func() { close(p.ended) }) }

func (p *fakeProcess) Kill() error {
	p.f.did("kill %d", p.node)
	p.end()
	return nil
}

func (p *fakeProcess) Pause() error            { p.f.did("pause %d", p.node); return nil }
func (p *fakeProcess) Resume() error           { p.f.did("resume %d", p.node); return nil }
func (p *fakeProcess) Joined() <-chan struct{} { return p.joined }
func (p *fakeProcess) Ended() <-chan struct{}  { return p.ended }
func (p *fakeProcess) Ending() string          { return "exit status 1: the disk is full" }

// fake is a cluster of fake processes. It notes what the view does with it.
type fake struct {
	mu        sync.Mutex
	done      []string
	processes []*fakeProcess
	asked     func(ctx context.Context) error // before a status; nil: at once
	broadcast func(ctx context.Context, node string, text string) error
	status    func(node string) (*parleyv1.StatusResponse, error)
}

func (f *fake) did(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = append(f.done, fmt.Sprintf(format, args...))
}

// take returns what was done since the last call.
func (f *fake) take() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := strings.Join(f.done, ", ")
	f.done = nil
	return text
}

// fakeNode is the API of a node.
type fakeNode struct {
	parleyv1.AdminServiceClient
	parleyv1.GroupServiceClient
	f    *fake
	name string
}

func (n fakeNode) Status(ctx context.Context, _ *parleyv1.StatusRequest) (*parleyv1.StatusResponse, error) {
	if n.f.asked != nil {
		if err := n.f.asked(ctx); err != nil {
			return nil, err
		}
	}
	return n.f.status(n.name)
}

func (n fakeNode) Measure(context.Context, *parleyv1.MeasureRequest) (*parleyv1.MeasureResponse, error) {
	return &parleyv1.MeasureResponse{}, nil
}

func (n fakeNode) Record(context.Context, *parleyv1.RecordRequest,
) (*connect.ServerStreamForClient[parleyv1.RecordResponse], error) {
	return nil, connect.NewError(connect.CodePermissionDenied, errors.New("the client lacks the right admin"))
}

func (n fakeNode) Broadcast(ctx context.Context, q *parleyv1.BroadcastRequest) (*parleyv1.BroadcastResponse, error) {
	if n.f.broadcast != nil {
		if err := n.f.broadcast(ctx, n.name, string(q.GetPayload())); err != nil {
			return nil, err
		}
	}
	n.f.did("%s delivers %s in %s", n.name, q.GetPayload(), q.GetGroup())
	return &parleyv1.BroadcastResponse{Position: 7}, nil
}

// nodes returns nodes whose API is faked.
func (f *fake) nodes(n int) (all []client.Node) {
	for i := range n {
		one := fakeNode{f: f, name: client.NodeName(i)}
		all = append(all, client.Node{Name: one.name, Client: &api.Client{Admin: one, Group: one}})
	}
	return all
}

func (f *fake) make(_ context.Context, n int, level string) (*Made, error) {
	f.did("make %d %s", n, level)
	f.processes = make([]*fakeProcess, n)
	return &Made{
		Nodes: f.nodes(n),
		Start: func(node int) (Process, error) {
			f.did("start %d", node)
			p := &fakeProcess{f: f, node: node, joined: make(chan struct{}), ended: make(chan struct{})}
			close(p.joined)
			f.processes[node] = p
			return p, nil
		},
		Cut:    func(a, b int, on bool) { f.did("cut %d %d %v", a, b, on) },
		Remove: func() error { f.did("remove"); return nil },
	}, nil
}

// newFake returns a view of fake clusters.
func newFake() (*Lab, *fake) {
	f := &fake{status: func(node string) (*parleyv1.StatusResponse, error) {
		return &parleyv1.StatusResponse{Node: node, Ready: true}, nil
	}}
	return New(Options{Make: f.make}), f
}

// do carries out a request, which must be understood.
func do(t *testing.T, l *Lab, request string) (said, wrong string) {
	t.Helper()
	var a answer
	if err := json.Unmarshal(l.Do(t.Context(), []byte(request)), &a); err != nil {
		t.Fatal(err)
	}
	return a.Said, a.Error
}

func must(t *testing.T, l *Lab, request string) string {
	t.Helper()
	said, wrong := do(t, l, request)
	if wrong != "" {
		t.Fatalf("%s: %s", request, wrong)
	}
	return said
}

const startThree = `{"do":"start","n":3,"level":"total"}`

// Each request acts on the processes of the nodes that it names, and on no others; the state shows what it did.
func TestActs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newFake()
		for _, c := range []struct{ request, did, states string }{
			{startThree, "make 3 total, start 0, start 1, start 2", "starting starting starting"}, // nobody reads them yet
			{`{"do":"pause","node":"node3"}`, "pause 2", "starting starting paused"},
			{`{"do":"pause","node":"node3"}`, "", "starting starting paused"},
			{`{"do":"resume","node":"node3"}`, "resume 2", "starting starting starting"},
			{`{"do":"pause","node":"node1"}`, "pause 0", "paused starting starting"},
			{`{"do":"kill","node":"node1"}`, "kill 0", "killed starting starting"},
			{`{"do":"begin","node":"node1"}`, "start 0", "starting starting starting"},
			{`{"do":"cut","nodes":["node3","node1"]}`, "cut 0 2 true", "starting starting starting"},
			{`{"do":"cut","nodes":["node1","node3"]}`, "", "starting starting starting"},
			{`{"do":"mend","nodes":["node1","node3"]}`, "cut 0 2 false", "starting starting starting"},
			{`{"do":"mend","nodes":["node1","node2"]}`, "", "starting starting starting"},
			{`{"do":"kill","node":"node2"}`, "kill 1", "starting killed starting"},
			{`{"do":"stop"}`, "kill 0, kill 2, remove", ""},
			{startThree, "make 3 total, start 0, start 1, start 2", "starting starting starting"},
		} {
			must(t, l, c.request)
			synctest.Wait()
			var states []string
			for _, n := range l.facts().state(0).Nodes {
				states = append(states, n.State)
			}
			if did := f.take(); did != c.did || strings.Join(states, " ") != c.states {
				t.Errorf("%s: did %q, want %q; states %q, want %q", c.request, did, c.did, states, c.states)
			}
		}
		if err := l.Close(); err != nil || f.take() != "kill 0, kill 1, kill 2, remove" {
			t.Errorf("the end: %v", err)
		}
		if _, wrong := do(t, l, startThree); wrong != errClosed.Error() {
			t.Errorf("after the end: %s", wrong)
		}
	})
}

// Requests that make no sense, or that concern anything but a node of the cluster, do nothing and say why.
func TestRefuses(t *testing.T) {
	l, f := newFake()
	other := New(Options{Other: f.nodes(3)})
	pauseless := New(Options{Make: f.make, CannotPause: "there is no signal for it"})
	must(t, pauseless, startThree)
	text := strings.Repeat("x", mostText+1)
	for _, c := range []struct {
		l             *Lab
		request, want string
	}{
		{l, `{"do":"kill","node":"node1"}`, "no cluster runs: start one"},
		{l, `{"do":"broadcast","node":"node1","text":"x"}`, "no cluster runs: start one"},
		{l, `{"do":"start","n":2,"level":"total"}`, "2 nodes: allowed are 3 to 7"},
		{l, `{"do":"start","n":8,"level":"total"}`, "8 nodes: allowed are 3 to 7"},
		{l, `{"do":"start","n":3,"level":"total\nlab: true"}`, `the level "total\nlab: true" is not known`},
		{l, `{"do":"start","n":3,"level":"byzantine"}`, "a group of level byzantine needs at least 4 nodes"},
		{l, startThree, ""},
		{l, startThree, "a cluster runs already: stop it first"},
		{l, `{"do":"kill","node":"1"}`, `there is no node "1"`},
		{l, `{"do":"kill","node":""}`, `there is no node ""`},
		{l, `{"do":"kill","pid":1}`, "the request is not understood: json: unknown field \"pid\""},
		{l, `{"do":"signal","node":"node1"}`, `the request "signal" is not known: load the page again`},
		{l, `{"do":"begin","node":"node1"}`, "node1 runs already"},
		{l, `{"do":"cut","nodes":["node1"]}`, "the names of two nodes were expected"},
		{l, `{"do":"cut","nodes":["node1","node1"]}`, "a node has no link to itself"},
		{l, `{"do":"cut","nodes":["node1","node9"]}`, `there is no node "node9"`},
		{l, `{"do":"broadcast","node":"node9","text":"x"}`, `there is no node "node9"`},
		{l, `{"do":"broadcast","node":"node1","text":""}`, "a text of 0 bytes: allowed are 1 to 200"},
		{l, `{"do":"agree","node":"node1","text":"` + text + `"}`, "a text of 201 bytes: allowed are 1 to 200"},
		{l, `{"do":"stop"} {"do":"stop"}`, "the request is not understood: it has more than one object"},
		{l, ``, "the request is not understood: EOF"},
		{l, `{"do":"kill","node":"node1"}`, ""},
		{l, `{"do":"kill","node":"node1"}`, "node1 does not run"},
		{l, `{"do":"pause","node":"node1"}`, "node1 does not run"},
		{other, startThree, errOther.Error()},
		{other, `{"do":"stop"}`, errOther.Error()},
		{other, `{"do":"kill","node":"node1"}`, errOther.Error()},
		{other, `{"do":"broadcast","node":"node1","text":"x"}`, errOther.Error()},
		{pauseless, `{"do":"pause","node":"node1"}`, "there is no signal for it"},
	} {
		f.take()
		if _, wrong := do(t, c.l, c.request); wrong != c.want || c.want != "" && f.take() != "" {
			t.Fatalf("%s: got %q, want %q", c.request, wrong, c.want)
		}
	}
	for _, one := range []*Lab{l, other, pauseless} {
		if err := one.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A process that ends by itself is shown with the reason, and can be started again.
func TestEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newFake()
		must(t, l, startThree)
		f.processes[1].end()
		synctest.Wait()
		s := l.facts().state(0)
		if n := s.Nodes[1]; n.State != "ended" || n.Runs || !slices.Contains(n.Problems, "exit status 1: the disk is full") {
			t.Errorf("%+v", n)
		}
		if last := s.Lines[len(s.Lines)-1].Text; last != "node2 has ended by itself: exit status 1: the disk is full" {
			t.Error(last)
		}
		must(t, l, `{"do":"begin","node":"node2"}`)
		if n := l.facts().state(0).Nodes[1]; n.State != "starting" || n.Starts != "2" {
			t.Errorf("started again: %+v", n)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// If the cluster cannot be removed, the page says so.
func TestCannotRemove(t *testing.T) {
	l, f := newFake()
	l.o.Make = func(ctx context.Context, n int, level string) (*Made, error) {
		made, err := f.make(ctx, n, level)
		made.Remove = func() error { return errors.New("the folder is in use") }
		return made, err
	}
	must(t, l, startThree)
	if _, wrong := do(t, l, `{"do":"stop"}`); wrong != "the folder is in use" {
		t.Error(wrong)
	}
	if s := l.facts().state(0); s.Running || s.Failure != "the folder is in use" {
		t.Errorf("%+v", s)
	}
}

// The automatic traffic broadcasts one text a second, at each running node in turn, until it is ended.
func TestTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newFake()
		must(t, l, startThree)
		must(t, l, `{"do":"pause","node":"node2"}`)
		f.take()
		must(t, l, `{"do":"traffic","on":true}`)
		must(t, l, `{"do":"traffic","on":true}`)
		time.Sleep(3*pace + pace/2)
		synctest.Wait()
		want := "node1 delivers m1 in total, node3 delivers m2 in total, node3 delivers m3 in total, node1 delivers m4 in total"
		if did := f.take(); did != want {
			t.Errorf("got %q, want %q", did, want)
		}
		must(t, l, `{"do":"traffic"}`)
		time.Sleep(10 * pace)
		if did := f.take(); did != "" {
			t.Errorf("after its end: %q", did)
		}
		must(t, l, `{"do":"traffic","on":true}`)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Traffic that gets no answers does not grow without limit, and neither do the calls of pages.
func TestCallsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newFake()
		var now, most atomic.Int64
		f.broadcast = func(ctx context.Context, _, _ string) error {
			f.mu.Lock()
			most.Store(max(most.Load(), now.Add(1)))
			f.mu.Unlock()
			<-ctx.Done()
			now.Add(-1)
			return ctx.Err()
		}
		must(t, l, startThree)
		var calls sync.WaitGroup
		for range mostCalls {
			calls.Go(func() {
				if _, wrong := do(t, l, `{"do":"broadcast","node":"node1","text":"x"}`); wrong == "" {
					t.Error("it was delivered")
				}
			})
		}
		synctest.Wait()
		if _, wrong := do(t, l, `{"do":"broadcast","node":"node1","text":"x"}`); wrong != "8 calls are in progress: wait for one of them" {
			t.Error(wrong)
		}
		calls.Wait() // their time is up
		if most := most.Load(); most != mostCalls {
			t.Errorf("%d calls at the same time, want %d", most, mostCalls)
		}
		must(t, l, `{"do":"traffic","on":true}`)
		time.Sleep(time.Minute)
		if most := most.Load(); most != mostCalls {
			t.Errorf("%d calls at the same time, want at most %d", most, mostCalls)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A broadcast says at which position it was delivered, or why not.
func TestBroadcast(t *testing.T) {
	l, f := newFake()
	must(t, l, startThree)
	if said := must(t, l, `{"do":"broadcast","node":"node2","text":"hello"}`); said != `node2 has delivered "hello", at position 7` {
		t.Error(said)
	}
	f.broadcast = func(context.Context, string, string) error {
		return connect.NewError(connect.CodeUnavailable, errors.New("not a member"))
	}
	_, wrong := do(t, l, `{"do":"broadcast","node":"node2","text":"hello"}`)
	if !strings.HasPrefix(wrong, `"hello": node2: not a member`) {
		t.Error(wrong)
	}
	lines := l.facts().state(0).Lines
	if len(lines) != 2 || lines[0].Number != 1 || lines[1].Number != 2 {
		t.Errorf("%+v", lines)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A page that watches gets the state at once and whenever it changes. The nodes are asked only while a page watches,
// and what they said last remains.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newFake()
		asked := 0
		f.status = func(node string) (*parleyv1.StatusResponse, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			asked++
			return &parleyv1.StatusResponse{Node: node, Ready: true}, nil
		}
		must(t, l, startThree)
		time.Sleep(time.Minute)
		if asked != 0 {
			t.Errorf("nobody watches, and the nodes were asked %d times", asked)
		}
		var last State
		watch := func(ctx context.Context) error {
			return l.Watch(ctx, []byte(`{"width":600}`), func(b []byte) error { return json.Unmarshal(b, &last) })
		}
		ctx, end := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- watch(ctx) }()
		time.Sleep(2*often + often/2)
		synctest.Wait()
		if asked != 9 || last.Nodes[0].State != "ready" || !strings.HasPrefix(last.Picture, "<svg") ||
			!strings.HasPrefix(last.Missing, "The picture lacks the latest events of node1: node1: the client lacks the right") {
			t.Errorf("asked %d times; %+v", asked, last)
		}
		must(t, l, `{"do":"kill","node":"node2"}`)
		time.Sleep(rest)
		synctest.Wait()
		if last.Nodes[1].State != "killed" {
			t.Errorf("%+v", last.Nodes[1])
		}
		must(t, l, `{"do":"stop"}`)
		time.Sleep(rest)
		synctest.Wait()
		if last.Running {
			t.Errorf("%+v", last)
		}
		must(t, l, startThree)
		time.Sleep(often)
		synctest.Wait()
		if !last.Running || last.Nodes[2].State != "ready" {
			t.Errorf("another cluster: %+v", last)
		}
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		asked = 0
		time.Sleep(time.Minute)
		if asked != 0 || l.facts().state(0).Nodes[0].State != "ready" {
			t.Errorf("nobody watches any more, and the nodes were asked %d times", asked)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// If the last page goes in the middle of a round, what the nodes said before remains. The next page begins no round
// before that one has ended.
func TestWatchEndsInRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := newFake()
		must(t, l, startThree)
		watch := func(d time.Duration) {
			ctx, end := context.WithTimeout(t.Context(), d)
			defer end()
			if err := l.Watch(ctx, []byte("{}"), func([]byte) error { return nil }); err != nil {
				t.Error(err)
			}
		}
		states := func() (text string) {
			for _, n := range l.facts().state(0).Nodes {
				text += n.State + " "
			}
			return text
		}
		watch(often / 2)
		var now, most atomic.Int64
		f.asked = func(ctx context.Context) error {
			f.mu.Lock()
			most.Store(max(most.Load(), now.Add(1)))
			f.mu.Unlock()
			defer now.Add(-1)
			<-ctx.Done()
			time.Sleep(often / 4)
			return ctx.Err()
		}
		for range 3 {
			watch(often / 10)
		}
		time.Sleep(often)
		if got := states(); got != "ready ready ready " || most.Load() != 3 {
			t.Errorf("%s: at most %d calls at the same time", got, most.Load())
		}
		watch(2 * often) // now they do not answer within Patience
		time.Sleep(often)
		if got := states(); got != "no answer no answer no answer " {
			t.Error(got)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Only some pages may watch, and only with a sensible request.
func TestWatchLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := newFake()
		ctx, end := context.WithCancel(t.Context())
		var pages sync.WaitGroup
		none := func([]byte) error { return nil }
		for range MostWatching {
			pages.Go(func() {
				if err := l.Watch(ctx, []byte("{}"), none); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		soon, over := context.WithTimeout(ctx, time.Second)
		defer over()
		err := l.Watch(soon, []byte("{}"), none)
		if err == nil || err.Error() != "8 pages are watching already: close one of them" || errors.As(err, new(wrong)) {
			t.Errorf("one more: %v", err)
		}
		end()
		pages.Wait()
		for _, request := range []string{``, `{"width":-1}`, `{"width":5000}`, `{"wide":1}`} {
			if err := l.Watch(t.Context(), []byte(request), none); !errors.As(err, new(wrong)) {
				t.Errorf("%s is not refused as wrong: %v", request, err)
			}
		}
		gone := errors.New("gone")
		if err := l.Watch(t.Context(), []byte("{}"), func([]byte) error { return gone }); !errors.Is(err, gone) {
			t.Errorf("a page that has gone: %v", err)
		}
	})
}
