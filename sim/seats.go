package sim

import (
	"slices"

	"parley"
	"parley/faulty"
)

// process is the state of one process in the simulator.
type process struct {
	seat    *parley.Seat
	down    bool
	gone    bool  // will not restart
	lost    bool  // will restart without durable state
	doom    int32 // 1 + index of the crash that waits for a step, or 0
	steps   int
	lives   uint64          // number of restarts
	state   []byte          // durable: the state from Compact, which replaces records
	log     []parley.Record // durable: the later records
	timers  []timer
	clock   Clock
	until   parley.Tick // end of its pause; 0: not paused
	waiting []event     // events during its pause
	rushing bool
}

// timer is one armed timer of a process.
type timer struct {
	path   parley.Path
	number parley.Timer
	key    int32
}

// arm sets a timer, which replaces one with the same path and number, and returns when it expires.
func (p *process) arm(e *parley.Effect, key int32, now parley.Tick, skewed bool) parley.Tick {
	p.disarm(e.Path, e.Timer)
	p.timers = append(p.timers, timer{e.Path, e.Timer, key})
	if !skewed {
		return after(now, e.After)
	}
	return max(p.clock.When(after(p.clock.Shows(now), e.After)), now)
}

func (p *process) disarm(path parley.Path, number parley.Timer) {
	p.timers = slices.DeleteFunc(p.timers, func(t timer) bool { return t.path == path && t.number == number })
}

func (p *process) find(key int32) int {
	return slices.IndexFunc(p.timers, func(t timer) bool { return t.key == key })
}

// waits keeps an event of a process that is paused, and returns whether it did.
func (p *process) waits(e event) bool {
	if p.until == 0 || e.what > hinted {
		return false
	}
	p.waiting = append(p.waiting, e)
	return true
}

// seating assigns processes to machines, and holds the step of the present clause.
type seating struct {
	opt     *Options // of the run
	seats   []parley.Seat
	procs   []process
	faulty  parley.Set
	members []parley.Set // by process: the processes of its seat
	step    parley.Step
	seated  *parley.Seat // the seat whose members the step has
	skewed  bool         // clocks differ
}

// reset seats the processes of another run: one machine for each correct process, one for all faulty ones.
func (g *seating) reset(opt *Options) {
	p := opt.Protocol
	if len(g.procs) != p.N {
		g.procs, g.members = make([]process, p.N), make([]parley.Set, p.N)
	}
	for i := range g.procs {
		g.procs[i] = process{timers: g.procs[i].timers[:0], waiting: g.procs[i].waiting[:0]}
	}
	g.opt, g.seats, g.seated = opt, g.seats[:0], nil
	g.faulty, _ = faulty.Cast(opt.Faulty)
	if len(g.opt.Faulty) > 0 {
		g.seats = append(g.seats, g.coalition().Seat())
	}
	for id := range parley.ID(p.N) {
		if !g.faulty.Has(id) {
			g.seats = append(g.seats, parley.Seat{IDs: []parley.ID{id}, Machine: p.New(id)})
		}
	}
	for i := range g.seats {
		for _, id := range g.seats[i].IDs {
			g.procs[id].seat = &g.seats[i]
			g.procs[id].rushing = g.seats[i].Rushing
			g.members[id] = parley.SetOf(g.seats[i].IDs...)
		}
	}
}

// Seats returns the seats of the run. Between two events a machine may be replaced.
func (g *seating) Seats() []parley.Seat { return g.seats }

// Fresh returns a new machine for a seat of the run.
func (g *seating) Fresh(seat int) parley.Machine {
	if ids := g.seats[seat].IDs; !g.faulty.Has(ids[0]) {
		return g.opt.Protocol.New(ids[0])
	}
	return g.coalition()
}

// coalition returns a new machine of the faulty processes. In a synchronous protocol it waits 950 ticks for
// the messages of others, longer than messages take by default.
func (g *seating) coalition() *faulty.Coalition {
	rush := parley.Tick(0)
	if g.opt.Protocol.Timing == parley.Synchronous {
		rush = 950
	}
	return faulty.New(g.opt.Protocol, rush, g.opt.Faulty)
}

// Machine returns the machine that runs process id.
func (g *seating) Machine(id parley.ID) parley.Machine { return g.procs[id].seat.Machine }

// Durable returns the data with which a process would restart after a crash: the durable state of the last
// Compact, or nil if there was none, and the records since then.
func (g *seating) Durable(id parley.ID) (state []byte, log []parley.Record) {
	return g.procs[id].state, g.procs[id].log
}

// serves reports whether a process is up, and not in the coalition.
func (g *seating) serves(id parley.ID) bool {
	return int(id) < len(g.procs) && !g.procs[id].down && !g.faulty.Has(id)
}

// up returns those of some processes that are up.
func (g *seating) up(some parley.Set) parley.Set {
	for id := range some.All() {
		if g.procs[id].down {
			some.Remove(id)
		}
	}
	return some
}

// prepare prepares the step for a clause of a process.
func (g *seating) prepare(id parley.ID, path parley.Path, now parley.Tick) {
	st := &g.step
	st.Self, st.Now, st.Path, st.Epoch = id, now, path, 0
	if g.skewed {
		st.Now = g.procs[id].clock.Shows(now)
	}
	if seat := g.procs[id].seat; seat != g.seated {
		st.Members, g.seated = g.members[id], seat
	}
	st.Effects = st.Effects[:0]
}
