package dated

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"parley"
	"parley/clock/convergence"
)

// The names of the properties, in addition to those of the clocks.
const (
	Agreement = "date agreement"
	Validity  = "date validity"
	InTime    = "date in time"
)

// span is one time during which the clock of a correct process counted.
type span struct {
	at       parley.ID
	zero     parley.Tick // true time at which its clock showed 0
	started  bool        // it began with the others
	proposed int64       // the date that it proposed, if any
	dates    []int64     // the dates that it had, without repetitions
	late     string      // why it had a date too late
	entered  parley.Tick // time on its clock
	reads    int         // resynchronizations
}

// history is the judged part of a run.
type history struct {
	plan   *convergence.Plan
	date   func(self parley.ID, now parley.Tick) int64
	given  bool
	spans  []span
	open   []int   // by process: 1 + the index of its span; 0: its clock does not count
	ahead  []int64 // by process: machine.ahead
	ending parley.Tick
}

// replay builds a history event by event.
func (d *machine) replay(c Config, h *parley.History) *history {
	out := &history{plan: d.plan, date: c.Date, given: c.Given, open: make([]int, h.N), ahead: make([]int64, h.N)}
	out.ending = d.when.Begin + parley.Tick(d.rounds.Last+2)*d.when.Delta
	all := slices.Concat(h.Deliveries, h.Indications)
	slices.SortStableFunc(all, func(a, b parley.ExternalEvent) int { return cmp.Compare(a.Order, b.Order) })
	for _, e := range all {
		if h.Correct(e.At) && int(e.At) < h.N {
			out.take(&e)
		}
	}
	return out
}

func (h *history) take(e *parley.ExternalEvent) {
	hardware, logical := parley.Tick(e.Msg.Seq), parley.Tick(e.Msg.Value)
	if e.Msg.Kind == convergence.Enters {
		h.enter(e.At, e.When, hardware, logical)
		return
	}
	if h.open[e.At] == 0 {
		return
	}
	mine := &h.spans[h.open[e.At]-1]
	switch e.Msg.Kind {
	case convergence.Leaves:
		h.open[e.At] = 0
	case convergence.Reads:
		mine.reads++
		told := mine.started || mine.entered > h.ending || mine.reads > 1
		if len(mine.dates) == 0 && logical > h.ending && told {
			mine.late = fmt.Sprintf("has no date when its clock shows %d", logical)
		}
	case convergence.Adjusts:
		if n := len(mine.dates); n > 0 {
			h.ahead[e.At] = mine.dates[n-1] + int64(logical-hardware)
		}
	case Dated:
		if date := int64(e.Msg.Value); !slices.Contains(mine.dates, date) {
			mine.dates = append(mine.dates, date)
		}
	}
}

func (h *history) enter(at parley.ID, when, hardware, logical parley.Tick) {
	one := span{at: at, zero: when - logical, entered: logical, started: h.plan.Began(logical)}
	if h.given { // all begin at one time
		one.zero = 0
	}
	if one.proposed = h.date(at, hardware) - int64(logical); h.ahead[at] != 0 {
		one.proposed = int64(hardware-logical) + h.ahead[at]
	}
	h.spans = append(h.spans, one)
	h.open[at] = len(h.spans)
}

// together reports whether two clocks began at the same time, or one joined the other. Clocks that began
// separately show 0 at times that differ by more than drift explains.
func (h *history) together(a, b *span) bool {
	by := a.zero - b.zero
	return max(by, -by) <= h.plan.Period/4
}

// properties returns the demands on the date.
func (d *machine) properties(c Config) []parley.Property {
	judged := func(check func(h *history, name func(parley.ID) string) error) func(*parley.History) error {
		return func(h *parley.History) error { return check(d.replay(c, h), h.Name) }
	}
	undated := func(h *parley.History) string {
		if slices.ContainsFunc(d.replay(c, h).spans, func(s span) bool { return len(s.dates) > 0 }) {
			return ""
		}
		return "no correct process has a date"
	}
	return []parley.Property{
		{
			Name: Agreement, Mode: parley.Always, Check: judged((*history).agree), Vacuous: undated,
			Says: "correct processes have the same date if their clocks began together, or joined clocks " +
				"that began together",
		},
		{
			Name: Validity, Mode: parley.Always, Check: judged((*history).valid), Vacuous: undated,
			Says: "the date lies between the dates that correct processes proposed when the clocks began",
		},
		{
			Name: InTime, Mode: parley.Always, Check: judged((*history).inTime),
			Says: "a correct process knows the date as soon as messages from the others can have arrived",
		},
	}
}

func (h *history) agree(name func(parley.ID) string) error {
	for i := range h.spans {
		for k := range i + 1 {
			a, b := &h.spans[k], &h.spans[i]
			if !h.together(a, b) {
				continue
			}
			for _, x := range a.dates {
				for _, y := range b.dates {
					if x != y {
						return fmt.Errorf("%s has the date %d, and %s has %d", name(a.at), x, name(b.at), y)
					}
				}
			}
		}
	}
	return nil
}

func (h *history) valid(name func(parley.ID) string) error {
	for i := range h.spans {
		mine := &h.spans[i]
		least, most := int64(math.MaxInt64), int64(math.MinInt64)
		for k := range h.spans {
			if other := &h.spans[k]; other.started && h.together(mine, other) {
				least, most = min(least, other.proposed), max(most, other.proposed)
			}
		}
		for _, date := range mine.dates {
			if least <= most && (date < least || date > most) {
				return fmt.Errorf("%s has the date %d, but correct processes proposed %d to %d", name(mine.at), date, least, most)
			}
		}
	}
	return nil
}

func (h *history) inTime(name func(parley.ID) string) error {
	for _, s := range h.spans {
		if s.late != "" {
			return fmt.Errorf("%s %s", name(s.at), s.late)
		}
	}
	return nil
}

// promises derives the promises from those of the clocks.
func promises(
	clocks func(parley.RunConditions) []parley.Promise, given bool,
) func(parley.RunConditions) []parley.Promise {
	return func(a parley.RunConditions) []parley.Promise {
		all := clocks(a)
		i := slices.IndexFunc(all, func(p parley.Promise) bool { return p.Property == convergence.NoAlarm })
		lacks := ""
		if !all[i].Holds {
			lacks = all[i].Because
		}
		if given {
			all = all[i : i+1]
		}
		return append(all,
			parley.Promised(Agreement, "all decide on one vector of dates (Pease, Shostak, Lamport "+
				"1980), and of m+1 equal answers at least one comes from a correct process", lacks),
			parley.Promised(Validity, "at most m of at least 2m+1 dates come from faulty processes: the median lies between "+
				"dates of correct processes", lacks),
			parley.Promised(InTime, "n > 3m: at least 2m+1 correct processes take part in the agreement, "+
				"and inform joining processes",
				lacks))
	}
}
