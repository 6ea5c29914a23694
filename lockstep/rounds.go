// Package lockstep runs synchronous protocols that are written in rounds, as in their papers. In each round a
// protocol emits its messages, absorbs the received messages, and closes the round. The package makes an ordinary
// machine from such a protocol.
//
// An instance is one execution of a protocol. Round r of an instance lasts from Begin+r*Delta to Begin+(r+1)*Delta on
// each process's own clock. In every round each process sends one frame to every other process. A frame contains all
// messages of the round; it is empty if there are none. If a frame of round r has not arrived when the round ends, it
// is missing. If it arrives later, it is refused. A process absorbs the frames when the round closes, in the order of
// their senders. So the order of arrival is not part of a protocol's state.
//
// A process may act late, but by less than Schedule.Slack. A process that exceeds this slack counts as one of the m
// faulty processes. Suppose that a process is suspended at the end of a round. If it resumes later than the slack
// allows, it detects this and abstains: it sends and decides nothing more. To the others this looks like a crash. A
// process that is suspended only within a round may not detect this. Then frames that it receives too late count as
// missing, as if their senders had been silent.
//
// An instance may follow a common schedule, or begin on demand (Schedule.OnDemand). On demand, a process begins round
// 0 at a request, or at the first frame of round 0 from any process. It at once sends a frame to all others. Its
// deadlines count from this time.
//
// On demand, all correct processes begin within one message delay, because the first of them sends its frame to all
// others. A faulty process can make the correct processes begin early, but they still begin within one delay. The
// same holds in later rounds: a correct process sends its frames at most one delay after the first correct process
// has begun the round. These frames arrive within one more delay. If rounds are longer than two delays, these frames
// arrive before the round ends at any correct process.
//
// A process may also close a round early, when it has the frames of all others (Schedule.Early). Even then, no
// correct process begins round 1 before all correct processes have begun round 0. A correct process closes round 0 in
// one of two cases. In the first case, it has the frames of all others, so all other correct processes have begun
// round 0. In the second case, the deadline has passed. By then the process's own frame has arrived at all others,
// and has made them begin.
//
// # Decisions
//
// Rounds have an interface of their own, and only package lockstep handles frames. Synchronous protocols implement the
// methods Emit, Absorb, and Close. Every process sends one frame per round to every other process. A process absorbs
// the frames when the round closes, in the order of their senders. Motive: the order of arrival is not part of the
// state, and a round means the same as in the papers. Cost: messages are copied once, into their frame.
//
// Round deadlines are absolute: no round waits for a slow process. A process that starts after the beginning of an
// instance takes no part in the instance. If a process wakes later than the slack allows, it abstains, and reports
// that. Motive: a late process that does not abstain can break agreement, not only delay it. Cost: a slow process
// counts as faulty.
//
// Rounds may begin on demand. An instance with OnDemand has no common schedule. A process that receives a request or a
// frame of round 0 begins at once, and sends its own frame to all others. So all correct processes begin within one
// message delay. The deadlines of each process count from its own beginning. Motive: an agreement begins when it is
// needed, and needs no synchronized clocks. Cost: a round must be longer than two message delays plus four times the
// slack. A faulty process can begin slots that no correct process needs, but the window limits how many slots are in
// flight.
package lockstep

import (
	"parley"
)

// Rounds is one process of a synchronous protocol. Requests come before round
// 0. It may send only in Emit, and deliver in Emit, Absorb and Close.
type Rounds interface {
	// Request passes the initial value from above, before round 0.
	Request(s *parley.Step, m parley.Msg)
	// Emit sends the messages of round r. A message that it keeps (Step.Keep) has r in its Seq.
	Emit(s *parley.Step, r int)
	// Absorb handles a message of round r.
	Absorb(s *parley.Step, r int, from parley.ID, m parley.Msg)
	// Close ends round r: no more messages of round r will come.
	Close(s *parley.Step, r int)
	// State visits every variable.
	State(v *parley.Vars)
}

// Protocol is a synchronous protocol at the level of rounds. The functions of the embedded description see the
// messages of rounds, not frames. The fields New and Tree are declared here. The embedded fields of the same names
// are not used.
type Protocol struct {
	parley.Protocol
	// Last is the number of the last round: there are Last+1 rounds.
	Last int
	// New makes one process.
	New func(self parley.ID) Rounds
	// Tree returns the information tree inside one process, if it has one.
	Tree func(r Rounds) parley.Tree
	// Most returns the largest size of a frame of a round in bytes; nil means the limit of links. A longer frame
	// comes from a faulty process, and is refused without keeping any part of it.
	Most func(round int) int
	// RenameAll does what Rename does, but handles all messages from one process to another in a round. It is for
	// protocols whose paths also name processes. Without it paths stay unchanged.
	RenameAll func(e parley.Env, sent []parley.Outgoing, perm []parley.ID) []parley.Outgoing
}

// Renamed returns all messages from one process to another in a round, as they would be if the processes were
// renamed. It uses RenameAll or, if there is none, renames message by message.
func (p Protocol) Renamed(e parley.Env, sent []parley.Outgoing, perm []parley.ID) []parley.Outgoing {
	if p.RenameAll != nil {
		return p.RenameAll(e, sent, perm)
	}
	if p.Rename == nil {
		return sent
	}
	out := make([]parley.Outgoing, len(sent))
	for i, one := range sent {
		e.Path = one.Path
		out[i] = parley.Outgoing{Path: one.Path, Msg: p.Rename(e, one.Msg, perm)}
	}
	return out
}

// Schedule sets the times of the rounds of an instance, for every process.
type Schedule struct {
	// Begin is the time of round 0. Delta is the length of a round. It must exceed the sum of the largest delay, the
	// skew between correct clocks, and twice the Slack.
	Begin, Delta parley.Tick
	// Slack is how late a process may act and still take part. Delta must have room for the largest delay, and for
	// the Slack of the sender and of the receiver. 0 means 1/20 of Delta.
	Slack parley.Tick
	// Early lets a process close a round as soon as it has a frame from each of the
	// others. Deadlines do not move.
	Early bool
	// OnDemand makes the instance begin on request, for each process at a time of its own clock; Begin is not used.
	// Delta must then exceed twice the largest delay plus four times the Slack. The four are the slack of the first
	// process, of a process that receives its frame and begins, of a sender, and of a receiver. Clocks need not be
	// synchronized. If no correct process gets a request or a frame for an instance, the instance does not begin, and
	// does not end. A process that starts or restarts when the instance may have begun counts as faulty.
	OnDemand bool
}

// Call is a Request to a process to begin an instance on demand without a value. If the instance has begun,
// Call does nothing. Call is a local kind, and uses no field.
const Call parley.Kind = parley.Local + 0x40

// delay returns the largest delay that a round has room for.
func (w Schedule) delay() parley.Tick {
	if w.OnDemand {
		return (w.Delta - 4*w.slack()) / 2
	}
	return w.Delta - 2*w.slack()
}

// RejoinDelay returns the largest message delay for which a round on demand is long enough if processes that
// were down take part again. Such a round must have room for three message delays and five times the slack.
func (w Schedule) RejoinDelay() parley.Tick { return (w.Delta - 5*w.slack()) / 3 }

// Late reports whether an action is too late. The argument by is the time from the deadline to the action.
func (w Schedule) Late(by parley.Tick) bool { return by > 0 && by >= w.slack() }

func (w Schedule) slack() parley.Tick {
	if w.Slack == 0 {
		return w.Delta / 20
	}
	return w.Slack
}

// Simulated is the schedule of simulated runs: rounds of 1000 ticks, in which messages take at most 900
// ticks.
var Simulated = Schedule{Delta: 1000}

// Called is the on-demand schedule of simulated runs, in which messages also take at
// most 900 ticks.
var Called = Schedule{Delta: 2000, Slack: 50, Early: true, OnDemand: true}

// Derive returns p with other deliveries. For each delivery of p, it calls f instead, and f may deliver.
func Derive(p Protocol, name string, f func(s *parley.Step, from parley.ID, m parley.Msg)) Protocol {
	d := p
	d.Name = name
	d.New = func(self parley.ID) Rounds { return derived{p.New(self), f} }
	if p.Tree != nil {
		d.Tree = func(r Rounds) parley.Tree { return p.Tree(r.(derived).Rounds) }
	}
	return d
}

type derived struct {
	Rounds
	f func(s *parley.Step, from parley.ID, m parley.Msg)
}

func (d derived) Emit(s *parley.Step, r int) {
	mark := s.Mark()
	d.Rounds.Emit(s, r)
	d.replaceDeliveries(s, mark)
}

func (d derived) Absorb(s *parley.Step, r int, from parley.ID, m parley.Msg) {
	mark := s.Mark()
	d.Rounds.Absorb(s, r, from, m)
	d.replaceDeliveries(s, mark)
}

func (d derived) Close(s *parley.Step, r int) {
	mark := s.Mark()
	d.Rounds.Close(s, r)
	d.replaceDeliveries(s, mark)
}

func (d derived) replaceDeliveries(s *parley.Step, mark int) {
	for _, e := range Delivered(s, mark) {
		d.f(s, e.To, e.Msg)
	}
}

// Delivered removes from the step the deliveries made since mark, and returns them. An outer protocol calls
// it after a clause of an inner protocol.
func Delivered(s *parley.Step, mark int) []parley.Effect {
	var out []parley.Effect
	s.Take(mark, func(e *parley.Effect) bool {
		if e.Op != parley.OpDeliver {
			return false
		}
		out = append(out, *e)
		return true
	})
	return out
}
