package engine

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"parley"
	"parley/faulty"
	"parley/internal/form"
	"parley/internal/input"
	"parley/internal/scenario"
)

// FormAnswer is the answer to "form": what can be set for a run, and what it is set to.
type FormAnswer struct {
	Protocol  ProtocolSummary `json:"protocol"`
	Fields    []Field         `json:"fields"`
	Names     []string        `json:"names"`     // of the processes
	Proposers []string        `json:"proposers"` // those that propose a value
	Behaviors []Choice        `json:"behaviors"` // of faulty processes
	Within    bool            `json:"within"`    // n and m are within the bound
	Bound     string          `json:"bound"`     // why they are not
	Error     *Failure        `json:"error"`     // why the run cannot be made as it is set
}

// Field is one flag of a run.
type Field struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`  // what the value is, as in the help
	Usage   string   `json:"usage"` // what it does
	Default string   `json:"default"`
	Value   string   `json:"value"`
	Allowed []string `json:"allowed,omitempty"` // all values, if these are few
	Group   string   `json:"group"`             // protocol, run or events
}

// Choice is a value with its explanation.
type Choice struct {
	Name string `json:"name"`
	Says string `json:"says"`
}

// hidden are flags that mean nothing on the page.
var hidden = []string{"host", "round", "tick", "for", "memory", "node"}

func fieldsOf(f *form.Flags) []Field {
	fields := []Field{}
	f.Set().VisitAll(func(g *pflag.Flag) {
		if slices.Contains(hidden, g.Name) || slices.Contains(viewed, g.Name) {
			return
		}
		kind, usage := pflag.UnquoteUsage(g)
		one := Field{
			Name: g.Name, Kind: kind, Usage: usage, Default: g.DefValue, Value: g.Value.String(), Group: "protocol",
			Allowed: allowed(g),
		}
		switch {
		case slices.Contains(scenario.Keys, g.Name):
			one.Group = "events"
		case slices.Contains([]string{"faulty", "values", "seed", "signatures", "beyond-bound", "names"}, g.Name):
			one.Group = "run"
		}
		fields = append(fields, one)
	})
	return fields
}

// allowed returns the values of a flag, if these are a closed set.
func allowed(g *pflag.Flag) []string {
	if g.Value.Type() == "bool" {
		return []string{"true", "false"}
	}
	return input.Values(g)
}

// behaviorsOf returns the behaviors that faulty processes of a protocol can have. A crash needs a round or a time.
func behaviorsOf(p parley.Protocol) []Choice {
	choices := []Choice{}
	for _, b := range faulty.Named() {
		if b.Suits(p) == nil {
			choices = append(choices, Choice{b.Name, b.Model.String()})
		}
	}
	for _, name := range []string{"crash@r1", "crash@r1:2", "crash@1000ns"} {
		b, err := faulty.Parse(name)
		if err == nil && b.Suits(p) == nil && strings.HasPrefix(name, "crash@r") == (p.Timing == parley.Synchronous) {
			choices = append(choices, Choice{name, b.Model.String()})
		}
	}
	return choices
}
