package engine

import (
	"context"
	"maps"
	"slices"
	"strings"

	"parley"
	"parley/internal/lab/likeness"
	"parley/trace"
)

// CompareAnswer is the answer to "compare": where two runs differ, and to which processes they look the same.
type CompareAnswer struct {
	Same       bool        `json:"same"`  // all events are equal
	Equal      uint64      `json:"equal"` // the number of equal events at the beginning
	Settings   []Differing `json:"settings"`
	First      [2]*Line    `json:"first"` // the first event of each run that differs; null if the run ended before
	Fields     []string    `json:"fields"`
	Processes  []Compared  `json:"processes"`  // empty if n is not the same
	Comparable bool        `json:"comparable"` // the protocol is the same, so a process may see the same
	Verdicts   []Differing `json:"verdicts"`   // of all properties
}

// Differing is a value in each of two runs; empty if a run has none.
type Differing struct {
	Name string    `json:"name"`
	Is   [2]string `json:"is"`
}

// Compared is a process in two runs.
type Compared struct {
	Name    string    `json:"name"`
	Ref     string    `json:"ref"`
	Faulty  [2]bool   `json:"faulty"`
	Decides [2]string `json:"decides"`
	Same    bool      `json:"same"`  // it sees the same in both
	Sees    [2]*Line  `json:"sees"`  // its first event that differs; null if it sees nothing more of the run
	Until   uint64    `json:"until"` // the number of its own events up to there
}

// fieldNames are the fields of an event in words.
var fieldNames = map[string]string{
	"op": "what happens", "t": "the time", "peer": "the other process", "cause": "the cause",
	"epoch": "the epoch", "path": "the part of the machine", "kind": "the kind of message",
	"origin": "whom the message is about", "seq": "the number in the message", "value": "the value in the message",
	"body": "what the message says",
}

// comparing answers how two runs differ.
func comparing(_ context.Context, e *Engine, b []byte, _ func([]byte)) (any, error) {
	var q struct {
		asked
		A Setting `json:"a"`
		B Setting `json:"b"`
	}
	if err := read(b, &q); err != nil {
		return nil, err
	}
	var runs [2]*made
	for i, s := range []Setting{q.A, q.B} {
		var err error
		if runs[i], err = e.of(s); err != nil {
			return nil, err
		}
	}
	return compared(runs), nil
}

func compared(runs [2]*made) CompareAnswer {
	a := CompareAnswer{Settings: settings(runs), Fields: []string{}, Processes: []Compared{}, Verdicts: verdicts(runs)}
	if d := trace.Diff(runs[0].log, runs[1].log, 0); d == nil {
		a.Same, a.Equal = true, runs[0].log.Len()
	} else {
		a.Equal = d.At
		for i, events := range [][]trace.Event{d.A, d.B} {
			if len(events) > 0 {
				line := runs[i].line(events[0])
				a.First[i] = &line
			}
		}
		for _, f := range d.Fields {
			if f == "op" || f == "at" { // it is another event altogether
				a.Fields = []string{fieldNames["op"]}
				break
			}
			a.Fields = append(a.Fields, fieldNames[f])
		}
	}
	if runs[0].Protocol.N == runs[1].Protocol.N {
		a.Comparable = runs[0].Protocol.Name == runs[1].Protocol.Name
		a.Processes = processes(runs)
	}
	return a
}

// settings returns the arguments in which two runs differ.
func settings(runs [2]*made) []Differing {
	flags := [2]map[string]string{{}, {}}
	names := make(map[string]bool)
	for i, m := range runs {
		flags[i]["protocol"] = m.Protocol.Name
		names["protocol"] = true
		for _, arg := range m.Args[1:] {
			name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			flags[i][name], names[name] = value, true
		}
	}
	all := []Differing{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if flags[0][name] != flags[1][name] {
			all = append(all, Differing{name, [2]string{flags[0][name], flags[1][name]}})
		}
	}
	return all
}

// verdicts returns the outcome of each property in two runs.
func verdicts(runs [2]*made) []Differing {
	all := []Differing{}
	for i, m := range runs {
		for _, v := range m.report.Verdicts {
			k := slices.IndexFunc(all, func(d Differing) bool { return d.Name == v.Property })
			if k < 0 {
				k, all = len(all), append(all, Differing{Name: v.Property})
			}
			all[k].Is[i] = v.Outcome
		}
	}
	return all
}

// processes compares what each process sees and decides.
func processes(runs [2]*made) []Compared {
	all := []Compared{}
	of := [2][]Process{runs[0].processes(), runs[1].processes()}
	for id := range parley.ID(runs[0].Protocol.N) {
		c := Compared{Name: of[0][id].Name, Ref: of[0][id].Ref}
		var sights [2]likeness.Sight
		for i, m := range runs {
			c.Faulty[i], c.Decides[i] = of[i][id].Faulty, of[i][id].Decides
			sights[i] = likeness.Of(m.Protocol, m.events, id)
		}
		p := likeness.Compare(sights[0], sights[1])
		c.Same, c.Until = p.Same, uint64(p.Equal)
		for i, event := range []uint64{p.A, p.B} {
			if event > 0 && !p.Same {
				line := runs[i].line(runs[i].events[event-1])
				c.Sees[i] = &line
			}
		}
		all = append(all, c)
	}
	return all
}
