package group

import (
	"encoding/binary"
	"fmt"

	"parley"
)

// What outlives a crash. In memory mode that is nothing: a process that crashed never goes
// on, but joins as a new one. In durable mode it is all that the process knew of its view:
// the ballot's records and the layers' stand in the log, and what was decided tells in which
// view they belong. Of a process that joins it is its votes, and from when it is a member on
// all that it was given for that.

// The records of the group itself begin with these. The ballot's begin with kinds of its
// messages.
const (
	lifeKind    = 0x40 + iota // the disk, and the incarnation, 0 of a first member
	foundKind                 // the decision that made a view in which the process is not
	installKind               // what made a member of a joiner
)

// remember makes durable who the process is.
func (g *machine) remember(s *parley.Step) {
	if g.c.Durable {
		s.Append(binary.AppendUvarint(binary.AppendUvarint([]byte{lifeKind}, g.disk), g.life))
	}
}

// record is all that made a member of the joiner: the position and the state, what was
// delivered since, and what INSTALL brought.
func (j *joiner) record(install []byte) []byte {
	b := binary.AppendUvarint([]byte{installKind}, j.start)
	b = appendBytes(b, j.state)
	return append(appendDeliveries(b, j.came), install...)
}

// resume goes through the log from where it was last compacted, and delivers again
// what it delivered. Then it is frozen: whoever holds messages that nobody else does
// must report them, and cannot know what it missed. A process that was no member
// joins, and so does one that finds nothing: it has lost its disk.
func (g *machine) resume(s *parley.Step) {
	if g.disk == 0 && len(s.Log) == 0 {
		g.blank(s)
		g.join(s)
		return
	}
	g.frozen = false
	if g.position > 0 {
		kept := g.kept
		g.position, g.kept, g.size = g.position-uint64(len(kept)), nil, 0
		s.Indicate(parley.Msg{Kind: Resumed, Seq: g.position})
		g.tell(s, kept)
	}
	for _, r := range s.Log {
		child := int(r.Path & (1<<g.bits - 1))
		if !g.again(s, child, r.Body) {
			panic(fmt.Sprintf("group: process %d finds a record that it did not write", s.Self))
		}
	}
	if g.disk == 0 {
		panic(fmt.Sprintf("group: process %d finds a log that does not begin with whose it is", s.Self))
	}
	if g.stage != member {
		g.join(s)
		return
	}
	g.records = len(s.Log)
	g.watch()
	g.freeze()
	g.gap = true
}

// again does what was done when a record was written, and tells whether it was one.
func (g *machine) again(s *parley.Step, child int, rec []byte) bool {
	r := reader{b: rec}
	if child > 0 {
		return child <= len(g.layers) && (g.stage != member || g.layers[child-1].(Durable).Replay(rec))
	}
	switch kind := r.number(installKind); kind {
	case lifeKind:
		g.disk, g.life = r.number(lives), r.number(lives)
		if g.stage = joining; g.life == 0 && !r.bad {
			g.begin(s)
		}
		return r.done()
	case foundKind:
		return g.replay(s, r.b, false)
	case installKind:
		j := &g.joiner
		j.start, j.state = r.number(positions), r.bytes()
		j.came = r.deliveries(g.c.N)
		value := r.bytes()
		d, ok := readDecision(value, g.c.N, len(g.layers))
		if !ok || !g.restore(&r) {
			return false
		}
		g.become(s, d, value)
		return true
	}
	if !g.ballot.Replay(rec) {
		return false
	}
	value, decided := g.ballot.Decision()
	return !decided || g.replay(s, value, true)
}

// replay enters a view, or takes note of one in which the process is not.
func (g *machine) replay(s *parley.Step, value []byte, follows bool) bool {
	d, ok := readDecision(value, g.c.N, len(g.layers))
	switch {
	case !ok:
		return false
	case follows && g.stage == member && d.has(g.own()):
		g.enter(s, d, value)
	default:
		g.stage = joining
		g.adopt(d, value)
	}
	return true
}

// positions is above every position there is.
const positions = 1 << 62

// compact lets the state replace the records, in a step that delivered nothing: if it
// crashed in the middle of that step it would never deliver it.
func (g *machine) compact(s *parley.Step, before uint64) {
	if g.c.Durable && g.stage == member && g.position == before && g.records >= max(g.c.Compact, len(g.kept)) {
		g.records = 0
		s.Compact()
	}
}

// State visits every variable.
func (g *machine) State(v *parley.Vars) {
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
	g.claimState(v)
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
	parley.Num(v, "disk", &g.disk)
	parley.Num(v, "incarnation", &g.life)
	parley.Num(v, "stage", &g.stage)
	parley.Num(v, "position", &g.position)
	parley.Num(v, "view", &g.view.Number)
	v.Set("members", &g.view.Members)
	parley.PerProcess(v, "lives", g.lives, func(_ parley.ID, life *uint64) { parley.Num(v, "incarnation", life) })
	parley.PerProcess(v, "disks", g.disks, func(_ parley.ID, disk *uint64) { parley.Num(v, "disk", disk) })
	v.Bytes("founding", &g.founding)
	g.keptState(v)
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
	parley.Slice(v, "learners", &g.learners, func(_ int, l *learner) {
		v.ID("id", &l.id)
		parley.Num(v, "disk", &l.disk)
		parley.Num(v, "incarnation", &l.life)
		v.Bool("sent", &l.sent)
		parley.Num(v, "position", &l.position)
		v.Bool("ready", &l.ready)
		v.Time("asked", &l.since)
	})
	j := &g.joiner
	v.ID("sponsor", &j.sponsor)
	v.Bool("caught up", &j.caught)
	v.Time("heard", &j.since)
	parley.Num(v, "patience", &j.patience)
	parley.Num(v, "view of the sponsor", &j.view)
	parley.Num(v, "start", &j.start)
	v.Bytes("state", &j.state)
	parley.Slice(v, "came", &j.came, func(_ int, x *delivery) {
		v.ID("of", &x.of)
		v.Bytes("body", &x.body)
	})
	parley.Slice(v, "early", &j.early, func(_ int, e *early) {
		v.ID("from", &e.from)
		parley.Num(v, "layer", &e.child)
		v.Msg("message", parley.Env{From: e.from}, &e.msg)
	})
}
