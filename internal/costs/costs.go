// Package costs lists the costs of agreement. For each number of faults, it gives the necessary numbers of processes,
// rounds and messages.
package costs

import (
	"flag"
	"strconv"

	"parley"
)

// Limits is what one algorithm can do with n processes and m faults.
type Limits struct {
	Name      string           `json:"name"`
	Faults    string           `json:"faults"`
	Possible  bool             `json:"possible"`
	Why       string           `json:"why,omitempty"`
	SmallestN int              `json:"smallest_n"`
	LargestM  int              `json:"largest_m"`
	Rounds    int              `json:"rounds"`
	AtMost    bool             `json:"at_most"`
	PerRound  []parley.Traffic `json:"per_round"`
	Total     parley.Traffic   `json:"total"`

	Model parley.FaultModel `json:"-"`
}

// variants are settings of a protocol that have a bound of their own.
var variants = []struct{ protocol, flag, value string }{
	{"consensus", "over", "sm"},
	{"phaseking", "form", "tworound"},
}

// Algorithm is a protocol, or a variant of it.
type Algorithm struct {
	parley.Protocol
	variant [2]string // a flag and its value
}

// Algorithms returns the protocols in rounds that have a bound and a cost, each followed by its variants.
func Algorithms(protocols []parley.Protocol) (all []Algorithm) {
	add := func(a Algorithm) {
		if a.Bound != nil && a.Cost != nil && a.Timing == parley.Synchronous {
			all = append(all, a)
		}
	}
	for _, p := range protocols {
		add(Algorithm{Protocol: p})
		for _, v := range variants {
			if v.protocol != p.Name || p.Flags == nil {
				continue
			}
			a := Algorithm{variant: [2]string{v.flag, v.value}}
			var err error
			if a.Protocol, err = a.build(p, nil); err == nil { // otherwise another module's protocol with this name
				a.Name += " --" + v.flag + "=" + v.value
				add(a)
			}
		}
	}
	return all
}

// With returns the protocol for n processes and m faults.
func (a Algorithm) With(n, m int) (parley.Protocol, error) {
	return a.build(a.Protocol, map[string]string{"n": strconv.Itoa(n), "m": strconv.Itoa(m)})
}

func (a Algorithm) build(p parley.Protocol, flags map[string]string) (parley.Protocol, error) {
	fs := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	made := p.Flags(fs)
	if a.variant[0] != "" {
		if err := fs.Set(a.variant[0], a.variant[1]); err != nil {
			return p, err
		}
	}
	for name, value := range flags { // order: each sets another flag
		if err := fs.Set(name, value); err != nil {
			return p, err
		}
	}
	return made(nil)
}

// Of returns what each algorithm can do with n processes and m faults.
func Of(protocols []parley.Protocol, n, m int) (all []Limits) {
	for _, a := range Algorithms(protocols) {
		cost := a.Cost(n, m)
		l := Limits{
			Name: a.Name, Faults: a.Faults.String(), Possible: true, Rounds: cost.Rounds, AtMost: cost.AtMost,
			PerRound: cost.PerRound, Total: cost.Total(), Model: a.Faults,
			SmallestN: LeastProcesses(a.Protocol, m), LargestM: MostFaults(a.Protocol, n),
		}
		if err := a.Bound(n, m); err != nil {
			l.Possible, l.Why = false, err.Error()
		}
		all = append(all, l)
	}
	return all
}

// LeastProcesses returns the smallest n that tolerates m faults, or 0 if there is none.
func LeastProcesses(p parley.Protocol, m int) int {
	for n := m + 2; n <= parley.MaxProcesses; n++ {
		if p.Bound(n, m) == nil {
			return n
		}
	}
	return 0
}

// MostFaults returns the largest m that n processes tolerate.
func MostFaults(p parley.Protocol, n int) int {
	m := n - 2
	for m > 0 && p.Bound(n, m) != nil {
		m--
	}
	return m
}
