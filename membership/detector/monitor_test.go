package detector_test

import (
	"bytes"
	"flag"
	"testing"

	"parley"
	"parley/membership/detector"
)

// beats calls Check once a period up to a time, and lets process 1 be heard each time if heard is true.
func beats(m *detector.Monitor, c detector.Config, from, to parley.Tick, heard bool) (suspected parley.Set) {
	for now := from; now <= to; now += c.Period {
		if heard {
			m.Heard(now, 1)
		}
		for id := range m.Check(now).All() {
			suspected.Add(id)
		}
	}
	return suspected
}

func config() detector.Config {
	return detector.Config{N: 3, Period: 100, Timeout: 350, Grow: 100, Most: 500}.WithDefaults()
}

// watching returns a monitor of process 0 that watches some processes from now on.
func watching(now parley.Tick, who parley.Set) (detector.Config, *detector.Monitor) {
	c := config()
	m := detector.NewMonitor(c, 0)
	m.Watch(now, who)
	return c, &m
}

// Consecutive heartbeats clear a suspicion, and a single one does not. After each suspicion the timeout is
// longer, up to the largest.
func TestHysteresis(t *testing.T) {
	c, m := watching(0, parley.Everyone(3))
	timeout := c.Timeout
	now := parley.Tick(0)
	for _, want := range []parley.Tick{450, 500, 500} {
		now += c.Period
		beats(m, c, now, now+500, true)
		now += 500
		silent := now + timeout - timeout%c.Period // the last time within its timeout
		if got := beats(m, c, now+c.Period, silent, false); got.Has(1) {
			t.Fatalf("suspected at %d, %d after it was heard, with a timeout of %d", silent, silent-now, timeout)
		}
		if got := m.Check(silent + c.Period); !got.Has(1) || !m.Suspected().Has(1) {
			t.Fatalf("not suspected after a silence of %d", silent+c.Period-now)
		}
		now = silent + c.Period
		if m.Heard(now+1, 1) {
			t.Fatal("one heartbeat clears a suspicion")
		}
		if m.Heard(now+1+timeout+1, 1) {
			t.Fatal("two heartbeats further apart than the timeout clear a suspicion")
		}
		now += 1 + timeout + 1
		if !m.Heard(now+timeout, 1) || m.Suspected().Has(1) {
			t.Fatal("two heartbeats in a row do not clear a suspicion")
		}
		now += timeout
		m.Check(now)
		timeout = want
	}
}

// Heartbeats count as consecutive only since the suspicion.
func TestHysteresisRestarts(t *testing.T) {
	c := config()
	c.Again = 3
	m := detector.NewMonitor(c, 0)
	m.Watch(0, parley.SetOf(1))
	beats(&m, c, 100, 400, false)
	m.Heard(410, 1)
	m.Heard(420, 1)
	if beats(&m, c, 500, 2000, false); m.Heard(2010, 1) || m.Heard(2020, 1) {
		t.Error("heartbeats of long ago count")
	}
	if !m.Heard(2030, 1) {
		t.Error("three heartbeats in a row do not clear the suspicion")
	}
}

// With Again = 1 the first sign of life clears a suspicion.
func TestNoHysteresis(t *testing.T) {
	c := config()
	c.Again = 1
	m := detector.NewMonitor(c, 0)
	m.Watch(0, parley.SetOf(1, 2))
	if got := beats(&m, c, 100, 400, false); got != parley.SetOf(1, 2) {
		t.Fatalf("suspected: %v", got)
	}
	if !m.Heard(410, 1) || m.Heard(420, 1) || m.Suspected() != parley.SetOf(2) {
		t.Error("the first sign of life clears the suspicion, and the second one none")
	}
}

// A process whose own timer fires later than Late gives all processes a whole new timeout; otherwise it does
// not.
func TestOwnPause(t *testing.T) {
	c := config()
	for _, late := range []parley.Tick{c.Late, c.Late + 1} {
		m := detector.NewMonitor(c, 0)
		m.Watch(0, parley.SetOf(1))
		m.Check(100)
		m.Check(200)
		now := 300 + late
		if m.Check(now) != (parley.Set{}) && late > c.Late {
			t.Errorf("suspects after a pause of %d", late)
		}
		if got := m.Suspected().Has(1); got != (late == c.Late) {
			t.Errorf("%d late: suspected is %v", late, got)
		}
		if late > c.Late && (beats(&m, c, now+100, now+c.Timeout, false).Has(1) ||
			!beats(&m, c, now+c.Timeout+50, now+c.Timeout+50, false).Has(1)) {
			t.Error("not a whole timeout from the pause on")
		}
	}
}

// Only watched processes are suspected, and never the process itself. A process that is watched again has a
// whole timeout, and old suspicions are forgotten.
func TestWatch(t *testing.T) {
	c := config()
	m := detector.NewMonitor(c, 0)
	if got := beats(&m, c, 0, 2000, false); got != (parley.Set{}) {
		t.Fatalf("watching nobody, it suspects %v", got)
	}
	m.Watch(2000, parley.SetOf(0, 1))
	if got := beats(&m, c, 2100, 2300, false); got != (parley.Set{}) {
		t.Fatalf("suspected within the timeout: %v", got)
	}
	if got := beats(&m, c, 2400, 3000, false); got != parley.SetOf(1) {
		t.Fatalf("suspected: %v", got)
	}
	if m.Heard(3010, 2) || m.Heard(3020, 0) {
		t.Error("a sign of life of one that is not watched")
	}
	m.Watch(3000, parley.SetOf(2))
	if m.Suspected() != (parley.Set{}) || m.Watched() != parley.SetOf(2) {
		t.Error("who is watched no more is still suspected")
	}
	m.Watch(3000, parley.SetOf(1, 2))
	if got := beats(&m, c, 3100, 3300, false); got != (parley.Set{}) {
		t.Errorf("suspected within the timeout: %v", got)
	}
}

// A monitor that begins to watch late was not paused until then.
func TestWatchLate(t *testing.T) {
	c, m := watching(10_000, parley.SetOf(1))
	if beats(m, c, 10_100, 10_300, false).Has(1) || !beats(m, c, 10_400, 10_400, false).Has(1) {
		t.Error("not suspected when the timeout from the beginning is over")
	}
}

// How long ago a suspected process was heard makes no difference, so that states repeat.
func TestStatesRepeat(t *testing.T) {
	c, m := watching(0, parley.Everyone(3))
	beats(m, c, 100, 1000, false)
	save := func(now parley.Tick) []byte { return parley.Save(monitored{m}, now, nil) }
	before := save(1000)
	beats(m, c, 1100, 5000, false)
	if !bytes.Equal(before, save(5000)) {
		t.Error("a monitor that hears nothing has ever new states")
	}
	fresh := detector.NewMonitor(c, 0)
	if !parley.Load(monitored{&fresh}, 5000, before) || !bytes.Equal(before, parley.Save(monitored{&fresh}, 5000, nil)) {
		t.Error("it does not load what it saved")
	}
}

// monitored is a machine made of a monitor.
type monitored struct{ *detector.Monitor }

func (monitored) Start(*parley.Step)                          {}
func (monitored) Request(*parley.Step, parley.Msg)            {}
func (monitored) Receive(*parley.Step, parley.ID, parley.Msg) {}
func (monitored) Timeout(*parley.Step, parley.Timer)          {}

func TestConfig(t *testing.T) {
	for _, bad := range []detector.Config{
		{}, {N: 257}, {N: 3, Period: -1}, {N: 3, Timeout: 400}, {N: 3, Most: 100}, {N: 3, Again: -1}, {N: 3, Beats: -1},
		{N: 3, Late: -1},
	} {
		if bad.Check() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	if err := (detector.Config{N: 3}).Accurate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	remake := detector.New(detector.Config{N: 3}).Flags(fs)
	if err := fs.Parse([]string{"-n", "5", "-timeout", "20000"}); err != nil {
		t.Fatal(err)
	}
	if p, err := remake(nil); err != nil || p.N != 5 {
		t.Errorf("flags make %d processes, %v", p.N, err)
	}
}
