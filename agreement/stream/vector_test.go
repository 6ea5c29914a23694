package stream

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"parley"
	"parley/faulty"
	"parley/sim"
)

// proposal is a request of a stream in which all are sources.
func proposal(at parley.ID, when parley.Tick, number uint64, name, value string) sim.Request {
	return sim.Request{At: at, When: when, Msg: parley.Msg{
		Kind: parley.Propose, Value: number, Seq: 100, Body: item{name, []byte(value)}.append(nil),
	}}
}

// vectors returns the answers at the correct processes, by number of the request.
func vectors(s *sim.Sim) map[parley.ID]map[uint64][]string {
	out := make(map[parley.ID]map[uint64][]string)
	for id := range s.Correct().All() {
		out[id] = make(map[uint64][]string)
	}
	for _, d := range s.History.Deliveries {
		if s.History.Correct(d.At) && d.Msg.Kind == parley.Decide {
			var list []string
			values, _ := AgreedVector(d.Msg, s.History.N)
			for _, v := range values {
				list = append(list, string(v))
			}
			out[d.At][d.Msg.Value] = list
		}
	}
	return out
}

// A name that only one node requests, and keeps requesting, does not keep its other names
// from being decided.
func TestALonelyProposal(t *testing.T) {
	common := func(id parley.ID) string { return fmt.Sprintf("%0100d", id) }
	for _, how := range []faulty.Behavior{faulty.Honest, faulty.Silent, faulty.TwoFaced} {
		opt := sim.Options{
			Protocol: simulated(Key{EIG, 1, Everyone}, 4), Faulty: map[parley.ID]faulty.Behavior{3: how}, Until: 60000,
		}
		for id := range parley.ID(3) {
			lonely := fmt.Sprintf("lonely%d", id)
			opt.Requests = append(opt.Requests, proposal(id, 0, 1, lonely, string(bytes.Repeat([]byte("x"), MaxProposal))),
				proposal(id, 20000, 2, "common", common(id)))
		}
		for id, of := range vectors(sim.Run(opt)) {
			if of[1] != nil {
				t.Errorf("%s: process %d is told %v of what it asked alone", how.Name, id, of[1])
			}
			if of[2] == nil || !slices.Equal(of[2][:3], []string{common(0), common(1), common(2)}) {
				t.Errorf("%s: process %d is told %v", how.Name, id, of[2])
			}
		}
	}
}

// More names than fit into one value are agreed on in turn, with the values of all processes.
func TestManyProposals(t *testing.T) {
	opt := sim.Options{Protocol: simulated(Key{EIG, 1, Everyone}, 4), Until: 200000, Steps: 1 << 20}
	const count = 12
	for id := range parley.ID(4) {
		for k := range uint64(count) {
			value := append(bytes.Repeat([]byte{'a' + byte(k)}, 300), byte('0'+id))
			opt.Requests = append(opt.Requests, proposal(id, parley.Tick(k), k+1, fmt.Sprint(k), string(value)))
		}
	}
	all := vectors(sim.Run(opt))
	for id, of := range all {
		if len(of) != count {
			t.Errorf("process %d is told of %d names", id, len(of))
		}
		if fmt.Sprint(of) != fmt.Sprint(all[0]) {
			t.Errorf("process %d is told something else than the first", id)
		}
	}
}
