package parleytest

import (
	"parley"
	"parley/sim"
)

// CrashPoints makes the run of opt, and returns every crash that could have happened in it. Each process may crash in
// each of its steps, after any number of the step's effects. With 0 effects nothing of the step is durable. For a
// process that crashes in the run, only steps after this crash have points. Two runs that are equal up to some step
// have the same points up to it. To get the points of a second crash, run with the first one in opt.Crashes.
func CrashPoints(opt sim.Options) []sim.Crash {
	var effects [parley.MaxProcesses][]int // by process and step
	p := opt.Protocol
	made := p.New
	p.New = func(self parley.ID) parley.Machine { return counting{made(self), &effects[self]} }
	opt.Protocol = p
	sim.Run(opt)
	var out []sim.Crash
	for id := range parley.ID(p.N) {
		after := 0
		for _, c := range opt.Crashes {
			if c.At == id {
				after = max(after, c.Step)
			}
		}
		for i, most := range effects[id] {
			for k := 0; i >= after && k <= most; k++ {
				out = append(out, sim.Crash{At: id, Step: i + 1, Effects: k})
			}
		}
	}
	return out
}

// counting counts the effects of each step of a machine. A send to all counts as one for each receiver.
type counting struct {
	parley.Machine
	effects *[]int
}

// count runs a clause, and counts its effects.
func (c counting) count(s *parley.Step, clause func()) {
	mark := s.Mark()
	clause()
	*c.effects = append(*c.effects, len(parley.Singly(s.Effects[mark:], s.N)))
}

func (c counting) Start(s *parley.Step) { c.count(s, func() { c.Machine.Start(s) }) }

func (c counting) Request(s *parley.Step, m parley.Msg) {
	c.count(s, func() { c.Machine.Request(s, m) })
}

func (c counting) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	c.count(s, func() { c.Machine.Receive(s, from, m) })
}

func (c counting) Timeout(s *parley.Step, t parley.Timer) {
	c.count(s, func() { c.Machine.Timeout(s, t) })
}
