package mux

import (
	"encoding/binary"
	"slices"

	"parley"
	"parley/lockstep"
)

// RejoinConfig lets processes of a pipeline come back: after a crash, or when they have lost
// touch with the others. It needs messages of the machine's own, and n >= 2m+2: with fewer
// processes a liar can keep who comes back out, or have it begin at a time of his own.
//
// A process that is out counts as one of the m that may be faulty. What it has to find is
// a slot from which on it takes part, and when that one may begin. It
//   - asks where the others are, until so much time has passed that all slots in which it
//     may have spoken before are over everywhere, and n-1-m others have answered. The m+1st
//     greatest answer is no greater than what some correct process has begun, and, since
//     all that are correct have answered by then, no less than what m+1 of them had;
//   - listens for as long as a slot lasts, and says nothing. Of a slot that m+1 processes'
//     round 0 has told it of, a correct one has begun it: it notes that time as the slot's
//     beginning. Slots of before it listened began too long ago to matter;
//   - takes part in the slots behind. Those up to there are over for it.
//
// It never speaks in a slot that it may have spoken in before: before it speaks beyond what
// it has reserved, it makes a greater reserve durable, half a window at a time, and in its
// next life goes on behind that. Where that is more than the others have begun, they begin
// what is missing, and it waits for that. Who has nothing durable goes by what the others tell.
// What it says waits for the disk then, and a slow one makes it late. So before a process begins
// the first slot that it knows of, it has the others reserve, too: it asks them where they are, and
// neither that nor what they answer leaves before the disk has the reserve.
//
// The time that it notes lies at most two delays behind the first correct beginning, and
// three slacks: the first one's, another's who hears it, and its own. So the slots of who
// came back begin as much later than the first, and rounds must have room for three delays
// and five times the slack, where they otherwise have for two and four. This does not add
// up as long as m+1 correct processes begin within one delay of each other: who hears of a
// slot from m+1 begins it at once, before the window's time, for one of them is correct
// and its window has let it. After more returns than n-2m-1 it could, if a liar calls for
// all that windows let, without a pause. To what correct processes themselves call for it
// does not happen: they leave half a round more between a slot and the one a window later,
// after which all begin as they hear, within one delay.
//
// If all come back at once nobody goes on whom they could join. Then all have floors, up to
// which they may have spoken, and these differ; and in a slot above the floor of one and
// below that of another, more may be silent than may be faulty. So a process begins behind
// what it knows, and tells nothing of what it takes part in, until three windows of slots
// in a row have gone by in each of which it heard n-1-m others. That is enough: let k be a
// slot that it tells of, and say that a correct process has a floor of k or more. That one
// has taken at most a window of slots to find out that it was alone, with a window more
// that had begun and half a one reserved; before that it heard n-1-m others, of whom, with
// n > 3m, m are correct. So m+1 correct ones have floors above k less three windows, and
// are silent in a slot there, in which our process heard m correct others. These would be
// 2m+2 correct processes in all, more than there are if n = 3m+1; and if n is greater, the
// numbers are greater alike. These empty slots are run through when there is something to
// do, and n-1-m others say that they are ready to; who is ready only begins what m+1 call
// for, so that liars do not drive it ahead of the others. If a correct process is missing
// then, it counts as faulty.
//
// A process has lost touch if m+1 others begin slots that are more than a window away, or if
// it has heard too few in a whole window of slots; or in one, if Whole says so.
type RejoinConfig struct {
	M                            int         // how many processes may be faulty
	PositionQuery, PositionReply parley.Kind // the messages: see Find
	// Whole is for machines that need all slots: one that misses a slot has lost touch.
	Whole bool
}

// Isolation is what rounds are that know whether their process was cut off from the others.
type Isolation interface {
	// Isolated tells whether it was, so that what it decided may be nobody else's.
	Isolated() bool
}

// phase is how far a process is.
type phase uint8

const (
	participating phase = iota // it takes part
	locating                   // where the others are
	listening                  // for the slots that begin
	ready                      // it could take part, but nobody it can join goes on
	advancing                  // it runs through slots of which nothing is told
)

// What a process tells of itself, in the Seq of At.
const (
	unknown uint64 = iota // it is out, and knows nothing
	out                   // it is out
	waits                 // it is ready, or going
	takes                 // it takes part
)

// Rejoining is a pipeline that a process comes back to.
type Rejoining struct {
	Pipeline
	standing
	answers
	reserved

	since  parley.Tick // when the phase began
	poll   parley.Tick // when all are asked again
	pause  parley.Tick // until they are once more
	astray parley.Set  // who begins slots that are more than a window away
	clean  uint64      // the last slot in which it heard too few, or the one before the first
	apart  uint64      // of the last ones, in how many slots on end
	wants  bool        // somebody has something to do
	left   bool        // the question before the first slot has left: the disk had the reserve
	met    bool        // that is over
}

// NewRejoining makes one process, where [NewPipeline] would make one that cannot return.
func NewRejoining(
	p lockstep.Protocol, when lockstep.Schedule, window int, self parley.ID, above SlotHandler, c RejoinConfig,
) *Rejoining {
	rank := c.M + 1
	if p.N < 2*c.M+2 {
		rank = max(1, p.N-1-c.M)
	}
	b := &Rejoining{
		Pipeline: *NewPipeline(p, when, window, self, above),
		standing: standing{whole: true, settled: true},
		answers:  answers{c: c, n: p.N, rank: rank, told: make([]peerPosition, p.N), latest: make([]uint64, p.N)},
	}
	b.forget()
	b.part = b
	return b
}

// Start is the machine's Start. intact tells that who finds nothing of before has not
// taken part before, though it has lived.
func (b *Rejoining) Start(s *parley.Step, intact bool) {
	if !s.Restart {
		b.seal(s, 0)
		return
	}
	b.start(s, intact)
	b.over, b.opened = b.floor, b.floor
	b.ask(s)
}

// OpenSlot is the pipeline's. A slot that nobody else has called for waits for half a round.
func (b *Rejoining) OpenSlot(s *parley.Step, k uint64) { b.call(s, k, true) }

// Lose has the process return, for its machine has lost touch.
func (b *Rejoining) Lose(s *parley.Step) {
	b.lost = true
	b.turn(s)
}

// Want tells that there is something to do. It comes before Settled is asked: before the first
// slot a process is settled until then, and not any more.
func (b *Rejoining) Want(s *parley.Step) {
	if b.settled && !b.met && b.over == 0 {
		b.meet(s)
	} else if !b.wants && !b.settled {
		b.wants = true
		b.hurry(s)
	}
}

const (
	stale    = 3
	mostSlot = 1 << 62
	compact  = 64 // records
	patience = 8  // rounds in which the others may answer before the first slot
)

// standing is how a process stands.
type standing struct {
	phase   phase
	base    uint64 // nothing is told of slots up to here
	lost    bool   // touch with the others
	whole   bool   // the machine has all that it needs of slots before
	settled bool   // all that may be missed are in too: nobody is asked
	meets   bool   // before the first slot: the others are asked whether they are prepared
}

func (b *standing) at() phase { return b.phase }

// In tells whether the process takes part.
func (b *standing) In() bool { return b.phase == participating }

// Speaks tells whether the process may say something in slots that others begin.
func (b *standing) Speaks() bool { return b.In() && (b.settled || b.meets) }

// Settled tells whether it may begin slots: n-1-m others are in, too, and have all that they need.
// Before the first slot that means that they are prepared; and if not so many are in time, that it
// waits no longer.
func (b *standing) Settled() bool { return b.In() && b.settled }

// Base is the last slot of which nothing is told. It is over.
func (b *standing) Base() uint64 { return b.base }

// Tells tells whether what is agreed on in a slot counts.
func (b *standing) Tells(k uint64) bool { return b.In() && k > b.base && !b.lost }

// Whole says whether the machine has what it needs of slots up to Base.
func (b *standing) Whole(yes bool) { b.whole = yes }

// stage is how this process stands.
func (b *standing) stage(known bool) uint64 {
	switch {
	case b.phase == participating && b.whole:
		return takes
	case b.phase == participating || b.phase >= ready:
		return waits
	case known:
		return out
	}
	return unknown
}

// answers are what the others have told, or shown.
type answers struct {
	c      RejoinConfig
	n      int
	rank   int            // which of the greatest answers, or slots heard of, a correct process's is below
	told   []peerPosition // by process: its last answer
	latest []uint64       // by process: the last slot that it was heard to begin
}

// peerPosition is one process's answer.
type peerPosition struct {
	stage uint64
	high  uint64
	old   uint8 // how often it was asked since; stale: it has not answered
}

// count is how many others have said lately that they stand at least so.
func (b *answers) count(stage uint64) (sum int) {
	for i := range b.told {
		if b.told[i].old < stale && b.told[i].stage >= stage {
			sum++
		}
	}
	return sum
}

// most is how many others a correct process hears.
func (b *answers) most() int { return b.n - 1 - b.c.M }

// high is what a correct process has begun, or may have, by the answers.
func (b *answers) high() uint64 {
	var list []uint64
	for i := range b.told {
		if b.told[i].old < stale && b.told[i].stage > unknown {
			list = append(list, b.told[i].high)
		}
	}
	return b.ranked(list)
}

func (b *answers) ranked(list []uint64) uint64 {
	if len(list) < b.rank {
		return 0
	}
	slices.Sort(list)
	return list[len(list)-b.rank]
}

// called tells whether a correct process has begun slot k, by those who were heard.
func (b *answers) called(k uint64) bool {
	sum := 0
	for _, last := range b.latest {
		if last >= k {
			sum++
		}
	}
	return sum >= b.rank
}

// forget forgets what was heard of the others.
func (b *answers) forget() {
	for i := range b.told {
		b.told[i] = peerPosition{old: stale}
	}
	clear(b.latest)
}

// reserved is in which slots a process may have spoken, or may yet speak.
type reserved struct {
	known   bool   // the floor is
	floor   uint64 // it may have spoken in slots up to here
	reserve uint64 // it may speak in slots up to here
	sealed  bool   // that is on the disk, or will be
	records int    // on the disk, since they were replaced by the state
}

// start has the floor of a process that came back. intact tells that who finds nothing of
// before has not taken part before, though it has lived.
func (b *reserved) start(s *parley.Step, intact bool) {
	b.floor, b.known = b.reserve, b.sealed
	for _, r := range s.Log {
		if len(r.Body) == 8 {
			b.floor, b.known = max(b.floor, binary.BigEndian.Uint64(r.Body)), true
		}
	}
	if !b.known && len(s.Log) == 0 {
		if b.known = intact; intact {
			b.seal(s, 0)
		} else {
			s.Append([]byte("begun"))
		}
	}
	b.reserve, b.sealed = b.floor, b.known
}

// seal makes a reserve durable.
func (b *reserved) seal(s *parley.Step, reserve uint64) {
	b.reserve, b.sealed = reserve, true
	s.Append(binary.BigEndian.AppendUint64(nil, reserve))
	if b.records++; b.records >= compact {
		b.records = 0
		s.Compact()
	}
}

// reach is for a slot in which the process is to speak.
func (b *reserved) reach(s *parley.Step, k, window uint64) {
	if k > b.reserve {
		b.seal(s, k+max(1, window/2)-1)
	}
}

// prepare reserves the next slots, if nothing is under way that would wait for the disk.
func (b *Rejoining) prepare(s *parley.Step) {
	if b.phase == participating && b.over == b.opened {
		b.reach(s, b.opened+1, b.window)
	}
}

func (b *Rejoining) speaks(s *parley.Step, k uint64) { b.reach(s, k, b.window) }

// State visits what is known of a return, and the slots. The reserve outlives a crash.
func (b *Rejoining) State(v *parley.Vars) {
	v.Durable(func() {
		parley.Num(v, "reserve", &b.reserve)
		v.Bool("sealed", &b.sealed)
	})
	if v.Skips() {
		return
	}
	parley.Num(v, "phase", &b.phase)
	v.Time("since", &b.since)
	v.Time("poll", &b.poll)
	parley.Num(v, "pause", &b.pause)
	v.Bool("known", &b.known)
	parley.Num(v, "floor", &b.floor)
	parley.Num(v, "records", &b.records)
	parley.PerProcess(v, "told", b.told, func(_ parley.ID, t *peerPosition) {
		parley.Num(v, "stage", &t.stage)
		parley.Num(v, "high", &t.high)
		parley.Num(v, "old", &t.old)
	})
	parley.PerProcess(v, "latest", b.latest, func(_ parley.ID, k *uint64) { parley.Num(v, "slot", k) })
	v.Set("astray", &b.astray)
	parley.Num(v, "base", &b.base)
	parley.Num(v, "clean", &b.clean)
	parley.Num(v, "apart", &b.apart)
	v.Bool("lost", &b.lost)
	v.Bool("whole", &b.whole)
	v.Bool("wants", &b.wants)
	v.Bool("settled", &b.settled)
	v.Bool("meets", &b.meets)
	v.Bool("left", &b.left)
	v.Bool("met", &b.met)
	b.Pipeline.State(v)
}

func (b *Rejoining) noted(v *parley.Vars, r *slot) {
	if r.came == nil {
		r.came = make([]bool, b.n)
	}
	parley.PerProcess(v, "came", r.came, func(_ parley.ID, yes *bool) { v.Bool("began", yes) })
	v.Bool("own", &r.own)
	v.Bool("apart", &r.apart)
}
