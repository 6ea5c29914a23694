package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"parley"
	"parley/internal/draw/scene"
	"parley/internal/lab/likeness"
	"parley/internal/lists"
	"parley/run"
	"parley/sim"
	"parley/trace"
)

// KnowledgeAnswer is the answer to "knowledge": what one process sees of a run up to an event, and which other runs
// look the same to it up to there.
type KnowledgeAnswer struct {
	Of    string   `json:"of"`
	Ref   string   `json:"ref"`
	Seen  int      `json:"seen"`  // the number of events that it has seen
	Marks []string `json:"marks"` // the references under which pictures and tables show what it sees of the whole run
	// Why says why no other runs can be made.
	Why   string  `json:"why,omitempty"`
	Tried int     `json:"tried"` // the number of other runs that were made
	Left  int     `json:"left"`  // the number of others that were not made
	Other int     `json:"other"` // of those that were made, how many differ from this run and from each other
	Same  int     `json:"same"`  // of these, how many look the same up to the event
	Runs  []Alike `json:"runs"`  // these, or the first of them
	// Open are questions that the process cannot answer at the event: two of the runs answer them differently.
	Open []string `json:"open"`
	// Model is set if a search can prove more: for runs in which processes lie as they like.
	Model *Model `json:"model,omitempty"`
}

// Alike is another run that looks the same to a process.
type Alike struct {
	Says    []string          `json:"says"`  // how it differs from the run
	Flags   map[string]string `json:"flags"` // the same for the form
	Until   uint64            `json:"until"` // the first event of the run that looks different to the process; 0: none
	Decides []Outcome         `json:"decides"`
	Broken  []string          `json:"broken"`
}

// trial is another run that was made.
type trial struct {
	Alike
	faulty parley.Set
	values map[parley.ID]string
}

// trials are the other runs that were made for one process of a run.
type trials struct {
	runs []trial // which differ to some process, or in who is faulty
	made int
	left int
	why  string
}

// others remembers trials by process.
type others struct {
	sync.Mutex
	known map[parley.ID]*trials
}

// Limits of trials. They do not depend on the time, because an answer must not.
const (
	mostTried       = 240
	mostTriedEvents = 120_000
	mostAlike       = 40
)

// knowing answers what a process knows.
func knowing(ctx context.Context, e *Engine, b []byte, progress func([]byte)) (any, error) {
	var q struct {
		aboutRun
		Of string `json:"of"`
		At uint64 `json:"at"`
	}
	if err := read(b, &q); err != nil {
		return nil, err
	}
	m, err := e.of(q.Setting)
	if err != nil {
		return nil, err
	}
	of, err := m.Names.Parse(q.Of, m.Protocol.N)
	if err != nil {
		return nil, err
	}
	if m.Liars().Has(of) {
		return nil, fmt.Errorf("%s is faulty, and may know whatever another faulty process knows: choose a correct process",
			m.Names.Full(of))
	}
	o := observer{m, e, q.Setting, of, likeness.Of(m.Protocol, m.events, of)}
	a := KnowledgeAnswer{
		Of: m.Names.Full(of), Ref: scene.Process(of), Marks: o.marks(), Runs: []Alike{}, Open: []string{},
	}
	for _, event := range o.sight.Events() {
		if event <= q.At {
			a.Seen++
		}
	}
	t, err := o.tried(ctx, progress)
	if err != nil {
		return nil, err
	}
	a.Why, a.Tried, a.Left, a.Other = t.why, t.made, t.left, len(t.runs)
	here := []trial{{faulty: m.Down(), values: o.proposed()}}
	for _, one := range t.runs {
		if one.Until > 0 && one.Until <= q.At {
			continue
		}
		here = append(here, one)
		if a.Same++; len(a.Runs) < mostAlike {
			a.Runs = append(a.Runs, one.Alike)
		}
	}
	a.Open = o.open(here)
	a.Model = o.pairsModel()
	return a, nil
}

// observer is a process of a run, of which it sees a part.
type observer struct {
	*made
	engine  *Engine
	setting Setting
	of      parley.ID
	sight   likeness.Sight
}

// tried makes other runs for the process, once.
func (m *observer) tried(ctx context.Context, progress func([]byte)) (*trials, error) {
	m.others.Lock()
	defer m.others.Unlock()
	if t := m.others.known[m.of]; t != nil {
		return t, nil
	}
	t := &trials{}
	if m.recorded {
		t.why = "The run is recorded. Other runs can only be made from settings."
	} else if err := t.try(ctx, m, progress); err != nil {
		return nil, err
	}
	if m.others.known == nil {
		m.others.known = make(map[parley.ID]*trials)
	}
	m.others.known[m.of] = t
	return t, nil
}

// try makes the runs. Those that look the same longest come first, and of these, those with other faulty processes.
func (t *trials) try(ctx context.Context, m *observer, progress func([]byte)) error {
	kind := func(events []trace.Event, faulty parley.Set) string {
		return fmt.Sprint(faulty) + likeness.Fingerprint(m.Protocol, events)
	}
	known := map[string]bool{kind(m.events, m.Down()): true}
	proposed := likeness.Others(m.Run, m.of, m.alphabet())
	events := uint64(0)
	for i, o := range proposed {
		if t.made == mostTried || events > mostTriedEvents {
			t.left = len(proposed) - i
			break
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if progress != nil && i%10 == 0 {
			b, err := json.Marshal(struct {
				Tried int `json:"tried"`
			}{t.made})
			if err != nil {
				return err
			}
			progress(b)
		}
		r, err := m.other(o.Flags)
		if err != nil {
			continue // the settings do not fit together
		}
		t.made++
		events += r.Log.Len()
		if k := kind(r.Log.Events, r.Spec.Down()); !known[k] {
			known[k] = true
			t.runs = append(t.runs, m.trial(r, o))
		}
	}
	same := func(t trial) int { // those with other faulty processes say most
		if t.faulty == m.Down() {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(t.runs, func(a, b trial) int {
		last := func(t trial) uint64 { return t.Until - 1 } // 0 becomes the greatest
		switch x, y := last(a), last(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return cmp.Or(same(a)-same(b), len(a.Says)-len(b.Says))
	})
	return nil
}

// other makes a run with other flags, and with the keys of the first one: what a signature looks like says nothing.
func (m *observer) other(flags map[string]string) (*run.Result, error) {
	s := m.setting
	set := maps.Clone(s.Flags)
	if set == nil {
		set = make(map[string]string)
	}
	maps.Copy(set, flags)
	s.Flags = set
	f, _, err := m.engine.filled(s)
	if err != nil {
		return nil, err
	}
	setup, err := f.Setup()
	if err != nil {
		return nil, err
	}
	signer := m.Signer()
	setup.Sign = func(uint64) sim.Signer { return signer }
	if setup.Plan.Steps == 0 || setup.Plan.Steps > mostSteps {
		setup.Plan.Steps = mostSteps
	}
	return setup.Simulate()
}

// trial describes another run.
func (m *observer) trial(r *run.Result, o likeness.Other) trial {
	t := trial{Alike: Alike{Says: o.Says, Flags: o.Flags, Decides: []Outcome{}, Broken: []string{}}}
	p := likeness.Compare(m.sight, likeness.Of(r.Spec.Protocol, r.Log.Events, m.of))
	t.Until = p.A // 0 also if the process sees more of the other run: so far it sees the same
	t.faulty, t.values = r.Spec.Down(), make(map[parley.ID]string)
	for id, v := range r.Spec.Values { // order: a map again
		t.values[id] = string(v)
	}
	decided := make(map[parley.ID]string)
	for _, d := range r.History.Deliveries {
		if d.Msg.Kind == parley.Decide {
			decided[d.At] = parley.Printable(d.Msg.Body)
		}
	}
	for id := range parley.ID(m.Protocol.N) {
		if !t.faulty.Has(id) {
			t.Decides = append(t.Decides, Outcome{m.Names.Full(id), decided[id]})
		}
	}
	for _, v := range r.Judge() {
		if v.Broken != nil && v.Property.Mode != parley.Sometimes {
			t.Broken = append(t.Broken, v.Property.Name)
		}
	}
	return t
}

// alphabet returns the values that processes could propose: those of the run, and those that liars send.
func (m *observer) alphabet() []string {
	var all []string
	for _, v := range m.proposed() { // order: they are sorted
		all = append(all, v)
	}
	other := []string{"0", "1"}
	for _, arg := range m.Args[1:] {
		if list, is := strings.CutPrefix(arg, "--alphabet="); is && list != "" {
			other = strings.Split(list, ",")
		}
	}
	if slices.Contains(all, "yes") || slices.Contains(all, "no") {
		other = []string{"yes", "no"}
	}
	all = append(all, other...)
	slices.Sort(all)
	return slices.Compact(all)
}

// proposed returns the values that processes propose.
func (m *observer) proposed() map[parley.ID]string {
	all := make(map[parley.ID]string)
	for id, v := range m.Values { // order: a map again
		all[id] = string(v)
	}
	return all
}

// open returns the questions that runs which look the same to a process answer differently. The first one is the run
// itself.
func (m *observer) open(runs []trial) []string {
	of := m.of
	all := []string{}
	var whether []string
	for id := range parley.ID(m.Protocol.N) {
		if id != of && slices.ContainsFunc(runs, func(t trial) bool { return t.faulty.Has(id) != runs[0].faulty.Has(id) }) {
			whether = append(whether, m.Names.Full(id))
		}
	}
	switch len(whether) {
	case 0:
	case 1:
		all = append(all, "whether "+whether[0]+" is faulty")
	default:
		last := len(whether) - 1
		all = append(all, "which of "+strings.Join(whether[:last], ", ")+" and "+whether[last]+" are faulty")
	}
	for id := range m.Protocol.Proposers.All() {
		if id == of {
			continue
		}
		var values []string
		for _, t := range runs {
			if v := parley.Printable([]byte(t.values[id])); !t.faulty.Has(id) && !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
		if len(values) > 1 {
			all = append(all, "what "+m.Names.Full(id)+" proposes: "+strings.Join(values, " or "))
		}
	}
	for id := range parley.ID(m.Protocol.N) {
		name := m.Names.Full(id)
		var values []string
		for _, t := range runs[1:] {
			for _, d := range t.Decides {
				if d.Name == name && !slices.Contains(values, d.Decides) {
					values = append(values, d.Decides)
				}
			}
		}
		if d := m.report.Decisions[name]; len(values) > 0 && !runs[0].faulty.Has(id) && !slices.Contains(values, d) {
			values = append([]string{d}, values...)
		}
		if len(values) > 1 {
			all = append(all, "what "+name+" decides: "+strings.Join(lists.Of(values, quoted), " or "))
		}
	}
	return all
}

// marks returns the references of what a process sees.
func (m *observer) marks() []string {
	marks := make(map[string]bool)
	add := func(e trace.Event) { marks[m.refOf(e)], marks[scene.Event(e.ID)] = true, true }
	for _, event := range m.sight.Events() {
		e := m.events[event-1]
		add(e)
		if e.Op == trace.Send && e.Peer == parley.All { // one message to each
			for to := range parley.ID(m.Protocol.N) {
				marks[m.refOf(trace.Event{ID: e.ID, Op: e.Op, At: e.At, Peer: to, Path: e.Path, Msg: e.Msg})] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(marks))
}

// mostPaired is the largest number of processes for which a search for runs that look the same is proposed.
const mostPaired = 5

// pairsModel returns the search for runs in which processes lie as they like and that look the same to a process, or
// nil if the protocol has none.
func (m *observer) pairsModel() *Model {
	model := Model{m.Protocol.Name, map[string]string{"n": strconv.Itoa(m.Protocol.N), "m": strconv.Itoa(m.Protocol.M)}}
	_, fs, err := Model{Protocol: m.Protocol.Name}.flagsOf(m.engine.protocols)
	if err != nil || m.recorded || m.Protocol.N > mostPaired || fs.Lookup("n") == nil || fs.Lookup("m") == nil {
		return nil
	}
	for _, arg := range m.Args[1:] {
		name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if fs.Lookup(name) != nil && groupOf(name) == "protocol" || name == "beyond-bound" {
			model.Flags[name] = value
		}
	}
	if _, _, err := model.pairing().search(m.engine.protocols); err != nil {
		return nil
	}
	return &model
}
