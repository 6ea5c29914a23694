package convergence_test

import (
	"strings"
	"testing"

	"parley"
	"parley/clock/convergence"
)

// testCorner is a corner of a clock in a history made by hand.
type testCorner struct {
	at            parley.ID
	kind          parley.Kind
	when, logical parley.Tick
}

func history(n int, corners ...testCorner) *parley.History {
	h := &parley.History{N: n, Over: true}
	for i, c := range corners {
		h.Deliveries = append(h.Deliveries, parley.ExternalEvent{
			At: c.at, From: c.at, When: c.when, Order: uint64(i + 1),
			Msg: parley.Msg{Kind: c.kind, Origin: c.at, Value: uint64(c.logical), Body: []byte("why")},
		})
	}
	return h
}

const (
	enters  = convergence.Enters
	reads   = convergence.Reads
	adjusts = convergence.Adjusts
	settles = convergence.Settles
	leaves  = convergence.Leaves
)

// Each property is broken by one of these histories, and by none that keeps it.
func TestPropertiesCanBreak(t *testing.T) {
	c := convergence.Config{N: 2, Delta: 1000, Slew: 50_000, Rho: 100, Period: 100_000}
	p, plan := convergence.New(c), planned(t, c)
	for _, c := range []struct {
		name    string
		corners []testCorner
		breaks  string // the property, none if empty
		says    string
	}{
		{"at delta", []testCorner{{0, enters, 0, 0}, {1, enters, 0, 1000}, {0, reads, 100, 100}, {1, reads, 200, 1200},
			{0, settles, 300, 300}, {1, settles, 300, 1300}}, "", ""},
		{"beyond delta", []testCorner{{0, enters, 0, 0}, {1, enters, 0, 1005}, {0, reads, 100, 100}, {1, reads, 200, 1205},
			{0, settles, 300, 300}, {1, settles, 300, 1305}},
			convergence.ClockBound, "at time 100 the clocks of process 0 and process 1 are 1005 ticks apart"},
		// Only the corners matter: between two resynchronizations a little more is allowed.
		{"while slewing", []testCorner{{0, enters, 0, 0}, {1, enters, 0, 1005}, {0, adjusts, 100, 100},
			{1, adjusts, 200, 1205}, {0, settles, 300, 300}, {1, settles, 300, 1305}}, "", ""},
		{"too far while slewing", []testCorner{{0, enters, 0, 0}, {1, enters, 0, plan.Ever + 5}, {0, settles, 100, 100},
			{1, settles, 100, plan.Ever + 105}}, convergence.ClockBound, "1055 ticks apart; allowed are 1050"},
		// Corners at different times are compared on the line between them.
		{"between corners", []testCorner{{0, enters, 0, 0}, {1, enters, 0, 1000}, {0, reads, 50_000, 50_000 - 5},
			{0, settles, 100_000, 100_000 - 5}, {1, settles, 100_000, 101_000}}, convergence.ClockBound, "at time 50000"},
		// No process is compared with one whose clock does not count or that has no later corner.
		{"out", []testCorner{{0, enters, 0, 0}, {1, enters, 0, 500}, {1, leaves, 10, 510}, {0, reads, 50, 50},
			{1, enters, 90, 5000}, {0, settles, 60, 60}}, convergence.NoAlarm, "at time 10 process 1 why"},
		{"back", []testCorner{{0, enters, 0, 0}, {0, settles, 100, 100}, {0, reads, 200, 95}}, convergence.ClockMonotone,
			"the clock of process 0, which showed 100 at time 100, shows 95 at time 200"},
		{"fast", []testCorner{{0, enters, 0, 0}, {0, settles, 10_000, 10_507}}, convergence.ClockRate,
			"from time 0 to 10000, advances by 10507 ticks and not by 10000"},
		{"as fast as may be", []testCorner{{0, enters, 0, 0}, {0, settles, 10_000, 10_506}}, "", ""},
		{"slow", []testCorner{{0, enters, 0, 0}, {0, settles, 10_000, 9_493}}, convergence.ClockRate, "advances by 9493"},
	} {
		h := history(2, c.corners...)
		for _, property := range p.Properties {
			err := property.Check(h)
			switch {
			case property.Name == convergence.Resynchronized:
			case property.Name == c.breaks && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%s: %s: %v", c.name, property.Name, err)
			case property.Name != c.breaks && err != nil && c.name != "back":
				t.Errorf("%s: %s: %v", c.name, property.Name, err)
			}
		}
		h.Faulty = parley.SetOf(0, 1)
		if err := broken(p, h); err != nil && !strings.Contains(err.Error(), "never") {
			t.Errorf("%s: of faulty processes: %v", c.name, err)
		}
	}
}

// A run in which a correct process never adjusts its clock does not show the property.
func TestResynchronizedIsNotVacuous(t *testing.T) {
	p := convergence.New(convergence.Config{N: 2})
	check := p.Properties[len(p.Properties)-1]
	one := history(2, testCorner{0, settles, 5, 5})
	if check.Name != convergence.Resynchronized || check.Mode != parley.Sometimes || check.Check(one) == nil {
		t.Error("one of two is enough")
	}
	one.Faulty = parley.SetOf(1)
	if err := check.Check(one); err != nil {
		t.Error(err)
	}
}

// The promises, and the reasons against them.
func TestPromises(t *testing.T) {
	c := convergence.Config{N: 4, M: 1}
	p := convergence.New(c)
	small := convergence.New(convergence.Config{N: 4, M: 1, Delta: 5000, Period: 200_000})
	cold := convergence.New(convergence.Config{N: 4, M: 1, Begin: convergence.Cold})
	within := parley.RunConditions{N: 4, M: 1, Faulty: 1, Worst: parley.OralByzantineFaults}
	with := func(change func(*parley.RunConditions)) parley.RunConditions {
		a := within
		change(&a)
		return a
	}
	for _, c := range []struct {
		name   string
		p      parley.Protocol
		a      parley.RunConditions
		holds  bool
		slewed bool
		says   string
	}{
		{"within", p, within, true, true, "begin within"},
		{"n = 3m", p, with(func(a *parley.RunConditions) { a.N = 3 }), false, true, "n > 3m is necessary"},
		{"two faulty", p, with(func(a *parley.RunConditions) { a.Faulty = 2 }), false, true, "m = 1"},
		{"late", p, with(func(a *parley.RunConditions) { a.Network.Late = true }), false, true, "longer than 900"},
		{"lost", p, with(func(a *parley.RunConditions) { a.Network.Lost = true }), false, true, "lost"},
		{"cut", p, with(func(a *parley.RunConditions) { a.Network.Cut = true }), false, true, "lost"},
		{"doubled", p, with(func(a *parley.RunConditions) { a.Network.Doubled = true }), true, true, ""},
		{"reordered", p, with(func(a *parley.RunConditions) { a.Network.Reordered = true }), true, true, ""},
		{"back", p, with(func(a *parley.RunConditions) { a.Processes.Restarted = true }), false, true, "until its clock is synchronized"},
		{"wrong", p, with(func(a *parley.RunConditions) { a.Processes.Paused = true }), false, false, "clock was wrong"},
		{"delta", small, within, false, true, "needs"},
		{"cold", cold, within, true, true, "started"},
	} {
		for _, promise := range c.p.Promises(c.a) {
			want := c.holds
			switch promise.Property {
			case convergence.ClockMonotone:
				want = true
			case convergence.ClockRate:
				want = c.slewed
			default:
				if !strings.Contains(promise.Because, c.says) {
					t.Errorf("%s: %s: %q does not say %q", c.name, promise.Property, promise.Because, c.says)
				}
			}
			if promise.Holds != want || promise.Because == "" {
				t.Errorf("%s: %s is promised: %v (%s)", c.name, promise.Property, promise.Holds, promise.Because)
			}
		}
	}
}
