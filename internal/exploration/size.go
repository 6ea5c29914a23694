package exploration

import (
	"fmt"
	"math/big"
	"strings"

	"parley"
	"parley/explore"
	"parley/faulty"
	"parley/internal/draw/prose"
	"parley/internal/input"
	"parley/internal/lists"
	"parley/sim"
)

// bytesOfState is the memory for a visited state, without the states that wait and the contents of states.
const bytesOfState = 32

// Endless warns if it is known in advance that a search may not or will not end.
func (s *Search) Endless() string {
	o := &s.options
	if o.Depth > 0 || o.States > 0 || o.Order == explore.RandomOrder {
		return ""
	}
	room := new(big.Int).SetUint64(s.flags.memory << 30 / bytesOfState)
	if many := s.arrivals(); many != nil && many.Cmp(room) > 0 {
		return fmt.Sprintf("there are at least %s states, because the messages of a round arrive in any order, but "+
			"--memory %d holds at most %s: this search will not visit all", great(many), s.flags.memory, great(room))
	}
	bearable := big.NewInt(1e9)
	switch {
	case s.flags.step == "split": // the last round has most of them, but costs only a root of their number
		bearable.SetInt64(1e15)
	case s.protocol.Timing != parley.Synchronous: // each in all orders of arrival
		bearable.SetInt64(1e6)
	}
	if many := s.begins.adversaries(s.protocol); many != nil && many.Cmp(bearable) > 0 {
		return fmt.Sprintf("the faulty processes can answer in at least %s ways: this search may never end", great(many))
	}
	return ""
}

// arrivals returns a lower bound on the number of states that results from the messages of a round arriving one by
// one in any order: each correct process may have received any subset of those it expects. It is nil where that does
// not apply.
func (s *Search) arrivals() *big.Int {
	p := s.protocol
	if p.Timing != parley.Synchronous || s.flags.step != grains[0] || s.flags.pairs {
		return nil
	}
	rounds, correct := 1, p.N-len(s.begins.liars[0])
	if p.Cost != nil {
		rounds = max(p.Cost(p.N, p.M).Rounds, 1)
	}
	many := new(big.Int).Lsh(big.NewInt(1), uint(correct*(p.N-1)))
	return many.Mul(many, big.NewInt(int64(rounds*len(s.begins.roots))))
}

// adversaries returns in how many ways the liars of one initial state may answer in one run in which all others are
// correct, as the maximum over initial states. It is nil if no process lies at will.
func (b *initialStates) adversaries(p parley.Protocol) *big.Int {
	const looked = 8 // initial states
	var most *big.Int
	for _, r := range b.roots[:min(len(b.roots), looked)] {
		ways, some := big.NewInt(1), false
		counting := make(coalition)
		for id, how := range r.Faulty { // order: a product has none
			if atWill(how) {
				some = true
				silent := how.Name == faulty.Any.Name
				how.Choose = func(_ *parley.Step, _ *parley.Turn, _, n int) int {
					if !silent {
						n--
					}
					ways.Mul(ways, big.NewInt(int64(n)))
					return 0
				}
			}
			counting[id] = how
		}
		if !some {
			continue
		}
		sim.Run(sim.Options{
			Protocol: p, Faulty: counting, Steps: 1 << 20,
			Requests: lists.Of(r.Requests, func(q explore.Request) sim.Request { return sim.Request{At: q.At, Msg: q.Msg} }),
		})
		if most == nil || ways.Cmp(most) > 0 {
			most = ways
		}
	}
	return most
}

// Smaller names up to three ways to visit less.
func (s *Search) Smaller() string {
	ways := s.ways()
	return "to visit fewer states: " + strings.Join(ways[:min(3, len(ways))], ", or ")
}

// ways returns flags that make a search smaller, ordered by how much of a proof the smaller search still is.
func (s *Search) ways() (ways []string) {
	add := func(is bool, form string, args ...any) {
		if is {
			ways = append(ways, fmt.Sprintf(form, args...))
		}
	}
	m, sync := s.options.Model, s.protocol.Timing == parley.Synchronous
	liars := s.begins.liars
	faults := m.Crashes + m.Losses + m.Doubles + m.FalseSuspicions + m.Timeouts
	add(sync && faults == 0 && s.flags.step == grains[0] && !s.flags.pairs, "--step round or --step split")
	p := s.protocol
	least := p.N <= 2 || s.flags.fs.Lookup("n") == nil || !s.flags.beyond && p.Bound != nil && p.Bound(p.N-1, p.M) != nil
	add(!least, "-n %d", p.N-1)
	for id := range parley.ID(s.protocol.N) {
		if how, lies := liars[0][id]; lies && atWill(how) {
			bare := s.names.Bare(id)
			add(!s.begins.chosen, "--faulty %s for one choice of the faulty processes", bare)
			add(true, "--faulty %s=%s for one way to lie", bare, faulty.TwoFaced.Name)
			add(!s.flags.outspoken, "--outspoken, which leaves out silence")
			break
		}
	}
	for _, c := range faultCounts(&s.flags.model) {
		some := c.flag == "crashes" && *c.n > 1 && m.CrashOnly != (parley.Set{})
		add(some, "--crashes with fewer entries")
		add(*c.n > 0 && !some, "--%s %d", c.flag, *c.n-1)
	}
	add(len(s.begins.asked) > 1, "--requests with fewer requests")
	if len(s.begins.values) > 1 {
		add(true, "--values %s for one value", input.Quote(s.begins.values[0]))
	}
	whole := s.flags.step == "split" || s.flags.pairs // these have neither depth nor order
	add(!whole && s.flags.order != orders[1], "--depth 20 for the first 20 steps of each run")
	add(!whole && s.flags.order != orders[2], "--order random, which draws runs and proves nothing")
	add(s.flags.step == "split", "--step round, which --depth and --states can limit")
	add(!whole && s.flags.states == 0, "--states 100000, which proves nothing")
	return ways
}

// great formats a number that may be very large.
func great(x *big.Int) string {
	if x.IsUint64() && x.Uint64() < 1e15 {
		return prose.Number(x.Uint64())
	}
	return fmt.Sprintf("10^%d", len(x.String())-1)
}
