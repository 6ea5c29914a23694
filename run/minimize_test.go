package run

import (
	"slices"
	"testing"

	"parley/broadcast/diffusion"
	"parley/sim"
)

// Everything that a failure does not need is removed, and nothing else.
func TestMinimize(t *testing.T) {
	p := Plan{
		Workload: Workload{Broadcasts: 12, Within: 900}, Loss: 0.1, Twice: 0.1,
		Random: Random{Crashes: 2, Partitions: 2, Pauses: 3, Suspicions: 4, Drift: 10, Within: 900, Last: 50},
	}
	drawn := p.Draw(diffusion.New(diffusion.Config{N: 5}), 7)
	needed, other := drawn.Pauses[1], string(drawn.Requests[8].Msg.Body)
	asked := 0
	fails := func(q Plan) bool {
		asked++
		third := slices.ContainsFunc(q.Requests, func(r sim.Request) bool { return string(r.Msg.Body) == "m3" })
		ninth := slices.ContainsFunc(q.Requests, func(r sim.Request) bool { return string(r.Msg.Body) == other })
		return third && ninth && slices.Contains(q.Pauses, needed) && q.Twice > 0
	}
	least := drawn.minimize(fails)
	if !fails(least) {
		t.Fatal("the least plan does not fail")
	}
	if len(least.Requests) != 2 || len(least.Pauses) != 1 || least.Faults() != 2 || least.Loss != 0 || least.Twice != 0.1 {
		t.Errorf("%+v", least)
	}
	if asked > 200 {
		t.Errorf("asked %d times", asked)
	}
	if len(drawn.Requests) != 12 || len(drawn.Pauses) != 3 {
		t.Error("the plan that was given is another now")
	}
}
