package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"

	"parley"
	"parley/explore"
	"parley/internal/draw"
	"parley/internal/draw/reading"
	"parley/internal/draw/svg"
	"parley/internal/exploration"
	"parley/internal/input"
	"parley/trace"
)

// Model says which system a question explores: a protocol, and flags of "parley explore".
type Model struct {
	Protocol string            `json:"protocol"`
	Flags    map[string]string `json:"flags,omitempty"`
}

type aboutModel struct {
	asked
	Model Model `json:"model"`
}

// ModelAnswer is the answer to "model": what can be set for a search, and what it would search.
type ModelAnswer struct {
	Fields   []Field  `json:"fields"`
	N        int      `json:"n"`
	M        int      `json:"m"`
	Words    []string `json:"words"`    // the model
	Endless  string   `json:"endless"`  // why the search may not end
	Error    *Failure `json:"error"`    // why it cannot be made
	Unpaired string   `json:"unpaired"` // why it cannot search for runs that look the same
	Command  string   `json:"command"`  // makes the search in a shell
}

// ExploreAnswer is the answer to "explore": how the search ended, and the run that it found.
type ExploreAnswer struct {
	exploration.Output
	Counted []string `json:"counted"`
	Heading string   `json:"heading,omitempty"` // of the run that was found
	Trace   string   `json:"trace,omitempty"`   // that run, as a file
	Trail   []string `json:"trail,omitempty"`   // the moves of a walk to its end; none if a walk cannot take them
}

// PairsAnswer is the answer to "pairs": the argument with runs that look the same to a process.
type PairsAnswer struct {
	exploration.PairsOutput
	SVG string `json:"svg,omitempty"`
}

// set are flags that the engine sets. Its memory may be that of a browser. With several threads, the counterexample
// that is found would depend on their speed.
var set = map[string]string{"memory": "1", "workers": "1"}

// sought is a flag that another question sets.
const sought = "indistinguishable"

// groups are the flags of a search by what they are about. Other flags belong to the protocol.
var groups = map[string][]string{
	"start": {"values", "try-values", "requests", "workload"},
	"faults": {
		"faulty", "liars", "outspoken", "crashes", "restarts", "lost-disks", "losses", "doubles", "timeouts", "delta",
		"false-suspicion", "crash-notices", "overtaking", "fifo", "in-time",
	},
	"goal":   {"property", "goal", "always", "eventually", "beyond-bound"},
	"search": {"step", "order", "for", "states", "depth", "walks", "seed", "symmetry", "all", "ordered", "unreduced"},
}

// groupOf returns the group of a flag.
func groupOf(flag string) string {
	for group, flags := range groups { // order: a flag is in one group
		if slices.Contains(flags, flag) {
			return group
		}
	}
	return "protocol"
}

// flagsOf returns the flags of a search as the model fills them in.
func (m Model) flagsOf(protocols []parley.Protocol) (*exploration.Flags, *pflag.FlagSet, error) {
	p, err := input.Protocol(protocols, m.Protocol)
	if err != nil {
		return nil, nil, &parley.FlagError{Flag: "protocol", Err: err}
	}
	fs := pflag.NewFlagSet(p.Name, pflag.ContinueOnError)
	fs.Usage = func() {}
	f := exploration.New(p, fs)
	for _, name := range slices.Sorted(maps.Keys(m.Flags)) {
		if fs.Lookup(name) == nil || set[name] != "" {
			return nil, nil, parley.FlagErrorf(name, "a search of %s has no such setting", p.Name)
		}
		if err := fs.Set(name, m.Flags[name]); err != nil {
			return nil, nil, err
		}
	}
	for name, value := range set { // order: each sets another flag
		if err := fs.Set(name, value); err != nil {
			return nil, nil, err
		}
	}
	return f, fs, nil
}

// search makes the search of a model.
func (m Model) search(protocols []parley.Protocol) (*exploration.Flags, *exploration.Search, error) {
	f, fs, err := m.flagsOf(protocols)
	if err != nil {
		return nil, nil, err
	}
	if limit, err := fs.GetDuration("for"); err != nil || limit <= 0 || limit > mostExploring {
		return nil, nil, parley.FlagErrorf("for", "%s: allowed are durations above 0, up to %s", limit, mostExploring)
	}
	s, err := f.Setup()
	return f, s, err
}

// pairing returns the same model for a search for runs that look the same.
func (m Model) pairing() Model {
	flags := make(map[string]string)
	maps.Copy(flags, m.Flags)
	flags[sought] = "true"
	return Model{m.Protocol, flags}
}

// command returns the command line that makes the search in a shell.
func (m Model) command() string {
	line := input.Program + " explore " + input.Quote(m.Protocol)
	for _, name := range slices.Sorted(maps.Keys(m.Flags)) {
		dashes := "--"
		if len(name) == 1 {
			dashes = "-"
		}
		line += " " + input.Quote(dashes+name+"="+m.Flags[name])
	}
	return line
}

// modelOf answers what a search would be.
func modelOf(protocols []parley.Protocol, m Model) (any, error) {
	_, fs, err := m.flagsOf(protocols)
	if err != nil {
		return nil, err
	}
	p, err := input.Protocol(protocols, m.Protocol)
	if err != nil {
		return nil, err
	}
	a := ModelAnswer{Fields: []Field{}, Words: []string{}}
	fs.VisitAll(func(g *pflag.Flag) {
		if set[g.Name] != "" || g.Name == sought {
			return
		}
		kind, usage := pflag.UnquoteUsage(g)
		f := Field{
			Name: g.Name, Kind: kind, Usage: usage, Default: g.DefValue, Value: g.Value.String(), Allowed: allowed(g),
			Group: groupOf(g.Name),
		}
		if g.Name == "property" {
			f.Allowed = []string{""} // all
			for _, q := range p.Properties {
				f.Allowed = append(f.Allowed, q.Name)
			}
		}
		a.Fields = append(a.Fields, f)
	})
	a.Command = m.command()
	if _, _, err := m.pairing().search(protocols); err != nil {
		a.Unpaired = failure(err).Message
	}
	_, s, err := m.search(protocols)
	if err != nil {
		why := failure(err)
		a.Error = &why
		return a, nil
	}
	a.N, a.M = s.Size()
	a.Words, a.Endless = s.Model(), s.Endless()
	return a, nil
}

// exploring answers what a search finds.
func exploring(ctx context.Context, e *Engine, b []byte, progress func([]byte)) (any, error) {
	var q aboutModel
	if err := read(b, &q); err != nil {
		return nil, err
	}
	f, s, err := q.Model.search(e.protocols)
	if err != nil {
		return nil, err
	}
	if f.Pairs() {
		return nil, parley.FlagErrorf("indistinguishable", "ask for pairs instead")
	}
	found, err := exploration.Run(ctx, s, onProgress(progress))
	if err != nil {
		return nil, err
	}
	a := ExploreAnswer{Output: found.Output(), Counted: found.Counted()}
	if run := found.Found(); run != nil {
		var text bytes.Buffer
		if err := trace.Write(&text, run.Header, run.Log); err != nil {
			return nil, err
		}
		a.Heading, a.Trace, a.Trail = found.Heading(), text.String(), found.Trail(ctx, run)
	}
	return a, nil
}

// pairing answers which runs look the same to a process that must decide differently in them.
func pairing(ctx context.Context, e *Engine, b []byte, progress func([]byte)) (any, error) {
	var q aboutModel
	if err := read(b, &q); err != nil {
		return nil, err
	}
	_, s, err := q.Model.pairing().search(e.protocols)
	if err != nil {
		return nil, err
	}
	found, err := exploration.Pairs(ctx, s, reading.Style{}, onProgress(progress))
	if err != nil {
		return nil, err
	}
	a := PairsAnswer{PairsOutput: found.Output()}
	if found.Drawn != nil {
		a.SVG = string(svg.Page(draw.Pairs(found.Protocol(), *found.Drawn), "pairs"))
	}
	return a, nil
}

// onProgress passes the progress of a search on as JSON.
func onProgress(progress func([]byte)) func(explore.Progress) {
	if progress == nil {
		return nil
	}
	return func(p explore.Progress) {
		b, err := json.Marshal(p)
		if err != nil {
			panic(fmt.Sprint("numbers: ", err))
		}
		progress(b)
	}
}
