package timestamp_test

import (
	"flag"
	"fmt"
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/broadcast/timestamp"
	"parley/internal/viewtest"
	"parley/membership/group"
	"parley/sim"
)

var seeds = flag.Int("seeds", 200, "runs of each size in TestStorm")

// safe names the properties that hold in every run.
var safe = []string{
	group.ViewAgreement, group.ViewOrder, group.ViewSynchrony, timestamp.OneSequence,
	problem.Integrity, problem.UniformTotalOrder,
}

func storms(t *testing.T, c timestamp.Config) {
	t.Helper()
	var also func(h *parley.History) error
	if c.Durable {
		also = noneMissed
	}
	viewtest.Storms(t, timestamp.New(c), c.Config, *seeds, safe, also)
}

// Under any combination of faults the deliveries of every process are a prefix of one sequence, in agreed
// views; and afterwards there is progress if a majority of all processes is left.
func TestStorm(t *testing.T) {
	for _, n := range []int{3, 4, 5} {
		storms(t, timestamp.Config{Config: group.Config{N: n, Return: true}})
	}
}

// The same where single messages are not believed, although no process lies.
func TestStormDoubting(t *testing.T) {
	for _, n := range []int{4, 5} {
		storms(t, timestamp.Config{Config: group.Config{N: n, Return: true, Liars: 1}})
		storms(t, timestamp.Config{Config: group.Config{N: n, Return: true, Liars: 1, Durable: true}})
	}
}

// Excluded processes that do not rejoin: FIFO order is still promised.
func TestPromisesOfExclusion(t *testing.T) {
	outs := 0
	for seed := range uint64(300) {
		opt := viewtest.Storm(seed, timestamp.New(timestamp.Config{Config: group.Config{N: 3 + int(seed%3)}}))
		for i := range opt.Crashes {
			opt.Crashes[i].Back = 0
		}
		s := sim.Run(opt)
		if viewtest.Count(&s.History, group.Excluded) == 0 {
			continue
		}
		outs++
		for _, v := range parley.Judge(opt.Protocol, s.RunConditions(), &s.History) {
			if v.Violated() || v.Property.Name == problem.FIFOOrder && !v.Promise.Holds {
				t.Errorf("seed %d: %s: %+v", seed, v.Property.Name, v)
			}
		}
	}
	if outs < 20 {
		t.Errorf("in %d runs a process was excluded", outs)
	}
}

// The same with batched acknowledgements and few messages in flight.
func TestStormInBatches(t *testing.T) {
	for _, n := range []int{3, 4} {
		storms(t, timestamp.Config{Config: group.Config{N: n, Return: true}, Window: 2, Hold: 400})
	}
}

// The same where a restarted process resumes from its log.
func TestStormDurable(t *testing.T) {
	for _, n := range []int{3, 4, 5} {
		storms(t, timestamp.Config{Config: group.Config{N: n, Return: true, Durable: true, Compact: 6}})
		storms(t, timestamp.Config{Config: group.Config{
			N: n, Return: true, Durable: true, Compact: 6, Keep: 4, KeepBytes: 1 << 10,
		}})
	}
}

// noneMissed demands that a restarted process begins with no later position than the next one: the layer
// above remembers all that was delivered before.
func noneMissed(h *parley.History) error {
	last, restarts, told := make([]uint64, h.N), h.Restarts, h.Indications
	fresh := make([]bool, h.N)
	for _, d := range h.Deliveries {
		for ; len(restarts) > 0 && restarts[0].Order < d.Order; restarts = restarts[1:] {
			fresh[restarts[0].At] = true
		}
		for ; len(told) > 0 && told[0].Order < d.Order; told = told[1:] {
			if told[0].Msg.Kind == group.SnapshotInstalled {
				last[told[0].At], fresh[told[0].At] = told[0].Msg.Seq, false
			}
		}
		if fresh[d.At] && d.Msg.Seq > last[d.At]+1 {
			return fmt.Errorf("%s is back and delivers position %d after position %d", h.Name(d.At), d.Msg.Seq, last[d.At])
		}
		last[d.At], fresh[d.At] = max(last[d.At], d.Msg.Seq), false
	}
	return nil
}

func TestDeliveredSurvivesRestartsOfAll(t *testing.T) {
	c := timestamp.Config{Config: group.Config{N: 3, Return: true, Durable: true}}
	viewtest.DeliveredSurvivesRestartsOfAll(t, timestamp.New(c))
}
