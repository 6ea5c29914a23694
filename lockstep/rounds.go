// Package lockstep lets synchronous protocols be written as their papers are,
// in rounds: emit what round r sends, absorb what round r brought, close the
// round. It makes ordinary machines of them.
//
// Round r of an instance lasts from Begin+r*Delta to Begin+(r+1)*Delta on each
// process's own clock. In every round each process sends one frame to every
// other, an empty one if it has nothing to say. A frame of round r that comes at
// the round's end or later is refused, whatever it holds and whether the round has
// been closed by then or not; what is not there is missing. Frames are absorbed
// when the round closes, in the order of their senders, so that the order of
// arrival is no part of a protocol's state.
//
// A process may be a little late itself, by less than Schedule.Slack in whatever it
// does. One that was held up for longer counts as one of the m faulty ones. If it
// was asleep at the end of a round and wakes later than that, it knows, and
// abstains: it sends and decides nothing more, which the others cannot tell from a
// crash. If it sleeps within a round it may not know: what it takes in too late is
// missing for it, as if its senders had been silent.
//
// An instance may have its time from a common schedule, or begin on call
// (Schedule.OnDemand): a process begins round 0 when it is asked, or at the first frame
// of round 0 of any process, and counts its deadlines from there. Since it sends a
// frame to all others at once, all correct processes begin within one message delay
// of the first of them, whatever liars do; a liar alone can make that happen early,
// but not apart. So what a correct process sends in a round, at the latest one delay
// after the first, arrives one more delay later, which is within the round everywhere
// if rounds are longer than two delays. And no correct process is in round 1 before
// another one is in round 0: it waits for the other's frame, or until the round's
// time is over, when its own frame has long arrived.
//
// # Decisions
//
// Rounds are their own interface, and lockstep alone owns frames. Synchronous protocols are written as
// emit, absorb, close. Every process sends one frame a round to every other, and frames are absorbed
// when the round closes, in the order of their senders. Motive: the order of arrival is no state, and a
// round is what the papers mean by it. Cost: a frame copies the messages it carries once.
//
// The schedule moves for nobody. Round r ends at its time, whenever a process began; who starts after
// the beginning takes no part, and who wakes later than the slack abstains and says so. Motive: a late
// process that acts as if it were in time can break agreement, not only delay it. Cost: a slow process
// counts as faulty.
//
// Rounds may begin on call. An instance with OnDemand has no time of its own: who is asked, or hears a
// frame of round 0, begins at once and tells everybody by its own frame, so that all correct processes
// begin within one message delay, whoever called; deadlines then stand from each one's own beginning.
// mux.Pipeline runs numbered instances of that kind beside each other, and broadcast/byzantine makes a
// total order of them. Motive: an agreement begins when somebody needs it, and needs no synchronized
// clock. Cost: a round must have room for two messages and four late acts, and a traitor can make slots
// begin that nobody needs, at most as many as the window lets begin in the time that a slot lasts.
package lockstep

import (
	"parley"
)

// Rounds is one process of a synchronous protocol. Requests come before round
// 0. It may send in Emit alone, and deliver in Emit, Absorb and Close.
type Rounds interface {
	// Request comes from above, before round 0: the initial value.
	Request(s *parley.Step, m parley.Msg)
	// Emit sends the messages of round r. One that it keeps has r in its Seq.
	Emit(s *parley.Step, r int)
	// Absorb takes in a message of round r.
	Absorb(s *parley.Step, r int, from parley.ID, m parley.Msg)
	// Close ends round r: nothing more of it will come.
	Close(s *parley.Step, r int)
	// State visits every variable.
	State(v *parley.Vars)
}

// Protocol is a synchronous protocol at the level of rounds. The functions of
// the embedded description see the messages of rounds, not frames. Its New and
// its Tree are the ones declared here, and those embedded are not used.
type Protocol struct {
	parley.Protocol
	// Last is the number of the last round: there are Last+1.
	Last int
	// New makes one process.
	New func(self parley.ID) Rounds
	// Tree returns the information tree inside one process, if it has one.
	Tree func(r Rounds) parley.Tree
	// Most is how many bytes a frame of a round has at most; nil: what links take. What is
	// longer is a liar's, and refused before anything of it is kept.
	Most func(round int) int
	// RenameAll is Rename for all that one process sent another in a round, where
	// paths name processes too and change with them. Without it paths stay.
	RenameAll func(e parley.Env, sent []parley.Outgoing, perm []parley.ID) []parley.Outgoing
}

// Renamed returns what one process sent another in a round as it would be if the
// processes had changed names, by RenameAll or else message by message.
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

// Schedule tells every process when the rounds of an instance are.
type Schedule struct {
	// Begin is the time of round 0 and Delta the length of a round, which must
	// exceed the largest delay, the skew between correct clocks and twice the Slack,
	// taken together.
	Begin, Delta parley.Tick
	// Slack is how much later than it should a process may do anything and still
	// takes part. Delta must leave room for it twice beside the largest delay: for
	// the one who sends and for the one who receives. 0 stands for a twentieth of
	// Delta.
	Slack parley.Tick
	// Early lets a process close a round as soon as it has a frame of all the
	// others. Deadlines stay where they are.
	Early bool
	// OnDemand lets the instance begin when it is called, for each process at a time of
	// its own clock, and Begin means nothing. Delta must then exceed two largest delays
	// and four times the Slack: for the one who calls, the one who hears the call and
	// begins, the one who sends and the one who receives. Clocks need not show the same.
	// An instance that nobody correct is asked for, or hears of, does not end: it has not
	// begun. A process that starts, or comes back, when it may have begun counts as faulty.
	OnDemand bool
}

// Call asks a process to begin an instance on call, if it has not begun, without a
// value. It is of local kind: only a Request. No field is used.
const Call parley.Kind = parley.Local + 0x40

// delay is the largest delay that there is room for.
func (w Schedule) delay() parley.Tick {
	if w.OnDemand {
		return (w.Delta - 4*w.slack()) / 2
	}
	return w.Delta - 2*w.slack()
}

// RejoinDelay is the largest delay that there is room for on call if processes that were down
// take part again: three messages and five times the slack must fit into a round then.
func (w Schedule) RejoinDelay() parley.Tick { return (w.Delta - 5*w.slack()) / 3 }

// Late tells whether a process that does something so much after its time comes too
// late with it.
func (w Schedule) Late(by parley.Tick) bool { return by > 0 && by >= w.slack() }

func (w Schedule) slack() parley.Tick {
	if w.Slack == 0 {
		return w.Delta / 20
	}
	return w.Slack
}

// Simulated is the schedule of simulated runs: rounds of a thousand ticks, of which
// messages take 900 at most.
var Simulated = Schedule{Delta: 1000}

// Called is the schedule on call of simulated runs, in which messages take 900 ticks
// at most too.
var Called = Schedule{Delta: 2000, Slack: 50, Early: true, OnDemand: true}

// Derive returns p with its deliveries turned into others: f is called for each
// delivery of p, in its place, and delivers what it likes.
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
	d.turn(s, mark)
}

func (d derived) Absorb(s *parley.Step, r int, from parley.ID, m parley.Msg) {
	mark := s.Mark()
	d.Rounds.Absorb(s, r, from, m)
	d.turn(s, mark)
}

func (d derived) Close(s *parley.Step, r int) {
	mark := s.Mark()
	d.Rounds.Close(s, r)
	d.turn(s, mark)
}

func (d derived) turn(s *parley.Step, mark int) {
	for _, e := range Delivered(s, mark) {
		d.f(s, e.To, e.Msg)
	}
}

// Delivered takes the deliveries made since mark off the step: an outer
// protocol calls it after a clause of an inner one.
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
