package run

import (
	"cmp"
	"slices"

	"parley"
	"parley/cluster/lab"
	"parley/sim"
)

// asks copies the requests and suspicions of a simulated run to one between processes. It calls late with the time
// of each.
func (s runSpec) asks(r *lab.Run, opt sim.Options, late func(parley.Tick)) {
	for _, v := range opt.Suspicions {
		suspect := parley.Msg{Kind: parley.Suspect, Origin: v.Of}
		r.Asked[v.At] = append(r.Asked[v.At], lab.Request{When: v.When, Msg: suspect})
		late(v.When)
	}
	for _, q := range opt.Requests {
		r.Asked[q.At] = append(r.Asked[q.At], lab.Request{When: q.When, Msg: q.Msg})
		late(q.When)
	}
	for _, list := range r.Asked { // order: each for itself
		slices.SortStableFunc(list, func(a, b lab.Request) int { return cmp.Compare(a.When, b.When) })
	}
}

// weather copies what a simulated run does to messages and clocks to one between processes. Messages without a
// delay take as long as the links take.
func (s runSpec) weather(r *lab.Run, opt sim.Options) {
	told := opt.Promised
	if told == (parley.Reliance{}) {
		told = s.Protocol.Relies
	}
	r.Trusted = lab.Clock{Offset: told.Offset, Drift: told.Drift}
	r.Detect, r.Relays, r.Paths = opt.Detect, s.Protocol.Relays, s.Protocol.Graph
	r.Weather = lab.Weather{
		Seed: s.Seed, Delay: lab.Delay(opt.Delay), FIFO: opt.FIFO, Loss: opt.Loss, Twice: opt.Twice, Graph: opt.Graph,
		Heal: opt.Heal,
	}
	for _, l := range opt.Links {
		r.Weather.Links = append(r.Weather.Links, lab.Link{
			From: l.From, To: l.To, Since: l.Since, Until: l.Until, Delay: lab.Delay(l.Delay), Loss: l.Loss, Twice: l.Twice,
		})
	}
	r.Clocks = make(map[parley.ID]lab.Clock)
	for _, c := range opt.Clocks {
		r.Clocks[c.At] = lab.Clock{Offset: c.Offset, Drift: c.Drift}
	}
}
