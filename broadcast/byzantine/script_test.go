package byzantine

import (
	"slices"
	"testing"

	"parley"
	"parley/broadcast/problem"
)

// script is four processes whose messages a test delivers one by one, and whose timers it fires.
type script struct {
	t         *testing.T
	c         Config
	procs     []*process
	logs      [][]parley.Record
	saved     [][]byte // by process: the state that replaced its log
	flight    []letter
	timers    []map[parley.Timer]bool
	delivered [][]string
	told      [][]parley.Msg // by process: its indications
	refused   map[string]int // by reason: how often any process refused a message
}

// Refused counts refusals.
func (x *script) Refused(_, _ parley.ID, why string) { x.refused[why]++ }

func (*script) Choose(int) int                        { return 0 }
func (*script) Sign(parley.ID, []byte) []byte         { return nil }
func (*script) Verify(parley.ID, []byte, []byte) bool { return false }

type letter struct {
	from, to parley.ID
	m        parley.Msg
}

func newScript(t *testing.T, c Config) *script {
	c.N, c.M = 4, 1
	c = c.withDefaults()
	x := &script{
		t: t, c: c, procs: make([]*process, c.N), logs: make([][]parley.Record, c.N), saved: make([][]byte, c.N),
		timers: make([]map[parley.Timer]bool, c.N), delivered: make([][]string, c.N), told: make([][]parley.Msg, c.N),
		refused: make(map[string]int),
	}
	for id := range parley.ID(c.N) {
		x.procs[id], x.timers[id] = newProcess(c, id), map[parley.Timer]bool{}
		x.do(id, func(p *process, s *parley.Step) { p.Start(s) })
	}
	return x
}

// step runs one clause of a process, and returns its effects in the order in which a host carries them out.
func (x *script) step(id parley.ID, clause func(p *process, s *parley.Step)) []parley.Effect {
	s := &parley.Step{Self: id, N: x.c.N, Host: x}
	clause(x.procs[id], s)
	parley.DurableFirst(s.Effects)
	return s.Effects
}

// carry carries out effects of a process.
func (x *script) carry(id parley.ID, effects []parley.Effect) {
	for _, e := range effects {
		switch e.Op {
		case parley.OpAppend:
			x.logs[id] = append(x.logs[id], parley.Record{Body: e.Msg.Body})
		case parley.OpCompact:
			x.saved[id], x.logs[id] = parley.SaveDurable(x.procs[id], 0, nil), nil
		case parley.OpSend:
			for to := range parley.ID(x.c.N) {
				if to != id && (e.To == to || e.To == parley.All) {
					x.flight = append(x.flight, letter{id, to, e.Msg})
				}
			}
		case parley.OpDeliver:
			x.delivered[id] = append(x.delivered[id], string(e.Msg.Body))
		case parley.OpIndicate:
			x.told[id] = append(x.told[id], e.Msg)
		case parley.OpSetTimer:
			x.timers[id][e.Timer] = true
		case parley.OpStopTimer:
			delete(x.timers[id], e.Timer)
		}
	}
}

func (x *script) do(id parley.ID, clause func(p *process, s *parley.Step)) {
	x.carry(id, x.step(id, clause))
}

func (x *script) request(id parley.ID, payload string) {
	x.do(id, func(p *process, s *parley.Step) { p.Request(s, problem.Request([]byte(payload))) })
}

func (x *script) say(from, to parley.ID, m parley.Msg) {
	x.do(to, func(p *process, s *parley.Step) { p.Receive(s, from, m) })
}

// reborn makes a process from what is on its disk. It has not started.
func (x *script) reborn(id parley.ID) {
	x.procs[id], x.timers[id] = newProcess(x.c, id), map[parley.Timer]bool{}
	if x.saved[id] != nil && !parley.LoadDurable(x.procs[id], 0, x.saved[id]) {
		x.t.Fatalf("process %d cannot read its state", id)
	}
}

// restart crashes a process and starts it again in a life. What was on its way to the process is lost.
func (x *script) restart(id parley.ID, life uint64) {
	x.lose(id)
	x.reborn(id)
	log := x.logs[id]
	x.do(id, func(p *process, s *parley.Step) {
		s.Restart, s.Life, s.Log = true, life, log
		p.Start(s)
	})
}

// lose loses all messages on their way to a process.
func (x *script) lose(to parley.ID) {
	x.flight = slices.DeleteFunc(x.flight, func(l letter) bool { return l.to == to })
}

// deliver delivers all messages between these processes, and those that they cause, in the order of each link.
func (x *script) deliver(among ...parley.ID) {
	x.deliverIf(func(l letter) bool { return slices.Contains(among, l.from) && slices.Contains(among, l.to) })
}

func (x *script) deliverIf(now func(l letter) bool) {
	for range 100_000 {
		at := slices.IndexFunc(x.flight, now)
		if at < 0 {
			return
		}
		l := x.flight[at]
		x.flight = slices.Delete(x.flight, at, at+1)
		x.say(l.from, l.to, l.m)
	}
	x.t.Fatal("messages without end")
}

// settle delivers messages and fires timers in turn, for a while.
func (x *script) settle(among ...parley.ID) {
	for range 60 {
		x.deliver(among...)
		for _, id := range among {
			x.fire(id, lookTimer)
			x.fire(id, viewTimer)
		}
	}
	x.deliver(among...)
}

func (x *script) fire(id parley.ID, timer parley.Timer) {
	if x.timers[id][timer] {
		delete(x.timers[id], timer)
		x.do(id, func(p *process, s *parley.Step) { p.Timeout(s, timer) })
	}
}

// demand demands that these processes have delivered the payload.
func (x *script) demand(payload string, by ...parley.ID) {
	x.t.Helper()
	for _, id := range by {
		if !slices.Contains(x.delivered[id], payload) {
			x.t.Errorf("process %d does not deliver %q, but %q", id, payload, x.delivered[id])
		}
	}
}
