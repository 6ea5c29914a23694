package live

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"parley"
	"parley/cli/client"
	"parley/cluster/api/parleyv1"
	draw "parley/internal/draw/live"
	"parley/membership/group"
	"parley/trace"
)

// connected returns the status of a ready node among three, connected to the named ones.
func connected(node string, to ...string) *parleyv1.StatusResponse {
	s := &parleyv1.StatusResponse{Node: node, Ready: true, Clock: &parleyv1.NowResponse{
		Synchronized: true, Bound: durationpb.New(4 * time.Millisecond),
	}}
	var names []string
	for i := range 3 {
		m := &parleyv1.MemberStatus{Name: client.NodeName(i), Self: client.NodeName(i) == node}
		for _, name := range to {
			m.Connected = m.Connected || name == m.Name
		}
		s.Members, names = append(s.Members, m), append(names, m.Name)
	}
	s.Groups = []*parleyv1.GroupStatus{{
		Name: "total", View: &parleyv1.ViewStatus{In: true, View: 3, Members: names}, Position: 1234,
	}}
	return s
}

// threeNodes are the facts about three ready nodes that the view started.
func threeNodes() *facts {
	now := time.Unix(1000, 0)
	f := &facts{own: true, level: "total", began: now.Add(-75 * time.Second), now: now, found: make([]found, 3)}
	for i := range 3 {
		f.nodes = append(f.nodes, nodeFacts{
			Node: client.Node{Name: client.NodeName(i)}, managed: true, alive: true, joined: true, starts: 1,
		})
		f.found[i] = found{asked: true, status: connected(client.NodeName(i), "node1", "node2", "node3")}
	}
	return f
}

// Each state of a process, and of what its node says, has its word, and a problem says what to do.
func TestStates(t *testing.T) {
	for _, c := range []struct {
		name          string
		change        func(n *nodeFacts, f *found)
		state         string
		bad           bool
		links         string // of node1 with node2, node1 with node3, node2 with node3
		problem, note string
	}{
		{"well", func(*nodeFacts, *found) {}, "ready", false, "up up up", "", ""},
		{"not a member yet", func(n *nodeFacts, f *found) { n.joined = false }, "starting", false, "up up up", "", ""},
		{"not asked yet", func(n *nodeFacts, f *found) { f.asked = false }, "starting", false, "up up up", "", ""},
		{"of another cluster", func(n *nodeFacts, f *found) { n.managed, n.alive, n.joined, f.asked = false, false, false, false },
			"not asked yet", false, "up up up", "", ""},
		{"paused", func(n *nodeFacts, f *found) { n.paused, f.asked = true, false }, "paused", true, "up up up", "", ""},
		{"killed", func(n *nodeFacts, f *found) { n.alive, n.killed, f.asked = false, true, false }, "killed", true, "up down down", "", ""},
		{"ended", func(n *nodeFacts, f *found) { n.alive, n.ending, f.asked = false, "exit status 1", false }, "ended", true,
			"up down down", "exit status 1", ""},
		{"silent", func(n *nodeFacts, f *found) { f.err = errors.New("node3: refused") }, "no answer", true, "up up up", "refused", ""},
		{"not ready", func(n *nodeFacts, f *found) {
			f.status.Ready, f.status.Problems = false, []string{"the disk is full"}
		}, "not ready", true, "up up up", "the disk is full", ""},
		{"cut off", func(n *nodeFacts, f *found) { f.status = connected("node3") }, "stalls", true, "up down down",
			"group total stalls: of its 3 members only 1 can be reached", "it refuses agreements"},
		{"without one other", func(n *nodeFacts, f *found) { f.status = connected("node3", "node1") }, "ready", false, "up up down",
			"", "it refuses agreements: 2 of 3"},
	} {
		f := threeNodes()
		c.change(&f.nodes[2], &f.found[2])
		s := f.state(0)
		if s.Ruling.Verdicts == nil { // the page iterates over them
			t.Error("before the first judgement, the list of verdicts is not empty but missing")
		}
		n := s.Nodes[2]
		var links []string
		for _, l := range s.Links {
			links = append(links, l.State)
		}
		if n.State != c.state || n.Bad != c.bad || strings.Join(links, " ") != c.links ||
			!strings.HasPrefix(strings.Join(n.Problems, "; "), c.problem) || c.problem == "" && len(n.Problems) > 0 ||
			!strings.HasPrefix(strings.Join(n.Notes, "; "), c.note) || c.note == "" && len(n.Notes) > 0 {
			t.Errorf("%s: %+v, links %v", c.name, n, links)
		}
		if first := s.Nodes[0]; first.State != "ready" || first.Bad {
			t.Errorf("%s: node1 is %s", c.name, first.State)
		}
	}
	f := threeNodes() // two silent nodes, of which the third has lost one
	f.found[0].status = connected("node1", "node2")
	f.found[1].err, f.found[2].err = errors.New("refused"), errors.New("refused")
	if links := fmt.Sprint(f.state(0).Links); links != "[{node1 node2 up} {node1 node3 down} {node2 node3 down}]" {
		t.Errorf("two silent nodes: links %s", links)
	}
	f.found[1].err, f.found[1].asked, f.found[2].asked = nil, false, false // they are paused
	if links := fmt.Sprint(f.state(0).Links); links != "[{node1 node2 up} {node1 node3 down} {node2 node3 down}]" {
		t.Errorf("two paused nodes: links %s", links)
	}
}

// A cut shows at once, before the nodes notice it. Node 3 of another cluster has no process that the view knows.
func TestStateOfLinks(t *testing.T) {
	f := threeNodes()
	f.cuts = []cut{{a: 0, b: 1, from: f.now, until: f.now}, {a: 0, b: 2, from: f.now}}
	f.nodes[1].managed, f.nodes[1].alive = false, false
	s := f.state(0)
	if fmt.Sprint(s.Links) != "[{node1 node2 up} {node1 node3 cut} {node2 node3 up}]" || s.Nodes[1].State != "ready" {
		t.Errorf("%v, %+v", s.Links, s.Nodes[1])
	}
}

// The figures are in the same order for each node, even if a node has not answered.
func TestFigures(t *testing.T) {
	f := threeNodes()
	f.found[1] = found{}
	f.found[0].status.Streams = []*parleyv1.StreamStatus{
		{Slots: &parleyv1.SlotStatus{Done: 5, Abstained: 1}}, {Slots: &parleyv1.SlotStatus{Done: 2}},
	}
	f.found[0].status.Refused = []*parleyv1.RefusedStatus{{Why: "late", Times: 2}, {Why: "late", Times: 1}, {Why: "forged", Times: 1}}
	f.found[0].measure = &parleyv1.MeasureResponse{
		Wake: &parleyv1.WakeMeasure{P999: durationpb.New(12 * time.Millisecond)},
		Peers: []*parleyv1.PeerMeasure{
			{Skew: durationpb.New(-300 * time.Microsecond)}, {Skew: durationpb.New(200 * time.Microsecond)}, {},
		},
	}
	s := f.state(0)
	var got, names []string
	for i, one := range s.Nodes[0].Figures {
		got = append(got, one.Value)
		names = append(names, one.Name)
		if other := s.Nodes[1].Figures[i]; other.Name != one.Name || other.Value == "" || one.About == "" || one.Means != other.Means {
			t.Errorf("%+v and %+v", one, other)
		}
	}
	if text := strings.Join(names, ", "); text != "links, view, position, decided, abstained, late, clock, skew, refused" {
		t.Error(text)
	}
	if text := strings.Join(got, "|"); text != "2 of 2|3, with 3 nodes|1,234|7|1|12.0 ms|±4.0 ms|0.30 ms|4" {
		t.Error(text)
	}
	if about := s.Nodes[0].Figures[8].About; about != "messages that the node refused, by reason: 1 forged, 3 late" {
		t.Error(about)
	}
	late := func() string { return f.state(0).Nodes[0].Figures[5].About }
	const means = "how late the operating system woke the node (99.9th percentile)"
	if about := late(); about != means {
		t.Errorf("without a round: %s", about)
	}
	f.found[0].measure.Round = durationpb.New(30 * time.Millisecond)
	if about := late(); about != means+": a round takes 30.0 ms" {
		t.Error(about)
	}
	if s.For != "1:15" {
		t.Error(s.For)
	}
}

// recorded returns the trace of a node whose clock began at a time. Events have times in ms.
func recorded(self int, life uint64, began time.Time, events ...trace.Event) trace.Trace {
	log := &trace.Log{Keep: true}
	for _, e := range events {
		e.At, e.Time = parley.ID(self), e.Time*1e6
		log.Until = e.Time
		log.Add(e)
	}
	return trace.Trace{Name: fmt.Sprint(self), Log: log, Header: trace.Header{N: 3, M: 1, Node: &trace.Node{
		Cluster: "local", Members: []string{"node1", "node2", "node3"}, Machine: "group/total", Level: "total", Round: 1e8,
		Self: self, Life: life, Began: began.UnixNano(), Recorded: true,
	}}}
}

// The picture has the messages of all nodes on one scale of time, whenever their clocks began, without heartbeats; and
// what happened to the processes.
func TestScenery(t *testing.T) {
	began := time.Unix(1000, 0)
	data := parley.Msg{Kind: 1, Origin: 0, Seq: 1, Value: 1, Body: []byte("x")}
	beat := parley.Msg{Kind: group.Beat, Body: []byte{0}}
	request := parley.Msg{Kind: parley.Carried, Body: []byte("\x05hello")}
	s := scenery{
		names: []string{"node1", "node2", "node3"}, lanes: make([]draw.Lane, 3), began: began, until: began.Add(3 * time.Second),
		tails: [][]trace.Trace{
			{recorded(0, 1, began, trace.Event{Op: trace.Request, Time: 500, Msg: request},
				trace.Event{Op: trace.Send, Time: 501, Peer: 1, Path: 1, Msg: data}, trace.Event{Op: trace.Send, Time: 600, Peer: 1, Msg: beat},
				trace.Event{Op: trace.Restart, Time: 650})},
			{recorded(1, 1, began.Add(-time.Minute), trace.Event{Op: trace.Receive, Time: 60_502, Peer: 0, Path: 1, Msg: data},
				trace.Event{Op: trace.Deliver, Time: 60_502, Msg: request}, trace.Event{Op: trace.Receive, Time: 60_601, Peer: 0, Msg: beat})},
			nil,
		},
		marks: [][]mark{{{began.Add(time.Second), trace.Pause}}, nil, {{began.Add(2 * time.Second), trace.Crash}}},
	}
	w := merged(s.tails)
	if w == nil {
		t.Fatal("the traces cannot be merged")
	}
	shift := parley.Tick(w.Header.Node.Began - began.UnixNano())
	for i := range w.Log.Events {
		w.Log.Events[i].Time += shift
	}
	var got []string
	for _, e := range s.together(w.Log.Events) {
		got = append(got, fmt.Sprintf("%d %v %d %d %d %s", e.ID, e.Op, e.At, e.Time/1e6, e.Cause, e.Msg.Body))
	}
	want := "1 request 0 500 0 hello|2 send 0 501 0 x|3 receive 1 502 2 x|4 deliver 1 502 0 hello|5 pause 0 1000 0 |6 crash 2 2000 0 "
	if text := strings.Join(got, "|"); text != want {
		t.Errorf("got %s\nwant %s", text, want)
	}
	for _, want := range []string{`data-value="paused"`, `data-value="down"`, "broadcasts hello", "node1 to node2: "} {
		if picture := s.picture(900); !strings.Contains(picture, want) {
			t.Errorf("the picture has no %q", want)
		}
	}
}

// The picture of a cluster without any event is empty lanes.
func TestSceneryOfNothing(t *testing.T) {
	f := threeNodes()
	if picture := f.state(500).Picture; strings.Count(picture, "lane") < 3 || !strings.Contains(picture, "node3") {
		t.Error(picture)
	}
}

// A tail keeps the earlier lives of a node, each once, and forgets another machine.
func TestTails(t *testing.T) {
	began := time.Unix(1000, 0)
	first, second := recorded(0, 1, began), recorded(0, 2, began, trace.Event{Op: trace.Start, Time: 5})
	other := recorded(0, 1, began)
	other.Header.Node.Machine = "group/fifo"
	lives := func(all []trace.Trace) (text string) {
		for _, one := range all {
			text += fmt.Sprintf("%d:%d ", one.Header.Node.Life, one.Log.Len())
		}
		return text
	}
	tail := joined([]trace.Trace{other}, []trace.Trace{first}, "group/total")
	tail = joined(tail, []trace.Trace{recorded(0, 2, began)}, "group/total")
	tail = joined(tail, nil, "group/total") // it does not answer
	tail = joined(tail, []trace.Trace{second}, "group/total")
	if got := lives(tail); got != "1:0 2:1 " {
		t.Error(got)
	}
	for life := range uint64(10) {
		tail = joined(tail, []trace.Trace{recorded(0, 3+life, began)}, "group/total")
	}
	if len(tail) != mostLives || tail[mostLives-1].Header.Node.Life != 12 {
		t.Error(lives(tail))
	}
}

// The picture ends where the events of all nodes that answer are known.
func TestReach(t *testing.T) {
	began := time.Unix(1000, 0)
	at := func(ms parley.Tick) []trace.Trace {
		return []trace.Trace{recorded(0, 1, began, trace.Event{Op: trace.Start, Time: ms})}
	}
	all := []found{
		{asked: true, tail: at(3000)}, {asked: true, tail: at(2500)}, {tail: at(100)}, {asked: true, err: errors.New("x"), tail: at(1)},
		{asked: true, partly: errors.New("x"), tail: at(1)},
	}
	if got := reach(all, began); got.Sub(began) != 2500*time.Millisecond {
		t.Error(got)
	}
	if got := reach(nil, began); !got.Equal(began) {
		t.Error(got)
	}
}

// The names of machines come from the status of the nodes.
func TestMachines(t *testing.T) {
	r := reader{found: []found{{status: connected("node1")}, {}}}
	r.found[0].status.Streams = []*parleyv1.StreamStatus{
		{Algorithm: parleyv1.Algorithm_ALGORITHM_PHASE_KING, M: 1, Source: "node2", Slots: &parleyv1.SlotStatus{Opened: 1}},
		{Algorithm: parleyv1.Algorithm_ALGORITHM_EIG, Source: "node1"},                        // unused
		{Algorithm: parleyv1.Algorithm_ALGORITHM_EIG, Slots: &parleyv1.SlotStatus{Opened: 1}}, // of vectors
	}
	got := fmt.Sprint(r.machines())
	if want := "[{group/total the group total} {agree/phaseking/1/1 agreements on values of node2 (phaseking, m = 1)}]"; got != want {
		t.Error(got)
	}
	r.choose("group/other")
	r.choose("agree/phaseking/1/1")
	if r.machine != "agree/phaseking/1/1" {
		t.Error(r.machine)
	}
}
