package engine

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"parley"
	"parley/internal/draw"
	"parley/internal/draw/queues"
	"parley/internal/draw/reading"
	"parley/internal/draw/scene"
	"parley/internal/draw/svg"
	"parley/internal/form"
	"parley/internal/input"
	"parley/internal/lab/traitor"
	"parley/internal/merged"
	"parley/internal/naming"
	"parley/internal/report"
	"parley/internal/scenario"
	"parley/trace"
)

// made is a run with what is known of it.
type made struct {
	form.Run
	log      *trace.Log
	facts    trace.Facts
	tree     func(parley.ID) parley.Tree // nil: replay the log
	recorded bool                        // no simulation makes it again
	file     string                      // of the trace, if that is known
	of       cluster                     // the nodes whose traces it was merged from; nil: none
	report   *report.Report
	view     *report.View
	style    reading.Style
	events   []trace.Event
	waits    func() []reading.WaitSpan
	drawn    drawing
	others   others // other runs, which look the same to a process
}

// newMade describes a run. Without a report, it derives one.
func newMade(r form.Run, log *trace.Log, facts trace.Facts, tree func(parley.ID) parley.Tree, known *report.Report,
) (m *made, err error) {
	m = &made{Run: r, log: log, facts: facts, tree: tree, events: log.Events, style: r.Style(0)}
	m.drawn = drawingOf(r.Protocol, m.events, facts)
	if m.report = known; known == nil {
		m.report = report.New(r, log, facts)
	}
	m.waits = sync.OnceValue(func() []reading.WaitSpan {
		if m.of != nil { // the traces do not say how the machines were configured
			return nil
		}
		spans := report.Waits(r, log, facts, m.view.Style().Faulty)
		for i := range spans {
			s := &spans[i]
			s.Begins, s.Ends = m.drawn.timeOf(s.Since), m.drawn.timeOf(s.Until)
		}
		return spans
	})
	m.view, err = m.viewOf("")
	return m, err
}

// words describes events of the run.
func (m *made) words() reading.Words {
	style := m.style
	style.Width = 1 << 12
	return reading.Words{Style: style, Protocol: m.Protocol}
}

// RunAnswer is the answer to "run": what the run was, how it ended, and what else can be asked about it.
type RunAnswer struct {
	Report    *report.Report `json:"report"`
	Command   string         `json:"command"` // repeats the run in a shell
	Processes []Process      `json:"processes"`
	Plan      []string       `json:"plan"`     // what happens to processes and links, in words
	Promised  bool           `json:"promised"` // n and m are within the bound of the protocol
	Bound     string         `json:"bound"`    // the bound with its numbers, or why they break it
	Rounds    []RoundSpan    `json:"rounds"`   // empty if the protocol has none
	Times     []TimeSpan     `json:"times"`    // when the events happened
	Stepped   bool           `json:"stepped"`  // times are the numbers of steps: only their order counts
	// Unrepeatable is why the command may make another run, or "".
	Unrepeatable string         `json:"unrepeatable,omitempty"`
	Pictures     []string       `json:"pictures"`        // the names of pictures, from top to bottom
	Owner        string         `json:"owner,omitempty"` // whose information tree is shown first
	Owners       []string       `json:"owners"`          // who else has one
	Nodes        *merged.Answer `json:"nodes,omitempty"` // of a run that was merged from the traces of nodes
}

// Process is a process of a run.
type Process struct {
	Name     string `json:"name"`
	Ref      string `json:"ref"`
	Faulty   bool   `json:"faulty"`   // nothing is promised of it
	Behavior string `json:"behavior"` // of a process that is faulty from the beginning
	Source   bool   `json:"source"`   // it proposes a value
	Decides  string `json:"decides"`  // empty: nothing
	Decided  uint64 `json:"decided"`  // the event of its decision
}

// RoundSpan is a round with its first and its last event.
type RoundSpan struct {
	Number int    `json:"number"`
	Title  string `json:"title"`
	First  uint64 `json:"first"`
	Last   uint64 `json:"last"`
}

// TimeSpan says that the events from one on happened at a time, in ticks or steps.
type TimeSpan struct {
	First uint64      `json:"first"`
	Time  parley.Tick `json:"time"`
}

func (m *made) answer(_ aboutRun) (any, error) {
	a := RunAnswer{
		Report: m.report, Command: m.command(),
		Plan:   append(m.Crashing(), m.Plan.Describe(m.Names.Full)...),
		Rounds: m.roundSpans(), Times: m.drawn.times(), Stepped: m.drawn.stepped,
		Pictures: m.pictures(), Owners: []string{}, Processes: m.processes(),
	}
	a.Promised, a.Bound = boundOf(m.Protocol)
	if m.report.Unrepeatable {
		a.Unrepeatable = report.Unrepeatable("This run")
	}
	if m.of != nil {
		a.Nodes = m.of.answer()
	}
	if owner, ok := m.view.Owner(); ok {
		a.Owner = m.Names.Full(owner)
		for id := range parley.ID(m.Protocol.N) {
			if !m.Liars().Has(id) {
				a.Owners = append(a.Owners, m.Names.Full(id))
			}
		}
	}
	return a, nil
}

// command returns a command line that shows the run again. No seed repeats a recorded run, so its trace is named.
func (m *made) command() string {
	if m.of != nil {
		return m.of.command()
	}
	if m.recorded {
		return input.Program + " trace show " + input.Quote(cmp.Or(m.file, m.Protocol.Name+".jsonl"))
	}
	return input.Command("", m.Args, 1<<16)
}

// boundOf reports whether n and m are within the bound of a protocol, and why not.
func boundOf(p parley.Protocol) (within bool, why string) {
	if p.Bound == nil {
		return true, ""
	}
	if err := p.Bound(p.N, p.M); err != nil {
		return false, err.Error()
	}
	return true, ""
}

func (m *made) processes() (all []Process) {
	faulty := m.view.Style().Faulty
	for _, o := range m.view.Outcomes() {
		p := Process{
			Name: m.Names.Full(o.Process), Ref: scene.Process(o.Process), Faulty: faulty.Has(o.Process),
			Behavior: m.view.Behavior(o.Process), Source: m.Protocol.Proposers.Has(o.Process), Decided: o.Decided,
		}
		if o.Decides != nil {
			p.Decides = parley.Printable(o.Decides)
		}
		all = append(all, p)
	}
	return all
}

// roundSpans returns the rounds. A round ends where the next one begins, and the last one ends with the run.
func (m *made) roundSpans() []RoundSpan {
	spans := []RoundSpan{}
	if m.Protocol.Timing != parley.Synchronous || m.Protocol.OnDemand {
		return spans
	}
	for _, e := range m.events {
		round, is := reading.RoundOf(m.Protocol, e)
		if !is || len(spans) > 0 && round <= spans[len(spans)-1].Number {
			continue
		}
		if len(spans) > 0 {
			spans[len(spans)-1].Last = e.ID - 1
		}
		spans = append(spans, RoundSpan{Number: round, First: e.ID})
	}
	if len(spans) > 0 {
		spans[0].First, spans[len(spans)-1].Last = 1, m.log.Len()
	}
	return spans
}

// pictures returns the names of the pictures, each once.
func (m *made) pictures() []string {
	names := slices.Compact(m.drawn.of(m.view).Pictures())
	if queuesOf(m).Empty() {
		return names
	}
	at := slices.IndexFunc(names, func(name string) bool {
		return name == draw.RoundsPicture || name == draw.SpaceTimePicture
	})
	if at < 0 {
		at = len(names)
	}
	return slices.Insert(names, at, waitingPicture)
}

// waitingPicture is the name of the picture of what processes wait for.
const waitingPicture = "waiting"

// queuesOf returns what processes wait for.
func queuesOf(m *made) queues.Queues {
	q := queues.Queues{Style: m.view.Style(), N: m.Protocol.N, Spans: m.waits(), Unit: "ticks"}
	if m.drawn.stepped {
		q.Unit = "steps"
	}
	q.Order, _ = reading.Sequence(m.Protocol, m.drawn.events, q.Style)
	stages, _ := reading.StagesOf(m.Protocol, m.drawn.events, q.Style)
	q.Changed, q.Over = stages.Changed, m.drawn.timeOf(uint64(len(m.drawn.events)))
	return q
}

// PictureAnswer is the answer to "picture": an SVG element without style.
type PictureAnswer struct {
	SVG string `json:"svg"`
}

func (m *made) picture(q struct {
	aboutRun
	Name string `json:"name"`         // one of RunAnswer.Pictures
	Of   string `json:"of,omitempty"` // the process whose tree is drawn
}) (any, error) {
	d := m.drawn.of(m.view)
	if q.Of != "" && q.Name == draw.TreePicture {
		v, err := m.viewOf(q.Of)
		if err != nil {
			return nil, err
		}
		d = m.drawn.of(v)
	}
	if q.Name == waitingPicture && !queuesOf(m).Empty() {
		return PictureAnswer{string(svg.Page(queuesOf(m).Scene(), q.Name))}, nil
	}
	if !slices.Contains(d.Pictures(), q.Name) {
		return PictureAnswer{}, nil
	}
	return PictureAnswer{string(svg.Page(d.Picture(q.Name), q.Name))}, nil
}

// Table is what was sent in one round: a row for each receiver, a column for each sender.
type Table struct {
	Round     int       `json:"round"`
	Senders   []Process `json:"senders"`
	Receivers []Process `json:"receivers"`
	Cells     [][]Cell  `json:"cells"` // by receiver, then by sender
	// Reading explains one row of the table in words; empty if rows are not values with paths.
	Reading string `json:"reading,omitempty"`
}

// Cell is what one process sent to another one in a round.
type Cell struct {
	Rows  []string  `json:"rows"`  // the first of them
	Total uint64    `json:"total"` // 0: nothing was sent
	Ink   scene.Ink `json:"ink"`   // the color of the value, if it is a single one
	Lie   bool      `json:"lie"`
	// Honest are the rows that an honest process would send instead of a lie, if they are known.
	Honest []string `json:"honest,omitempty"`
	Fate   string   `json:"fate,omitempty"` // of a message that did not arrive in time
	Ref    string   `json:"ref"`
	Since  uint64   `json:"since"` // the event that sent it
	Until  uint64   `json:"until"` // the event of its arrival; 0: none
}

// TablesAnswer is the answer to "tables": the article's Table 1 for every round of a run.
type TablesAnswer struct {
	Tables []Table `json:"tables"`
}

func (m *made) tables(_ aboutRun) (any, error) {
	a := TablesAnswer{Tables: []Table{}}
	if m.Protocol.Timing != parley.Synchronous {
		return a, nil
	}
	rounds := m.view.Rounds()
	honest := make(map[traitor.Sending][]string)
	if !m.recorded {
		if rows, hash := traitor.Honest(m.Run); hash == m.log.Hash() {
			honest = rows
		}
	}
	inks := scene.NewPalette(valuesOf(rounds))
	processes := m.processes()
	for _, r := range rounds {
		var from, to parley.Set
		for _, s := range r.Said {
			from.Add(s.From)
			for _, id := range s.To {
				to.Add(id)
			}
		}
		t := Table{Round: r.Number}
		at := make(map[[2]parley.ID]*Cell)
		for id := range to.All() {
			t.Receivers = append(t.Receivers, processes[id])
			row := make([]Cell, from.Len())
			i := 0
			for sender := range from.All() {
				row[i] = Cell{Rows: []string{}, Ref: scene.Message(r.Number, sender, id)}
				at[[2]parley.ID{sender, id}] = &row[i]
				i++
			}
			t.Cells = append(t.Cells, row)
		}
		for id := range from.All() {
			t.Senders = append(t.Senders, processes[id])
		}
		for _, s := range r.Said {
			for _, id := range s.To {
				c := at[[2]parley.ID{s.From, id}]
				c.Rows, c.Total, c.Lie = append(c.Rows, s.Rows...), s.Total, s.Lie
				if c.Lie {
					c.Honest = firstRows(honest[traitor.Sending{Round: r.Number, From: s.From, To: id}])
				}
				c.Ink, c.Since, c.Until = inks.Of(s.Values.One()), s.Spans[id].Since, s.Spans[id].Until
				if s.Fate != reading.Arrives {
					c.Fate = s.Fate.String() + " " + m.Names.Full(id)
				}
			}
		}
		if m.Protocol.Tree != nil {
			t.Reading = readingOf(t.Cells, m.Names)
		}
		a.Tables = append(a.Tables, t)
	}
	return a, nil
}

// readingOf explains the first row of a table that has a path.
func readingOf(cells [][]Cell, names naming.Names) string {
	for _, c := range slices.Concat(cells...) {
		for _, row := range c.Rows {
			_, pair, ok := strings.Cut(row, "{")
			pair, closed := strings.CutSuffix(pair, "}")
			value, steps, paired := strings.Cut(pair, ",")
			if !ok || !closed || !paired || strings.ContainsAny(steps, ",{}") {
				continue
			}
			path := strings.Split(steps, ".")
			if len(path) == 1 {
				path = strings.Split(steps, "")
			}
			text := "the value is " + value
			for _, step := range path {
				id, err := names.Parse(step, parley.MaxProcesses)
				if err != nil {
					return ""
				}
				text = names.Full(id) + " says that " + text
			}
			return row + " means: " + text + "."
		}
	}
	return ""
}

// mostRows is how many rows of a message are shown.
const mostRows = 12

func firstRows(rows []string) []string { return rows[:min(len(rows), mostRows)] }

func valuesOf(rounds []reading.Round) (values []string) {
	for _, r := range rounds {
		for _, s := range r.Said {
			for _, v := range s.Values {
				values = append(values, v.Value)
			}
		}
	}
	return values
}

// refOf returns the reference by which pictures and tables show an event.
func (m *made) refOf(e trace.Event) string {
	if m.Protocol.Timing != parley.Synchronous {
		return scene.Event(e.ID)
	}
	switch e.Op {
	case trace.Send:
		round, _ := reading.RoundOf(m.Protocol, e)
		if e.Peer == parley.All {
			return scene.Sender(round, e.At)
		}
		return scene.Message(round, e.At, e.Peer)
	case trace.Receive, trace.Lose:
		if e.Cause == 0 || e.Cause > uint64(len(m.events)) {
			break
		}
		round, is := reading.RoundOf(m.Protocol, m.events[e.Cause-1])
		if is {
			return scene.Message(round, e.Peer, e.At)
		}
	}
	return scene.Process(e.At)
}

func (m *made) vote(q struct {
	aboutRun
	Ref string `json:"ref"` // of the node, as in P2/1.5
}) (any, error) {
	of, path, err := nodeOf(m.Protocol, q.Ref)
	if err != nil {
		return nil, err
	}
	v, err := m.viewOf(m.Names.Full(of))
	if err != nil {
		return nil, err
	}
	return voteOf(v, m.Run, of, path), nil
}

// viewOf returns the view with the information tree of a process.
func (m *made) viewOf(of string) (*report.View, error) {
	return report.NewView(m.report, m.log, report.Options{Rows: mostRows, Tree: of}, 0, m.tree)
}

// ExportAnswer is the answer to "export": a file.
type ExportAnswer struct {
	Name string `json:"name"`
	Type string `json:"type"` // the media type
	Text string `json:"text"`
}

func (m *made) export(q struct {
	aboutRun
	Form string `json:"form"` // svg, trace, scenario or command
}) (any, error) {
	name := m.Protocol.Name
	switch q.Form {
	case "svg":
		return ExportAnswer{name + ".svg", "image/svg+xml", string(m.view.SVG())}, nil
	case "trace":
		if m.of != nil {
			return m.of.export()
		}
		var b bytes.Buffer
		if err := trace.Write(&b, m.Header(m.facts), m.log); err != nil {
			return nil, err
		}
		return ExportAnswer{name + ".jsonl", "application/jsonl", b.String()}, nil
	case "scenario":
		if m.recorded {
			return nil, errors.New("no scenario repeats a recorded run: export its trace")
		}
		return ExportAnswer{name + ".yaml", "application/yaml", m.scenario()}, nil
	}
	return nil, fmt.Errorf("a run cannot be exported as %.20q: allowed are svg, trace and scenario", q.Form)
}

// scenario writes the arguments of the run as a scenario file.
func (m *made) scenario() string {
	var b strings.Builder
	fmt.Fprintf(&b, "protocol: %s\n", m.Args[0])
	for _, arg := range m.Args[1:] {
		key, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		fmt.Fprintf(&b, "%s: %s\n", key, yamlValue(key, value))
	}
	return b.String()
}

// words are texts that YAML does not read as texts.
var words = []string{"null", "true", "false", "yes", "no", "on", "off"}

// yamlValue writes the value of a flag as a value in YAML.
func yamlValue(key, value string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_.-=@", c)
	}
	switch {
	case slices.Contains(scenario.Keys, key): // it is YAML already
		return value
	case value != "" && !strings.ContainsFunc(value, func(c rune) bool { return !plain(c) }) &&
		!strings.ContainsAny(value[:1], "_.-=@") && !slices.Contains(words, strings.ToLower(value)):
		return value
	}
	return strconv.Quote(value)
}
