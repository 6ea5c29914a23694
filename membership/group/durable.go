package group

import (
	"encoding/binary"
	"fmt"

	"parley"
)

// What outlives a crash. In memory mode that is the incarnation alone: a process that
// crashed never goes on, but joins as a new one. In durable mode it is all that the
// process knew of its view: the ballot's records and the layers' stand in the log,
// and what was decided tells in which view they belong.

// lifeKind begins the record of an incarnation. The ballot's records begin with kinds
// of its messages.
const lifeKind = 0x40

func lifeRecord(life uint64) []byte { return binary.AppendUvarint([]byte{lifeKind}, life) }

func isLife(rec []byte) bool { return len(rec) > 0 && rec[0] == lifeKind }

// recall takes the incarnation from the log.
func (g *machine) recall(s *parley.Step) {
	for _, r := range s.Log {
		if r.Path == 0 && isLife(r.Body) {
			g.recallLife(s, r.Body)
		}
	}
}

func (g *machine) recallLife(s *parley.Step, rec []byte) {
	life, rest, err := parley.ReadUvarint(rec[1:], lives)
	if err != nil || len(rest) > 0 {
		panic(fmt.Sprintf("group: process %d finds a record that it did not write", s.Self))
	}
	g.life = max(g.life, life)
}

// resume goes through the log from where it was last compacted, and delivers again
// what it delivered. Then it is frozen: whoever holds messages that nobody else does
// must report them, and cannot know what it missed. A process that was no member
// joins.
func (g *machine) resume(s *parley.Step) {
	if g.stage == joining && g.life == 0 && g.c.Initial.Has(g.self) {
		g.stage = member
		g.begin(s)
	}
	g.frozen = false
	if g.position > 0 {
		s.Indicate(parley.Msg{Kind: Resumed, Seq: g.position})
	}
	for _, r := range s.Log {
		switch child := int(r.Path & (1<<g.bits - 1)); {
		case child == 0 && isLife(r.Body):
			g.recallLife(s, r.Body)
			g.stage = joining // and no member since
		case g.stage != member: // of a view that the log does not know
		case child == 0 && g.ballot.Replay(r.Body):
			if value, decided := g.ballot.Decision(); decided {
				g.replay(s, value)
			}
		case child == 0 || child > len(g.layers) || !g.layers[child-1].(Durable).Replay(r.Body):
			panic(fmt.Sprintf("group: process %d finds a record that it did not write", s.Self))
		}
	}
	if g.stage != member {
		g.stage = joining
		g.join(s)
		return
	}
	g.records = len(s.Log)
	g.watch()
	g.freeze()
	g.gap = true
}

// replay is what Decided did.
func (g *machine) replay(s *parley.Step, value []byte) {
	d, ok := readDecision(value, g.c.N, len(g.layers))
	if !ok {
		panic("group: the decision on a view cannot be read")
	}
	if !d.has(candidate{g.self, g.life}) {
		g.stage = out
		return
	}
	g.enter(s, d, value)
}

// compact lets the state replace the records, in a step that delivered nothing: if it
// crashed in the middle of that step it would never deliver it.
func (g *machine) compact(s *parley.Step, before uint64) {
	if g.c.Durable && g.stage == member && g.position == before && g.records >= g.c.Compact {
		g.records = 0
		s.Compact()
	}
}

// State visits every variable.
func (g *machine) State(v *parley.Vars) {
	v.Durable(func() { parley.Num(v, "incarnation", &g.life) })
	if g.c.Durable {
		v.Durable(func() { g.viewState(v) })
	} else {
		g.viewState(v)
	}
	// In memory mode nothing of them outlives a crash. In durable mode they say
	// themselves what does: not a ballot under way, nor what waits to be sent.
	if g.c.Durable || !v.Skips() {
		g.partsState(v)
	}
	v.Bool("frozen", &g.frozen)
	v.Time("since", &g.since)
	v.Time("entered", &g.entered)
	v.Bool("gap", &g.gap)
	v.Machine("monitor", &g.monitor)
	v.Set("told", &g.told)
	v.Set("gone", &g.gone)
	g.dueState(v)
	v.Bool("leaving", &g.leaving)
	v.Set("exclude", &g.exclude)
	g.stuck.visit(v)
	for i := range g.unsent {
		g.unsent[i].visit(v)
	}
	v.Time("looked", &g.looked)
	v.Bool("blocked", &g.blocked)
	v.Bool("stale", &g.stale)
	v.Bool("asked", &g.asked)
	parley.Slice(v, "queue", &g.queue, func(_ int, m *parley.Msg) { v.Msg("request", parley.Env{}, m) })
	parley.Slice(v, "armed", &g.armed, func(_ int, t *timer) {
		parley.Num(v, "layer", &t.layer)
		parley.Num(v, "timer", &t.number)
	})
	g.joinState(v)
	parley.Num(v, "records", &g.records)
}

// viewState visits what belongs to a view.
func (g *machine) viewState(v *parley.Vars) {
	parley.Num(v, "stage", &g.stage)
	parley.Num(v, "position", &g.position)
	parley.Num(v, "last", &g.last)
	parley.Num(v, "view", &g.view.Number)
	v.Set("members", &g.view.Members)
	parley.PerProcess(v, "lives", g.lives, func(_ parley.ID, life *uint64) { parley.Num(v, "incarnation", life) })
	v.Bytes("founding", &g.founding)
}

// partsState visits the ballot and the layers.
func (g *machine) partsState(v *parley.Vars) {
	if v.Loading() {
		g.newBallot()
	}
	v.Machine("ballot", g.ballot)
	for i, layer := range g.layers {
		v.Machine(g.services[i].Name, layer)
	}
}

// dueState visits the times at which this member asks for another view, if any.
func (g *machine) dueState(v *parley.Vars) {
	needed := g.due != 0
	v.Bool("needed", &needed)
	if needed {
		v.Time("due", &g.due)
		parley.Num(v, "wait", &g.wait)
		v.Bool("tried", &g.tried)
	} else if v.Loading() {
		g.due, g.wait, g.tried = 0, 0, false
	}
	if g.ballot.Started() {
		v.Time("flush", &g.flush)
	}
}

func (w *stall) visit(v *parley.Vars) {
	parley.Num(v, "mark", &w.mark)
	v.Time("since", &w.since)
}

// joinState visits what belongs to joining, on either side.
func (g *machine) joinState(v *parley.Vars) {
	l := &g.learner
	v.Bool("learner", &l.here)
	if l.here {
		v.ID("id", &l.id)
		parley.Num(v, "incarnation", &l.life)
		v.Bool("sent", &l.sent)
		parley.Num(v, "position", &l.position)
		v.Bool("ready", &l.ready)
		v.Time("asked", &l.since)
	} else if v.Loading() {
		*l = learner{}
	}
	j := &g.joiner
	v.ID("sponsor", &j.sponsor)
	v.Bool("caught up", &j.caught)
	v.Time("heard", &j.since)
	parley.Num(v, "patience", &j.patience)
	parley.Slice(v, "early", &j.early, func(_ int, e *early) {
		v.ID("from", &e.from)
		parley.Num(v, "layer", &e.child)
		v.Msg("message", parley.Env{From: e.from}, &e.msg)
	})
}
