package group_test

import (
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/broadcast/timestamp"
	"parley/membership/group"
	"parley/sim"
)

// A run in which views never change tests none of their properties. One in which a single process installs a
// view does not test agreement. Only deliveries in a view that ends test view synchrony.
func TestViewsPutToTheTest(t *testing.T) {
	leave := sim.Request{At: 1, When: 3000, Msg: parley.Msg{Kind: group.Leave}}
	say := func(when parley.Tick) sim.Request {
		return sim.Request{At: 0, When: when, Msg: problem.Request([]byte("m"))}
	}
	held, untested := parley.Held, parley.NotApplicable
	for name, one := range map[string]struct {
		requests                    []sim.Request
		agreement, order, synchrony string
	}{
		"nothing happens":            {nil, untested, untested, untested},
		"a message in the only view": {[]sim.Request{say(100)}, untested, untested, untested},
		"a process leaves":           {[]sim.Request{leave}, held, held, untested},
		"a message before":           {[]sim.Request{say(100), leave}, held, held, held},
		"a message after":            {[]sim.Request{leave, say(30_000)}, held, held, untested},
	} {
		t.Run(name, func(t *testing.T) {
			p := timestamp.New(timestamp.Config{Config: group.Config{N: 3}})
			s := sim.Run(sim.Options{Protocol: p, Seed: 1, FIFO: true, Requests: one.requests, Until: 60_000})
			for _, v := range parley.Judge(p, s.RunConditions(), &s.History) {
				want, is := map[string]string{
					group.ViewAgreement: one.agreement, group.ViewOrder: one.order, group.ViewSynchrony: one.synchrony,
				}[v.Property.Name]
				if is && v.Outcome() != want {
					t.Errorf("%s: got %v (%v %s), want %v", v.Property.Name, v.Outcome(), v.Broken, v.Vacuous, want)
				}
			}
		})
	}
}

// A view that only one process installs, even twice, shows nothing about agreement.
func TestViewOfOneShowsNoAgreement(t *testing.T) {
	installs := func(at parley.ID, order uint64) parley.ExternalEvent {
		return parley.ExternalEvent{At: at, From: at, Order: order, Msg: parley.Msg{Kind: parley.View, Seq: 2}}
	}
	h := &parley.History{N: 3, Over: true, Indications: []parley.ExternalEvent{installs(0, 1), installs(0, 2)}}
	agreement := group.Properties()[0]
	if why := agreement.Vacuous(h); why != "no two processes install the same view after the first" {
		t.Errorf("%s of one process: got %q", agreement.Name, why)
	}
	h.Indications = append(h.Indications, installs(2, 3))
	if why := agreement.Vacuous(h); why != "" {
		t.Errorf("%s of two processes: got %q, want it put to the test", agreement.Name, why)
	}
}
