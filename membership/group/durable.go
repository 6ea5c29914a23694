package group

import (
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

// resume goes through the log from where it was last compacted, and delivers again
// what it delivered. Then it is frozen: whoever holds messages that nobody else does
// must report them, and cannot know what it missed. A process that was no member
// joins, and so does one that finds nothing: it has lost its disk.
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
		if !g.again(s, child, r.Body) {
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
	g.gap = true
}

// again does what was done when a record was written, and tells whether it was one.
func (g *machine) again(s *parley.Step, child int, rec []byte) bool {
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
		j.came = deliveries(&r, g.c.N)
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

// replay enters a view, or takes note of one in which the process is not.
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

// positions is above every position there is.
const positions = 1 << 62

// compact lets the state replace the records, in a step that delivered nothing: if it
// crashed in the middle of that step it would never deliver it.
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
	// In memory mode nothing of them outlives a crash. In durable mode they say
	// themselves what does: not a ballot under way, nor what waits to be sent.
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

// durableState visits what the process knows of its view, and who it is. Disks have it in this order.
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
