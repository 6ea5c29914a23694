package group

import (
	"fmt"

	"parley"
)

// What survives a crash. In memory mode nothing does: a process that crashed joins as a new one. In durable
// mode all that the process knew of its view survives: the log holds the records of the ballot and of the
// layers, and the decisions show to which view they belong. Of a joiner its votes survive, and from the
// moment it is a member everything that it received for that.

// The records of the group itself begin with these; the ballot's begin with kinds of its messages.
const (
	lifeKind    = 0x40 + iota // the disk, and the incarnation, which is 0 for a first member
	foundKind                 // the decision that made a view that does not include the process
	installKind               // what made a joiner a member
)

// resume replays the log from its last compaction, and delivers again what it delivered. Then the process is
// frozen: it must report messages that it alone may hold, and it cannot know what it missed. A process that
// was no member joins, and so does one that finds nothing: it has lost its disk.
func (g *machine) resume(s *parley.Step) {
	if g.own.disk == 0 && len(s.Log) == 0 {
		g.blank(s)
		g.join(s)
		return
	}
	g.frozen = false
	if g.history.position > 0 {
		kept := g.history.rewind()
		s.Indicate(parley.Msg{Kind: ReplayStarted, Seq: g.history.position})
		g.history.tell(s, kept)
	}
	for _, r := range s.Log {
		child := int(r.Path & (1<<g.layers.bits - 1))
		if !g.replayRecord(s, child, r.Body) {
			panic(fmt.Sprintf("group: process %d finds a record that it did not write", s.Self))
		}
	}
	if g.own.disk == 0 {
		panic(fmt.Sprintf("group: process %d finds a log that does not begin with whose it is", s.Self))
	}
	if g.stage != member {
		g.join(s)
		return
	}
	g.layers.records = len(s.Log)
	g.suspicions.begin(g.now, g.view.Members, g.c.Detector.Again)
	g.freeze()
	g.gap, g.resumed = true, true
}

// replayRecord repeats what was done when rec was written, and reports whether it was a record of the process.
func (g *machine) replayRecord(s *parley.Step, child int, rec []byte) bool {
	r := parley.Reader{Rest: rec}
	if child > 0 {
		return child <= len(g.layers.list) && (g.stage != member || g.layers.list[child-1].(Durable).Replay(rec))
	}
	switch kind := r.Number(installKind); kind {
	case lifeKind:
		g.own.disk, g.own.life = r.Number(maxIncarnation), r.Number(maxIncarnation)
		if g.stage = joining; g.own.life == 0 && !r.Bad {
			g.begin(s)
		}
		return r.Done()
	case foundKind:
		return g.replay(s, r.Rest, false)
	case installKind:
		j := &g.joiner
		j.start, j.state = r.Number(positions), r.Bytes()
		j.delivered = deliveries(&r, g.c.N)
		value := r.Bytes()
		d, ok := g.layers.read(value)
		if !ok || !g.layers.restore(&r) {
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

// replay enters a view, or notes one that does not include the process.
func (g *machine) replay(s *parley.Step, value []byte, follows bool) bool {
	d, ok := g.layers.read(value)
	switch {
	case !ok:
		return false
	case follows && g.stage == member && d.next.has(g.own):
		g.enter(s, d, value)
	default:
		g.stage = joining
		g.adopt(d, value)
	}
	return true
}

// positions is greater than every position.
const positions = 1 << 62

// compact replaces the records by the state, but only in a step that delivered nothing: if the process
// crashed in the middle of a delivering step, it would never deliver again what the state says was delivered.
func (g *machine) compact(s *parley.Step, before uint64) {
	if g.c.Durable && g.stage == member && g.history.position == before &&
		g.layers.records >= max(g.c.Compact, len(g.history.kept)) {
		g.layers.records = 0
		s.Compact()
	}
}

// State visits every variable.
func (g *machine) State(v *parley.Vars) {
	v.DurableIf(g.c.Durable, func() { g.durableState(v) })
	// In memory mode none of this survives a crash. In durable mode the ballot and the layers declare
	// themselves what does: neither a ballot in progress nor what waits to be sent.
	if g.c.Durable || !v.Skips() {
		g.partsState(v)
	}
	if g.c.Liars > 0 {
		v.Bool("steady", &g.steady)
	}
	g.claims.State(v)
	g.viewState(v)
	parley.Slice(v, "queue", &g.queue, func(_ int, m *parley.Msg) { v.Msg("request", parley.Env{}, m) })
	g.joiner.State(v)
}

// durableState visits who the process is and what it knows of its view. The disk format sets the order.
func (g *machine) durableState(v *parley.Vars) {
	parley.Num(v, "disk", &g.own.disk)
	parley.Num(v, "incarnation", &g.own.life)
	parley.Num(v, "stage", &g.stage)
	parley.Num(v, "position", &g.history.position)
	g.roster.visit(v)
	v.Bytes("founding", &g.founding)
	g.history.keptState(v)
}

// partsState visits the ballot and the layers.
func (g *machine) partsState(v *parley.Vars) {
	if v.Loading() {
		g.newBallot()
	}
	v.Machine("ballot", g.ballot)
	g.layers.visit(v)
}
