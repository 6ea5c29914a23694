package live

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/cli/client"
	"parley/cluster/api/parleyv1"
	draw "parley/internal/draw/live"
	"parley/internal/draw/prose"
)

// State is what the page shows of a cluster.
type State struct {
	Running     bool     `json:"running"`      // there is a cluster
	Own         bool     `json:"own"`          // the lab started it, or may start one
	Levels      []string `json:"levels"`       // that a cluster can have
	CannotPause string   `json:"cannot_pause"` // why nodes cannot be paused; empty if they can
	Failure     string   `json:"failure"`      // why the last cluster could not be removed

	Level    string    `json:"level"`
	For      string    `json:"for"` // how long it has been running
	Traffic  bool      `json:"traffic"`
	Sent     int       `json:"sent"` // texts of the automatic traffic
	Nodes    []Node    `json:"nodes"`
	Links    []Link    `json:"links"`
	Lines    []Line    `json:"lines"`    // what happened, the latest last
	Machines []Machine `json:"machines"` // that the picture can show
	Machine  string    `json:"machine"`  // that it shows, by name
	Picture  string    `json:"picture"`  // an SVG element without style
	Missing  string    `json:"missing"`  // why the picture lacks events
	Ruling   Ruling    `json:"ruling"`   // of the events of the machine
}

// Machine is what pictures can show: a group, or a stream of agreements.
type Machine struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

// Node is a node in a State.
type Node struct {
	Name     string   `json:"name"`
	State    string   `json:"state"`
	Bad      bool     `json:"bad"`
	Runs     bool     `json:"runs"` // it has a process, paused or not
	Paused   bool     `json:"paused"`
	Starts   string   `json:"starts"`
	Problems []string `json:"problems"` // each with what to do
	Notes    []string `json:"notes"`
	Figures  []Figure `json:"figures"` // in the same order for each node
}

// Figure is something that a node counts or measures.
type Figure struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Means string `json:"means"` // for all nodes
	About string `json:"about"` // for this one
}

// Link is the link between two nodes.
type Link struct {
	A     string `json:"a"`
	B     string `json:"b"`
	State string `json:"state"` // up, down, or cut
}

// facts is what a state is computed from, so that it can be computed without a cluster.
type facts struct {
	own         bool
	cannotPause string
	failure     string
	level       string
	began, now  time.Time
	traffic     bool
	sent        int
	nodes       []nodeFacts
	found       []found
	cuts        []cut
	lines       []Line
	machines    []Machine
	machine     string
	ruling      Ruling
}

// nodeFacts is what the lab knows of a node and its process.
type nodeFacts struct {
	client.Node
	managed bool // the lab starts its processes
	alive   bool
	joined  bool
	paused  bool
	killed  bool
	ending  string
	starts  int
	marks   []mark
}

// state returns what the page shows, with a picture of a width. Without nodes, there is no cluster.
func (f *facts) state(width int) State {
	s := State{
		Own: f.own, Levels: levels, CannotPause: f.cannotPause, Failure: f.failure, Nodes: []Node{}, Links: []Link{},
		Lines: []Line{}, Machines: []Machine{}, Ruling: Ruling{Verdicts: []Verdict{}, Why: notYet},
	}
	if len(f.nodes) == 0 {
		return s
	}
	s.Running, s.Level, s.Traffic, s.Sent, s.Machine = true, f.level, f.traffic, f.sent, f.machine
	if f.ruling.Verdicts != nil { // the first round of reading may not be over
		s.Ruling = f.ruling
	}
	s.Lines, s.Machines = append(s.Lines, f.lines...), append(s.Machines, f.machines...)
	s.For = duration(f.now.Sub(f.began))
	health := f.health()
	for i := range f.nodes {
		s.Nodes = append(s.Nodes, f.node(i, health[i]))
	}
	s.Links = f.links(s.Links)
	s.Missing = f.missing()
	if width > 0 {
		s.Picture = f.scenery(s.Nodes).picture(width)
	}
	return s
}

// health returns the health of the nodes by what they said last.
func (f *facts) health() []*client.Health {
	var nodes []client.Node
	var answers []*parleyv1.StatusResponse
	var errs []error
	for i, n := range f.nodes {
		nodes = append(nodes, n.Node)
		answer, err := f.found[i].status, f.found[i].err
		if answer == nil && err == nil {
			answer = &parleyv1.StatusResponse{Node: n.Name}
		}
		answers, errs = append(answers, answer), append(errs, err)
	}
	return client.Judge(nodes, answers, errs)
}

// node describes a node.
func (f *facts) node(i int, h *client.Health) Node {
	n := f.nodes[i]
	out := Node{
		Name: n.Name, Runs: n.alive, Paused: n.paused, Problems: []string{}, Notes: []string{},
		Figures: figures(n.Node.Name, &f.found[i]),
	}
	if n.managed {
		out.Starts = fmt.Sprint(n.starts)
	} else if status := f.found[i].status; status != nil {
		out.Starts = map[bool]string{false: "1", true: "more than 1"}[status.GetAgain()]
	}
	heard := f.found[i].asked
	switch {
	case n.managed && !n.alive && n.killed:
		out.State, out.Bad = "killed", true
	case n.managed && !n.alive:
		out.State, out.Bad = "ended", true
		out.Problems = append(out.Problems, n.ending)
	case n.paused:
		out.State, out.Bad = "paused", true
	case !n.managed && !heard:
		out.State = "not asked yet"
	case n.managed && !n.joined, !heard:
		out.State = "starting"
	case h.Expelled:
		out.State, out.Bad = "expelled", true
	case h.Err != nil:
		out.State, out.Bad = "no answer", true
		out.Problems = append(out.Problems, strings.TrimPrefix(h.Err.Error(), n.Name+": "))
	case !h.Response.GetReady():
		out.State, out.Bad = "not ready", true
	case len(h.Problems) > 0:
		out.State, out.Bad = "stalls", true
	default:
		out.State = "ready"
	}
	if h.Err == nil && heard && !n.paused && n.alive == n.managed {
		out.Problems, out.Notes = append(out.Problems, h.Problems...), append(out.Notes, h.Notes...)
	}
	return out
}

// figures returns what a node counted and measured when it answered last.
func figures(name string, f *found) []Figure {
	r, m := f.status, f.measure
	up, others := 0, 0
	for _, p := range r.GetMembers() {
		if !p.GetSelf() {
			others++
			if p.GetConnected() {
				up++
			}
		}
	}
	var position, decided, abstained, refused uint64
	view := "–"
	for _, g := range r.GetGroups() {
		position = max(position, g.GetPosition())
		if v := g.GetView(); v.GetView() > 0 { // a group of level byzantine has no views
			view = fmt.Sprintf("%d, with %s", v.GetView(), prose.Count(uint64(len(v.GetMembers())), "node", "nodes"))
			if !v.GetIn() {
				view = "not a member"
			}
		}
	}
	for _, s := range r.GetStreams() {
		decided += s.GetSlots().GetDone()
		abstained += s.GetSlots().GetAbstained()
	}
	why := make(map[string]uint64)
	for _, x := range r.GetRefused() {
		refused += x.GetTimes()
		why[x.GetWhy()] += x.GetTimes()
	}
	var reasons []string
	for _, w := range slices.Sorted(maps.Keys(why)) {
		reasons = append(reasons, fmt.Sprintf("%d %s", why[w], w))
	}
	if len(reasons) > 0 {
		reasons = []string{strings.Join(reasons, ", ")}
	}
	clock := "not in step"
	if r.GetClock().GetSynchronized() {
		clock = "±" + brief(r.GetClock().GetBound().AsDuration())
	}
	skew := "–"
	var most time.Duration
	for _, p := range m.GetPeers() {
		if p.GetSkew() != nil {
			most = max(most, p.GetSkew().AsDuration().Abs())
			skew = brief(most)
		}
	}
	late, round := lateness(m)
	figure := func(name, value, means string, about ...string) Figure {
		return Figure{name, value, means, strings.Join(append([]string{means}, about...), ": ")}
	}
	return []Figure{
		figure("links", fmt.Sprintf("%d of %d", up, others), "connections of the node to the others"),
		figure("view", view, "the view of the group that the node installed last"),
		figure("position", prose.Number(position), "the position of the last delivery"),
		figure("decided", prose.Number(decided), "agreements that are finished at the node"),
		figure("abstained", prose.Number(abstained), "agreements from which the node abstained because it was late"),
		figure("late", late, "how late the operating system woke the node (99.9th percentile)", round...),
		figure("clock", clock, "the bound of the error of the node's synchronized clock"),
		figure("skew", skew, "the largest difference between the clock of the node and that of another one"),
		figure("refused", prose.Number(refused), "messages that the node refused, by reason", reasons...),
	}
}

// lateness returns how late a node woke up, and with what that compares; empty if it is unknown.
func lateness(m *parleyv1.MeasureResponse) (late string, round []string) {
	late = "–"
	if m.GetWake() != nil {
		late = brief(m.GetWake().GetP999().AsDuration())
	}
	if d := m.GetRound().AsDuration(); d > 0 {
		round = []string{"a round takes " + brief(d)}
	}
	return late, round
}

// links adds the links between all pairs of nodes.
func (f *facts) links(out []Link) []Link {
	for a := range f.nodes {
		for b := a + 1; b < len(f.nodes); b++ {
			one := Link{A: f.nodes[a].Name, B: f.nodes[b].Name, State: "down"}
			if f.connected(a, b) && f.connected(b, a) {
				one.State = "up"
			}
			if f.isCut(a, b) {
				one.State = "cut"
			}
			out = append(out, one)
		}
	}
	return out
}

func (f *facts) isCut(a, b int) bool {
	return slices.ContainsFunc(f.cuts, func(c cut) bool { return c.a == a && c.b == b && c.until.IsZero() })
}

// connected reports whether a node is connected to another one, as far as it answers. If it does not, the other one's
// answer counts. A link is down if neither answers.
func (f *facts) connected(a, b int) bool {
	if n := f.nodes[a]; n.managed && !n.alive {
		return false
	}
	if !f.found[a].heard() {
		a, b = b, a
	}
	r := f.found[a]
	return r.heard() && slices.ContainsFunc(r.status.GetMembers(), func(m *parleyv1.MemberStatus) bool {
		return m.GetName() == f.nodes[b].Name && m.GetConnected()
	})
}

// missing says which events the picture lacks, and why.
func (f *facts) missing() string {
	for i, one := range f.found {
		if one.asked && one.err == nil && one.partly != nil {
			return fmt.Sprintf("The picture lacks the latest events of %s: %v", f.nodes[i].Name,
				client.Said(f.nodes[i].Node, one.partly))
		}
	}
	return ""
}

// scenery returns what the picture shows.
func (f *facts) scenery(nodes []Node) *scenery {
	s := &scenery{cuts: f.cuts, began: f.began, until: reach(f.found, f.now)}
	for i, n := range nodes {
		s.names = append(s.names, n.Name)
		s.lanes = append(s.lanes, draw.Lane{State: n.State, Bad: n.Bad})
		s.tails = append(s.tails, f.found[i].tail)
		s.marks = append(s.marks, f.nodes[i].marks)
	}
	return s
}

// duration formats a time in minutes and seconds.
func duration(d time.Duration) string {
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// brief formats a short time.
func brief(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.2f ms", float64(d)/1e6)
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
