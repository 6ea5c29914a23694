// Package cost answers what algorithms cost, as the view Cost of the lab shows it: a chart of formulas and of what was
// measured in runs.
package cost

import (
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/internal/costs"
	"parley/internal/draw/chart"
	"parley/internal/draw/svg"
	"parley/internal/form"
	"parley/internal/report"
	"parley/run"
)

// Answer says what algorithms cost with m faults, against the number of processes.
type Answer struct {
	SVG    string         `json:"svg"`
	CSV    string         `json:"csv"`
	Limits []costs.Limits `json:"limits"` // for the largest n
	Says   []string       `json:"says"`   // where one algorithm becomes cheaper than another
}

// Question selects what is counted.
type Question struct {
	M        int    `json:"m"`
	Most     int    `json:"most"`     // the largest n
	Quantity string `json:"quantity"` // one of quantities
}

// quantities are what a chart can count.
var quantities = []string{"messages", "bits", "rounds", "signatures"}

// mostCost is the largest n of a chart, and mostMeasured the number of messages up to which runs are made and counted.
const (
	mostCost     = 40
	mostMeasured = 4000
)

// Of answers what algorithms cost.
func Of(protocols []parley.Protocol, q Question) (*Answer, error) {
	switch {
	case !slices.Contains(quantities, q.Quantity):
		return nil, fmt.Errorf("%.20q is not counted: allowed are %s", q.Quantity, strings.Join(quantities, ", "))
	case q.M < 1 || q.M > 8:
		return nil, parley.FlagErrorf("m", "%d faults: allowed are 1 to 8", q.M)
	case q.Most < q.M+2 || q.Most > mostCost:
		return nil, parley.FlagErrorf("n", "%d processes: allowed are %d to %d", q.Most, q.M+2, mostCost)
	}
	picture := chart.Costs{Quantity: q.Quantity}
	for _, a := range costs.Algorithms(protocols) {
		if s := q.series(a); len(s.Points) > 0 {
			picture.Series = append(picture.Series, s)
		}
	}
	return &Answer{
		SVG: string(svg.Page(picture.Scene(), "cost")), CSV: csvOf(picture),
		Limits: costs.Of(protocols, q.Most, q.M), Says: append([]string{}, crossings(picture)...),
	}, nil
}

// series returns the cost of an algorithm for all n that tolerate m faults, and the measured cost where a run is small.
func (q Question) series(a costs.Algorithm) chart.Series {
	s := chart.Series{Name: a.Name}
	for n := q.M + 2; n <= q.Most; n++ {
		if a.Bound(n, q.M) != nil {
			continue
		}
		cost := a.Cost(n, q.M)
		p := chart.Point{N: n, Cost: uint64(cost.Rounds)}
		if q.Quantity != "rounds" {
			p.Cost = q.of(cost.Total())
		}
		s.Points = append(s.Points, p)
		if q.Quantity == "rounds" || cost.Total().Messages > mostMeasured {
			continue
		}
		if measured, ok := q.measured(a, n); ok {
			s.Measured = append(s.Measured, chart.Point{N: n, Cost: measured})
		}
	}
	return s
}

func (q Question) of(t parley.Traffic) uint64 {
	switch q.Quantity {
	case "messages":
		return t.Messages
	case "bits":
		return t.Bits
	}
	return t.Signatures
}

// measured counts what a run without faults sends, in which all propose 1.
func (q Question) measured(a costs.Algorithm, n int) (uint64, bool) {
	p, err := a.With(n, q.M)
	if err != nil || p.Serves { // a service has no run of its own
		return 0, false
	}
	spec := run.Spec{Protocol: p, Seed: 1, Values: make(map[parley.ID][]byte)}
	for id := range p.Proposers.All() {
		spec.Values[id] = []byte("1")
	}
	done, err := spec.Simulate()
	if err != nil {
		return 0, false
	}
	var sum parley.Traffic
	for _, t := range report.New(form.Run{Spec: done.Spec, Names: "article"}, done.Log, done.Facts).Cost.Measured {
		sum = sum.Plus(t)
	}
	return q.of(sum), true
}

// crossings says from which n on one algorithm costs less than another one that is cheaper before.
func crossings(c chart.Costs) (out []string) {
	for i, a := range c.Series {
		for _, b := range c.Series[i+1:] {
			cheaper, dearer := a, b
			at, was := 0, 0
			for _, p := range a.Points {
				j := slices.IndexFunc(b.Points, func(q chart.Point) bool { return q.N == p.N })
				if j < 0 || b.Points[j].Cost == p.Cost {
					continue
				}
				now := 1
				if p.Cost > b.Points[j].Cost {
					now = -1
				}
				if was != 0 && now != was {
					at = p.N
					if now < 0 {
						cheaper, dearer = b, a
					}
				}
				was = now
			}
			if at > 0 {
				out = append(out, fmt.Sprintf("%s costs fewer %s than %s from n = %d on",
					cheaper.Name, c.Quantity, dearer.Name, at))
			}
		}
	}
	return out
}

// csvOf writes a chart as a table: a row for each n, two columns for each algorithm.
func csvOf(c chart.Costs) string {
	var b strings.Builder
	b.WriteString("n")
	first, last := mostCost, 0
	for _, s := range c.Series {
		fmt.Fprintf(&b, ",%s,%s measured", s.Name, s.Name)
		first, last = min(first, s.Points[0].N), max(last, s.Points[len(s.Points)-1].N)
	}
	b.WriteString("\n")
	cell := func(points []chart.Point, n int) string {
		if i := slices.IndexFunc(points, func(p chart.Point) bool { return p.N == n }); i >= 0 {
			return fmt.Sprint(points[i].Cost)
		}
		return ""
	}
	for n := first; n <= last; n++ {
		fmt.Fprint(&b, n)
		for _, s := range c.Series {
			fmt.Fprintf(&b, ",%s,%s", cell(s.Points, n), cell(s.Measured, n))
		}
		b.WriteString("\n")
	}
	return b.String()
}
