package om_test

import (
	"slices"

	"parley"
	"parley/agreement/om"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
)

// run lets the source propose the value, with the given behaviors of the faulty
// processes.
func run(
	p parley.Protocol, source parley.ID, value string, seed uint64, how map[parley.ID]faulty.Behavior,
) *sim.Sim {
	return sim.Run(sim.Options{
		Protocol: p, Faulty: how, Seed: seed, Measure: true,
		Requests: []sim.Request{{At: source, Msg: parley.Msg{Kind: parley.Propose, Body: []byte(value)}}},
	})
}

// told is OM(m) in which the faulty processes send correct ones what say returns.
func told(c om.Config, say om.Say) parley.Protocol {
	p := om.Rounds(c)
	p.Lies = om.Tell(c, say)
	return lockstep.Of(p, lockstep.Simulated)
}

func scripted(liars ...parley.ID) map[parley.ID]faulty.Behavior {
	how := make(map[parley.ID]faulty.Behavior)
	for _, id := range liars {
		how[id] = faulty.Script
	}
	return how
}

// table is a host without links: a test passes the messages of one process to the others
// round by round. It keeps the refusals.
type table struct {
	c       om.Config
	p       lockstep.Protocol
	seats   []lockstep.Rounds
	step    parley.Step
	refused []string
	answers []int // of Choose, in order
	asked   []int
}

func newTable(c om.Config) *table {
	tb := &table{c: c, p: om.Rounds(c)}
	for id := range parley.ID(c.N) {
		tb.seats = append(tb.seats, tb.p.New(id))
	}
	tb.step = parley.Step{N: c.N, Host: tb}
	return tb
}

func (tb *table) Choose(n int) int {
	tb.asked = append(tb.asked, n)
	a := tb.answers[0]
	tb.answers = tb.answers[1:]
	return a
}
func (tb *table) Sign(parley.ID, []byte) []byte         { panic("oral messages are not signed") }
func (tb *table) Verify(parley.ID, []byte, []byte) bool { panic("oral messages are not signed") }
func (tb *table) Refused(_, _ parley.ID, why string)    { tb.refused = append(tb.refused, why) }

func (tb *table) at(id parley.ID) (lockstep.Rounds, *parley.Step) {
	tb.step.Self, tb.step.Effects = id, tb.step.Effects[:0]
	return tb.seats[id], &tb.step
}

func (tb *table) absorb(id parley.ID, r int, from parley.ID, m parley.Msg) {
	p, s := tb.at(id)
	p.Absorb(s, r, from, m)
}

func (tb *table) propose(value string) {
	p, s := tb.at(tb.c.Source)
	p.Request(s, parley.Msg{Kind: parley.Propose, Body: []byte(value)})
}

func (tb *table) sends(id parley.ID, r int) []parley.Effect {
	p, s := tb.at(id)
	p.Emit(s, r)
	return slices.Clone(s.Effects)
}

func (tb *table) round(r int) {
	for from := range parley.ID(tb.c.N) {
		for _, e := range tb.sends(from, r) {
			for to := range parley.ID(tb.c.N) {
				if to != from && (e.To == to || e.To == parley.All) {
					tb.absorb(to, r, from, e.Msg)
				}
			}
		}
	}
	for id := range parley.ID(tb.c.N) {
		p, s := tb.at(id)
		p.Close(s, r)
	}
}

// stateful lets the functions that save and load machines see a process.
type stateful struct {
	parley.Base
	r lockstep.Rounds
}

func (m stateful) State(v *parley.Vars) { m.r.State(v) }

func save(r lockstep.Rounds) []byte { return parley.Save(stateful{r: r}, 0, nil) }

func message(path []byte, value string) parley.Msg {
	return parley.Msg{Kind: om.Value, Seq: uint64(len(path)), Body: append(slices.Clone(path), value...)}
}
