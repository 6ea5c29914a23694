package om_test

import (
	"maps"
	"testing"

	"parley"
	"parley/agreement/om"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
)

// run lets the source propose the value while the faulty processes behave as
// they are given.
func run(
	p parley.Protocol, source parley.ID, value string, seed uint64, how map[parley.ID]faulty.Behaviour,
) *sim.Sim {
	return sim.Run(sim.Options{
		Protocol: p, Faulty: how, Seed: seed, Measure: true,
		Requests: []sim.Request{{At: source, Msg: parley.Msg{Kind: parley.Propose, Body: []byte(value)}}},
	})
}

// told is OM(m) in which the faulty processes tell correct ones what say says.
func told(c om.Config, say om.Say) parley.Protocol {
	p := om.Rounds(c)
	p.Lies = om.Tell(c, say)
	return lockstep.Of(p, lockstep.Simulated)
}

func scripted(liars ...parley.ID) map[parley.ID]faulty.Behaviour {
	how := make(map[parley.ID]faulty.Behaviour)
	for _, id := range liars {
		how[id] = faulty.Script
	}
	return how
}

// line is one message of a faulty process: what the last of the path says to
// one receiver. An empty value stands for silence.
type line struct {
	path  string // a digit a process, the source first
	to    parley.ID
	value string
}

// script is an adversary that says its lines and nothing else.
func script(lines ...line) om.Say {
	return func(path []parley.ID, to parley.ID, _ []byte) []byte {
		for _, l := range lines {
			if l.path == problem.PathText(path, 5, parley.ID.String) && l.to == to && l.value != "" {
				return []byte(l.value)
			}
		}
		return nil
	}
}

// scene is a run of OM(m) from source p0 with value 1 and default 0.
type scene struct {
	n, m   int
	faulty []parley.ID
	lines  []line
	// votes are those of step 3 by receiver: its own value first, then what it
	// has from the others in order, as the slides print them.
	votes     map[parley.ID]string
	decisions map[parley.ID]string
}

func (sc scene) play(t *testing.T) (p parley.Protocol, agreement, validity error) {
	t.Helper()
	c := om.Config{N: sc.n, M: sc.m, Default: []byte("0")}
	p = told(c, script(sc.lines...))
	s := run(p, 0, "1", 1, scripted(sc.faulty...))
	decisions := make(map[parley.ID]string)
	for id, v := range problem.Decisions(&s.History) {
		if id != 0 {
			decisions[id] = string(v)
		}
	}
	if !maps.Equal(decisions, sc.decisions) {
		t.Errorf("decisions %v, expected %v", decisions, sc.decisions)
	}
	for id, votes := range sc.votes {
		if got := votesOf(p.Tree(s.Machine(id))); got != votes {
			t.Errorf("p%d received {%s}, expected {%s}", id, got, votes)
		}
	}
	if len(s.Stats.Refused) != 0 {
		t.Errorf("refused: %v", s.Stats.Refused)
	}
	a := parley.Assumptions{N: sc.n, M: sc.m, Faulty: len(sc.faulty)}
	for _, v := range parley.Judge(p, a, &s.History) {
		if v.Violated() {
			t.Errorf("%s is promised: %v", v.Property.Name, v.Broken)
		}
		switch v.Property.Name {
		case problem.Agreement:
			agreement = v.Broken
		case problem.Validity:
			validity = v.Broken
		}
	}
	return p, agreement, validity
}

// votesOf returns the votes at the root of a tree: the own value and the
// results of the others.
func votesOf(tree parley.Tree) string {
	own, _, children := tree.Node(tree.Root())
	votes := string(own)
	for _, j := range children {
		_, out, _ := tree.Node(append(tree.Root(), j))
		votes += string(out)
	}
	return votes
}

// Slide "Oral Messages Algorithm OM(m): An Example": p2 is faulty and sends 1
// to p1 and 0 to p3. (The vector printed for p2 itself means nothing.)
func TestLectureExampleFaultyLieutenant(t *testing.T) {
	_, agreement, validity := scene{
		n: 4, m: 1, faulty: []parley.ID{2},
		lines:     []line{{"02", 1, "1"}, {"02", 3, "0"}},
		votes:     map[parley.ID]string{1: "111", 3: "110"},
		decisions: map[parley.ID]string{1: "1", 3: "1"},
	}.play(t)
	if agreement != nil || validity != nil {
		t.Error("both conditions are satisfied, says the slide:", agreement, validity)
	}
}

// Slide "Oral Messages Algorithm OM(m): An Example (cont.)": p0 is faulty and
// sends 1, 0, 1, which is what the printed vectors show, own value first.
func TestLectureExampleFaultySource(t *testing.T) {
	_, agreement, _ := scene{
		n: 4, m: 1, faulty: []parley.ID{0},
		lines:     []line{{"0", 1, "1"}, {"0", 2, "0"}, {"0", 3, "1"}},
		votes:     map[parley.ID]string{1: "101", 2: "011", 3: "110"},
		decisions: map[parley.ID]string{1: "1", 2: "1", 3: "1"},
	}.play(t)
	if agreement != nil {
		t.Error("the slide has all decide on 1:", agreement)
	}
}

// Slide "Impossibility Results", first case: p2 is faulty and says 0. The votes
// tie, the default decides, and the correct source's value is lost.
func TestLectureImpossibilityCaseOne(t *testing.T) {
	p, agreement, validity := scene{
		n: 3, m: 1, faulty: []parley.ID{2},
		lines:     []line{{"02", 1, "0"}},
		votes:     map[parley.ID]string{1: "10"},
		decisions: map[parley.ID]string{1: "0"},
	}.play(t)
	if validity == nil || agreement != nil {
		t.Error("validity, and it alone, must break:", validity, agreement)
	}
	if p.Bound(3, 1) == nil || p.Bound(4, 1) != nil {
		t.Error("n = 3, m = 1 is beyond the bound and n = 4 is not")
	}
}

// Slide "Impossibility Results", second case: p0 is faulty and sends 1 and 0.
// p1 holds the very votes it held in the first case, which is the argument.
func TestLectureImpossibilityCaseTwo(t *testing.T) {
	_, agreement, _ := scene{
		n: 3, m: 1, faulty: []parley.ID{0},
		lines:     []line{{"0", 1, "1"}, {"0", 2, "0"}},
		votes:     map[parley.ID]string{1: "10", 2: "01"},
		decisions: map[parley.ID]string{1: "0", 2: "0"},
	}.play(t)
	if agreement != nil {
		t.Error("two lieutenants with the same two votes agree:", agreement)
	}
}

// Slide "Algorithm OM(0)", step 2: who receives no value uses the default.
func TestLectureOM0Default(t *testing.T) {
	_, agreement, _ := scene{
		n: 3, m: 0, faulty: []parley.ID{0},
		lines:     []line{{"0", 1, "1"}, {"0", 2, ""}},
		votes:     map[parley.ID]string{1: "1", 2: "0"},
		decisions: map[parley.ID]string{1: "1", 2: "0"},
	}.play(t)
	if agreement == nil {
		t.Error("OM(0) does not agree if its source is faulty")
	}
}

// Slide "Algorithm OM(m), m > 0", step 3: a value that is not received from
// another lieutenant is the default.
func TestLectureOM1MissingRelay(t *testing.T) {
	_, agreement, validity := scene{
		n: 4, m: 1, faulty: []parley.ID{3},
		votes:     map[parley.ID]string{1: "110", 2: "110"},
		decisions: map[parley.ID]string{1: "1", 2: "1"},
	}.play(t)
	if agreement != nil || validity != nil {
		t.Error(agreement, validity)
	}
}

// Slide "Algorithm OM(m), m > 0", step 2: the v_i of a process that received
// nothing is the default, and that is what it passes on, to those too who did
// receive something.
func TestMissingValueIsRelayedAsTheDefault(t *testing.T) {
	scene{
		n: 4, m: 1, faulty: []parley.ID{0},
		lines:     []line{{"0", 1, "1"}},
		votes:     map[parley.ID]string{1: "100", 2: "010", 3: "010"},
		decisions: map[parley.ID]string{1: "0", 2: "0", 3: "0"},
	}.play(t)
}

// consistency is a run of OM(1) from every process in turn, as slides
// "Interactive Consistency Example 1" to 3 have it. tables[source][receiver] is
// a row of a slide's table: what the receiver heard from each process, with a
// dot where that is itself.
type consistency struct {
	name   string
	values string // the initial value of each process, a digit each
	faulty parley.ID
	say    func(path []parley.ID, to parley.ID) string
	tables map[parley.ID][]string
	vector string // of every correct process
}

// As a relay the faulty P0 of the examples says 0 to P1 and P3, 1 to the others;
// the slides print 0/1, anything. As the source it says what as is given.
func oddLow(as [5]string) func(path []parley.ID, to parley.ID) string {
	return func(path []parley.ID, to parley.ID) string {
		switch {
		case len(path) == 1:
			return as[to]
		case to == 1 || to == 3:
			return "0"
		}
		return "1"
	}
}

func relaying(v string, as [5]string) func(path []parley.ID, to parley.ID) string {
	return func(path []parley.ID, to parley.ID) string {
		if len(path) == 1 {
			return as[to]
		}
		return v
	}
}

const nobody parley.ID = 99

func consistencies() []consistency {
	mixed := [5]string{1: "0", 2: "0", 3: "1", 4: "1"}
	relayed := map[parley.ID][]string{ // the tables of P1 to P4, the same in both examples
		1: {2: "11.11", 3: "011.1", 4: "1111."},
		2: {1: "0.111", 3: "011.1", 4: "1111."},
		3: {1: "0.111", 2: "11.11", 4: "1111."},
		4: {1: "0.000", 2: "10.00", 3: "000.0"},
	}
	with := func(first ...string) map[parley.ID][]string {
		tables := maps.Clone(relayed)
		tables[0] = append([]string{""}, first...)
		return tables
	}
	return []consistency{
		{name: "example 1, nobody faulty", values: "1111", faulty: nobody, vector: "1111"},
		{
			name: "example 1, P3 says 0 to all", values: "1111", faulty: 3,
			say: func([]parley.ID, parley.ID) string { return "0" }, vector: "1110",
		},
		{
			name: "example 2", values: "11110", say: oddLow(mixed), vector: "01110",
			tables: with("0.011", "00.11", "100.1", "1001."),
		},
		{
			name: "example 3", values: "01110", say: oddLow([5]string{"", "0", "0", "0", "0"}), vector: "01110",
			tables: with("0.000", "00.00", "000.0", "0000."),
		},
		{name: "example 2, 0/1 read as 0", values: "11110", say: relaying("0", mixed), vector: "01110"},
		{name: "example 2, 0/1 read as 1", values: "11110", say: relaying("1", mixed), vector: "01110"},
	}
}

func TestLectureInteractiveConsistency(t *testing.T) {
	for _, example := range consistencies() {
		t.Run(example.name, func(t *testing.T) { example.play(t) })
	}
}

func (ic consistency) play(t *testing.T) {
	n := len(ic.values)
	how := scripted(ic.faulty)
	if ic.faulty == nobody {
		how = nil
	}
	cells := 0
	for source := range parley.ID(n) {
		c := om.Config{N: n, M: 1, Source: source, Default: []byte("0")}
		p := told(c, func(path []parley.ID, to parley.ID, _ []byte) []byte { return []byte(ic.say(path, to)) })
		s := run(p, source, ic.values[source:source+1], 1, how)
		for id, v := range problem.Decisions(&s.History) {
			if string(v) != ic.vector[source:source+1] {
				t.Errorf("entry %d of P%d is %s, expected vector %s", source, id, v, ic.vector)
			}
		}
		for id, row := range ic.tables[source] {
			if row == "" {
				continue
			}
			tree := p.Tree(s.Machine(parley.ID(id)))
			for from := range parley.ID(n) {
				path := []parley.ID{source}
				if from != source {
					path = append(path, from)
				}
				want := row[from : from+1]
				if in, _, _ := tree.Node(path); want != "." && string(in) != want || want == "." && in != nil {
					t.Errorf("P%d on P%d heard %q from P%d, expected %s", id, source, in, from, want)
				}
				cells++
			}
		}
	}
	if ic.tables != nil && cells != 80 {
		t.Errorf("%d cells compared", cells)
	}
}
