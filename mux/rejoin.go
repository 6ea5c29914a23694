package mux

import (
	"encoding/binary"
	"slices"

	"parley"
	"parley/lockstep"
)

// RejoinConfig lets processes of a pipeline rejoin after a crash, or after they have lost touch with the others. The
// machine must have two kinds of messages for this, and n must be at least 2m+2. With fewer processes, a faulty
// process can keep a rejoining process out, or choose the time at which it begins.
//
// A process that rejoins counts as one of the m faulty processes. It must find a slot from which it can take part,
// and the time at which that slot may begin. It does this in three steps:
//   - It asks the others for their positions, until n-1-m others have answered and all slots in which it may have
//     sent are over at all processes. Then it takes the (m+1)th greatest answer. Some correct process has begun this
//     slot or a later slot. All correct processes have answered by then, so the answer is at least the slot that m+1
//     of them had begun.
//   - It listens for the duration of a slot, and sends nothing. When frames of round 0 of a slot have arrived from
//     m+1 processes, a correct process has begun the slot. The rejoining process records this time as the beginning
//     of the slot. Slots that began before it listened began too long ago to matter.
//   - It takes part in all later slots. It treats the earlier slots as over.
//
// A process never sends in a slot in which an earlier incarnation may have sent. For this it has a reserve, a durable
// slot number. Before it sends in a slot beyond its reserve, it makes a greater reserve durable, half a window at a
// time. Its next incarnation continues after the reserve. If the others have not begun so many slots, they begin the
// missing slots, and the rejoining process waits. A process without durable state uses the slots that the others
// report. While a process makes a reserve durable, its messages wait for the disk, so a slow disk makes the process
// late. For this reason, before a process begins the first slot that it knows of, it makes the others reserve slots:
// it asks for their positions. A question or an answer leaves only when the sender's disk has the reserve.
//
// The time that a rejoining process records is at most two delays plus three times the slack after the first correct
// process began the slot. (The three are the slack of the first process, of a process that receives its frame, and of
// the rejoining process.) So its slots may begin later by this time, and rounds must have room for three delays plus
// five times the slack. Without rejoining, two delays plus four times the slack are enough. The delays of several
// rejoins do not accumulate as long as m+1 correct processes begin slots within one delay of each other. When a
// process has received frames from m+1 processes that began a slot, it begins the slot at once, even before its own
// window allows this. One of the m+1 processes is correct, and the window of that process has allowed the slot. After
// more than n-2m-1 rejoins the delays could accumulate, if a faulty process opens all slots that windows allow,
// without a pause. For slots that correct processes open, the delays do not accumulate: correct processes leave half
// a round more between a slot and the slot one window later. So all begin the later slot within one delay, when they
// receive from the first.
//
// If all processes rejoin at the same time, no process is in slots that the others could join. Each process has a
// floor: the slot up to which it may have sent. The floors differ. In a slot above the floor of one process and
// below the floor of another, more than m processes may be silent. So a process begins after the last slot that it
// knows. It reports no slot until it has received from n-1-m others in every slot of three consecutive windows.
//
// Three windows are enough. Let k be a slot that a process P reports, and assume that a correct process Q has a
// floor of k or more. Q ran for at most one window of slots before it detected that it was alone. By then another
// window of slots had begun, and half a window was reserved. Before that Q received from n-1-m others, and with n >
// 3m at least m of these are correct. So Q and m others are m+1 correct processes with floors above k minus three
// windows. They are silent in some slot of the last three windows before k. In this slot P received from m correct
// others. The m+1 silent processes, P, and these m others would be 2m+2 correct processes. But there are only 2m+1
// if n = 3m+1. If n is greater, both numbers grow by the same amount.
//
// The slots of these three windows are empty. They run when there is a request and n-1-m others report that they
// are ready. A ready process begins only slots that m+1 processes open, so faulty processes cannot drive it ahead
// of the others. A correct process that is missing at this time counts as faulty.
//
// A process has lost touch if m+1 others begin slots that are more than a window away. It has also lost touch if it
// received from too few others in every slot of a window. If Whole is set, one such slot is enough.
type RejoinConfig struct {
	M                            int         // how many processes may be faulty
	PositionQuery, PositionReply parley.Kind // the messages: see HandlePosition
	// Whole is for machines that need all slots: a process that misses a slot must rejoin.
	Whole bool
}

// Isolation is implemented by Rounds that know whether their process was cut off from the others.
type Isolation interface {
	// Isolated reports whether the process was cut off. If it was, perhaps no other process has the same decision.
	Isolated() bool
}

// phase is how far a process is in rejoining.
type phase uint8

const (
	participating phase = iota // it takes part
	locating                   // it asks for the positions of the others
	listening                  // it listens for the slots that begin
	ready                      // it could take part, but there are no processes that it can join
	advancing                  // it runs through slots that it does not report
)

// The stages of a process, in the Seq of a PositionReply.
const (
	stageUnknown       uint64 = iota // it takes no part, and knows no slot
	stageOut                         // it takes no part
	stageReady                       // it is ready or advancing
	stageParticipating               // it takes part
)

// Rejoining is a pipeline that a process can rejoin.
type Rejoining struct {
	Pipeline
	rejoinState
	answers
	reservation

	phaseBegan    parley.Tick // when the phase began
	nextQuery     parley.Tick // when it asks all again
	queryInterval parley.Tick // how long it waits before it asks again
	outOfWindow   parley.Set  // processes that begin slots more than a window away
	lastMissed    uint64      // the last slot in which it heard too few, or the slot before the first
	missedInRow   uint64      // the number of slots in a row, up to the last, that it missed
	hasWork       bool        // some process has something to do
	querySent     bool        // the question before the first slot has left: the disk has the reserve
	prepared      bool        // the question before the first slot is settled
}

// NewRejoining makes one process that can rejoin. A process that [NewPipeline] makes cannot rejoin.
func NewRejoining(
	p lockstep.Protocol, when lockstep.Schedule, window int, self parley.ID, above SlotHandler, c RejoinConfig,
) *Rejoining {
	rank := c.M + 1
	if p.N < 2*c.M+2 {
		rank = max(1, p.N-1-c.M)
	}
	b := &Rejoining{
		Pipeline:    *NewPipeline(p, when, window, self, above),
		rejoinState: rejoinState{whole: true, settled: true},
		answers: answers{
			config: c, n: p.N, rank: rank, positions: make([]peerPosition, p.N), latestBegun: make([]uint64, p.N),
		},
	}
	b.forget()
	b.participation = b
	return b
}

// Start must be called from the machine's Start. The argument intact means that a process without an earlier record
// has not taken part before, although it has run.
func (b *Rejoining) Start(s *parley.Step, intact bool) {
	if !s.Restart {
		b.saveReserve(s, 0)
		return
	}
	b.loadFloor(s, intact)
	b.over, b.opened = b.floor, b.floor
	b.beginRejoin(s)
}

// OpenSlot does the same as [Pipeline.OpenSlot], but if no other process has requested the slot, the slot waits for
// half a round.
func (b *Rejoining) OpenSlot(s *parley.Step, k uint64) { b.openSlot(s, k, true) }

// Lose makes the process rejoin because its machine has lost touch.
func (b *Rejoining) Lose(s *parley.Step) {
	b.lost = true
	b.runDue(s)
}

// Want says that the process has a request. Call it before Settled, because before the first slot Settled
// returns true until Want is called.
func (b *Rejoining) Want(s *parley.Step) {
	if b.settled && !b.prepared && b.over == 0 {
		b.askPrepared(s)
	} else if !b.hasWork && !b.settled {
		b.hasWork = true
		b.querySoon(s)
	}
}

const (
	staleAfter           = 3
	maxSlot              = 1 << 62
	recordsPerCompaction = 64 // log records between two compactions
	maxPrepareRounds     = 8  // rounds that the others have to answer before the first slot
)

type rejoinState struct {
	phase     phase
	base      uint64 // slots up to this one are not reported
	lost      bool   // it lost touch with the others
	whole     bool   // the machine has all that it needs of earlier slots
	settled   bool   // n-1-m others take part too: it stops asking
	preparing bool   // before the first slot: it asks the others whether they are prepared
}

func (b *rejoinState) currentPhase() phase { return b.phase }

// In reports whether the process takes part.
func (b *rejoinState) In() bool { return b.phase == participating }

// Speaks reports whether the process may propose in slots that others begin.
func (b *rejoinState) Speaks() bool { return b.In() && (b.settled || b.preparing) }

// Settled reports whether the process may begin slots, because n-1-m others take part, too, and have all that
// they need. Before the first slot, Settled means that the others are prepared or, if too few are prepared in
// time, that the process no longer waits for them.
func (b *rejoinState) Settled() bool { return b.In() && b.settled }

// Base returns the last slot that is not reported. It is over.
func (b *rejoinState) Base() uint64 { return b.base }

// Tells reports whether the decision of slot k counts.
func (b *rejoinState) Tells(k uint64) bool { return b.In() && k > b.base && !b.lost }

// Whole sets whether the machine has all that it needs of the slots up to Base.
func (b *rejoinState) Whole(yes bool) { b.whole = yes }

func (b *rejoinState) stage(known bool) uint64 {
	switch {
	case b.phase == participating && b.whole:
		return stageParticipating
	case b.phase == participating || b.phase >= ready:
		return stageReady
	case known:
		return stageOut
	}
	return stageUnknown
}

// answers are what the others have reported or shown.
type answers struct {
	config      RejoinConfig
	n           int
	rank        int            // the rank-th greatest answer, or slot heard of, is at most that of a correct process
	positions   []peerPosition // by process: its last answer
	latestBegun []uint64       // by process: the last slot that it was heard to begin
}

// peerPosition is one process's last answer.
type peerPosition struct {
	stage      uint64
	slot       uint64
	unanswered uint8 // how often it was asked since; stale: no current answer
}

// count returns how many others have a current answer of at least this stage.
func (b *answers) count(stage uint64) (sum int) {
	for i := range b.positions {
		if b.positions[i].unanswered < staleAfter && b.positions[i].stage >= stage {
			sum++
		}
	}
	return sum
}

// othersHeard returns how many others a correct process hears.
func (b *answers) othersHeard() int { return b.n - 1 - b.config.M }

// highestBegun returns a slot that a correct process has begun, or may have, according to the answers.
func (b *answers) highestBegun() uint64 {
	var list []uint64
	for i := range b.positions {
		if b.positions[i].unanswered < staleAfter && b.positions[i].stage > stageUnknown {
			list = append(list, b.positions[i].slot)
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

// begunByCorrect reports whether a correct process has begun slot k, according to the frames received.
func (b *answers) begunByCorrect(k uint64) bool {
	sum := 0
	for _, last := range b.latestBegun {
		if last >= k {
			sum++
		}
	}
	return sum >= b.rank
}

// forget discards what was heard of the others.
func (b *answers) forget() {
	for i := range b.positions {
		b.positions[i] = peerPosition{unanswered: staleAfter}
	}
	clear(b.latestBegun)
}

// reservation holds the slots in which a process may have sent, or may send.
type reservation struct {
	known   bool   // the floor is known
	floor   uint64 // it may have sent in slots up to this one
	reserve uint64 // it may send in slots up to this one
	saved   bool   // the reserve is on the disk, or will be
	records int    // log records since the last compaction
}

// loadFloor sets the floor of a process that restarted. intact means that a process that finds no
// earlier record has not taken part before, although it has run.
func (b *reservation) loadFloor(s *parley.Step, intact bool) {
	b.floor, b.known = b.reserve, b.saved
	for _, r := range s.Log {
		if len(r.Body) == 8 {
			b.floor, b.known = max(b.floor, binary.BigEndian.Uint64(r.Body)), true
		}
	}
	if !b.known && len(s.Log) == 0 {
		if b.known = intact; intact {
			b.saveReserve(s, 0)
		} else {
			s.Append([]byte("begun"))
		}
	}
	b.reserve, b.saved = b.floor, b.known
}

func (b *reservation) saveReserve(s *parley.Step, reserve uint64) {
	b.reserve, b.saved = reserve, true
	s.Append(binary.BigEndian.AppendUint64(nil, reserve))
	if b.records++; b.records >= recordsPerCompaction {
		b.records = 0
		s.Compact()
	}
}

// reserveFor reserves slots before the process sends in slot k.
func (b *reservation) reserveFor(s *parley.Step, k, window uint64) {
	if k > b.reserve {
		b.saveReserve(s, k+max(1, window/2)-1)
	}
}

// reserveNext reserves the next slots, unless slots in flight would wait for the disk.
func (b *Rejoining) reserveNext(s *parley.Step) {
	if b.phase == participating && b.over == b.opened {
		b.reserveFor(s, b.opened+1, b.window)
	}
}

func (b *Rejoining) beforeSending(s *parley.Step, k uint64) { b.reserveFor(s, k, b.window) }

// State visits the state of rejoining, and the slots. The reserve is durable.
func (b *Rejoining) State(v *parley.Vars) {
	v.Durable(func() {
		parley.Num(v, "reserve", &b.reserve)
		v.Bool("sealed", &b.saved)
	})
	if v.Skips() {
		return
	}
	parley.Num(v, "phase", &b.phase)
	v.Time("since", &b.phaseBegan)
	v.Time("poll", &b.nextQuery)
	parley.Num(v, "pause", &b.queryInterval)
	v.Bool("known", &b.known)
	parley.Num(v, "floor", &b.floor)
	parley.Num(v, "records", &b.records)
	parley.PerProcess(v, "told", b.positions, func(_ parley.ID, t *peerPosition) {
		parley.Num(v, "stage", &t.stage)
		parley.Num(v, "high", &t.slot)
		parley.Num(v, "old", &t.unanswered)
	})
	parley.PerProcess(v, "latest", b.latestBegun, func(_ parley.ID, k *uint64) { parley.Num(v, "slot", k) })
	v.Set("astray", &b.outOfWindow)
	parley.Num(v, "base", &b.base)
	parley.Num(v, "clean", &b.lastMissed)
	parley.Num(v, "apart", &b.missedInRow)
	v.Bool("lost", &b.lost)
	v.Bool("whole", &b.whole)
	v.Bool("wants", &b.hasWork)
	v.Bool("settled", &b.settled)
	v.Bool("meets", &b.preparing)
	v.Bool("left", &b.querySent)
	v.Bool("met", &b.prepared)
	b.Pipeline.State(v)
}

func (b *Rejoining) visitSlot(v *parley.Vars, r *slot) {
	if r.beganBy == nil {
		r.beganBy = make([]bool, b.n)
	}
	parley.PerProcess(v, "came", r.beganBy, func(_ parley.ID, yes *bool) { v.Bool("began", yes) })
	v.Bool("own", &r.ownOnly)
	v.Bool("apart", &r.missed)
}
