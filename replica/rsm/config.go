package rsm

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"math"

	"parley"
)

// Config is what all copies know beforehand, and know alike.
type Config struct {
	N   int
	New func() Application
	// Setup is how the service begins. A zero one stands for all processes active,
	// answers at once.
	Setup Setup
	// Every is at every how many positions the copies compare their states, 0: never.
	Every uint64
	// Beneath is what the broadcast beneath promises, and Order the properties of it
	// that together keep copies the same: that all deliver one sequence, those that crash
	// too, and leave nothing out. If they are total order and agreement, which are of
	// correct processes, less is promised of a run with crashes. nil: nothing is known,
	// and nothing promised that needs an order.
	Beneath func(parley.RunConditions) []parley.Promise
	Order   []string
	// Transfer tells that beneath is a group with the Config.State of membership/group: it
	// asks for a state and gives it to those who join, so that a process which comes back
	// goes on where the others are. It must be set if and only if State is. If State is not
	// set, a copy that joins stops; over what is no group at all a process would wait for a
	// view for ever before it asks anything itself.
	Transfer bool
	// Durable tells that this group is a durable one, which delivers again what it delivered
	// since its log was replaced. It needs Transfer.
	Durable bool
	// Piece is how many bytes of a state one message has at most: one that is longer is
	// fetched in pieces by who joins, and its hash is that which more than half of the others
	// tell. 0: all states go to who joins in one message, of the group. It needs Transfer.
	Piece int
	// Longest is how long a state may be that is fetched; by default 256 MiB. As many bytes may
	// be delivered while it comes; with more of them another one is asked for.
	Longest int
	// Retry is after what time of silence the rest of a state is asked for again, and after some
	// of that of somebody else; by default 5000.
	Retry parley.Tick
	// Liars is how many processes may say by chance what is wrong, as a broken one would. If it is
	// above 0, copies compare their states where each view begins. A copy answers nothing before all
	// members have told their states. A copy whose state is not the chosen one fetches that. No
	// setup is changed then. Liars needs Piece. With 0 a copy that differs from the majority stops.
	Liars int
	// Sessions is how many clients are remembered, 65,536 if 0; each life of a process is
	// one. If there are more, who has most sessions loses the one that was silent the longest.
	// One that was forgotten and repeats its last command has it applied again, unless
	// its session was opened, see [Commands].
	Sessions int
	// Recover tells that a panic of the application stops this copy, with a word of why, and is
	// no panic of the machine.
	Recover bool
	// Answers is how many bytes of answers are remembered, 0: as many as there are. If there are
	// more, who has most bytes loses the session with an answer that was silent the longest.
	Answers int
}

// Setup says which copies answer, and when. It is part of the replicated state and
// is changed by an ordered command, at the same position everywhere.
type Setup struct {
	// Active are the copies that answer and vote on the state. The others are spares:
	// they apply all commands and say nothing until they are made active.
	Active parley.Set
	// M is how many of the active copies may be wrong.
	M int
	// Checked answers only when M+1 copies have the same state: one of them is correct.
	Checked bool
}

// Append appends the setup to a buffer, as the body of a Configure.
func (t Setup) Append(buf []byte) []byte {
	buf = parley.AppendSet(buf, t.Active)
	buf = binary.AppendUvarint(buf, uint64(t.M))
	if t.Checked {
		return append(buf, 1)
	}
	return append(buf, 0)
}

// readSetup reads what Append wrote.
func readSetup(b []byte, n int) (t Setup, ok bool) {
	r := parley.Reader{Rest: b}
	t = Setup{Active: r.Set(n), M: int(r.Number(uint64(n))), Checked: r.Number(1) == 1}
	return t, r.Done() && t.of(n)
}

// of tells whether it is a setup of n processes: more than M of them must be active.
func (t Setup) of(n int) bool {
	return t.M >= 0 && t.Active.Len() > t.M && t.Active.Minus(parley.Everyone(n)) == parley.Set{}
}

func (t *Setup) state(v *parley.Vars) {
	v.Set("active", &t.Active)
	parley.Num(v, "m", &t.M)
	v.Bool("checked", &t.Checked)
}

// New returns the protocol, the top layer of a stack. A Config that makes no sense
// panics.
func New(c Config) parley.Protocol {
	if c.N < 1 || c.N > parley.MaxProcesses || c.New == nil || c.Sessions < 0 || c.Answers < 0 {
		panic(fmt.Sprintf("rsm: n = %d, sessions %d, answers %d", c.N, c.Sessions, c.Answers))
	}
	if c.Durable && !c.Transfer {
		panic("rsm: a durable group with no transfer of states")
	}
	if c.Piece < 0 || c.Longest < 0 || c.Retry < 0 || c.Piece > 0 && !c.Transfer {
		panic(fmt.Sprintf("rsm: pieces of %d bytes, states of %d, again after %d", c.Piece, c.Longest, c.Retry))
	}
	if c.Liars < 0 || c.Liars > 0 && c.Piece == 0 {
		panic(fmt.Sprintf("rsm: %d liars, pieces of %d bytes", c.Liars, c.Piece))
	}
	c.Longest, c.Retry = cmp.Or(c.Longest, 256<<20), cmp.Or(c.Retry, 5000)
	c.Sessions, c.Answers = cmp.Or(c.Sessions, 1<<16), cmp.Or(c.Answers, math.MaxInt)
	c.Setup = cmp.Or(c.Setup, Setup{Active: parley.Everyone(c.N)})
	hears, kinds := parley.HearsBeneath, []string{"", "APPLY", "CHECK", "CHANGE", "PACK"}
	if c.Piece > 0 {
		hears, kinds = parley.HearsBoth, append(kinds, "MARK", "SUM", "WANT", "PART", "DONE")
	}
	if c.Liars > 0 {
		kinds = append(kinds, "STAND", "MISSING")
	}
	if !c.Setup.of(c.N) {
		panic(fmt.Sprintf("rsm: %d active copies of %d, and %d may be wrong", c.Setup.Active.Len(), c.N, c.Setup.M))
	}
	return parley.Protocol{
		Name: "service", Title: "a deterministic state machine, replicated",
		Paper:  "lecture, replication; Schneider 1990",
		Faults: parley.CrashFaults, Kinds: kinds, N: c.N, M: c.N - 1,
		Serves: true, Hears: hears,
		New:        func(parley.ID) parley.Machine { return &process{server: server{replica: newReplica(c)}} },
		Properties: c.properties(),
		Promises:   c.promises,
		Size:       func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1} },
		Explain:    explain,
	}
}

// explain shows what a message asks for.
func explain(_ parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		switch m.Kind {
		case apply:
			if m.Value < processes {
				yield(fmt.Sprintf("command %d of client %d: %s", m.Seq, m.Value, parley.Printable(m.Body)))
			} else {
				yield(fmt.Sprintf("command %d of %s: %s", m.Seq, name(ownerOf(m.Value)), parley.Printable(m.Body)))
			}
		case check:
			yield(fmt.Sprintf("state %016x at position %d", m.Value, m.Seq))
		case change:
			yield("a new setup")
		case pack:
			list, _ := readCommands(m.Body)
			yield(fmt.Sprintf("a pack of %d commands", len(list)))
		case mark:
			yield("takes its state here")
		case sum:
			yield(fmt.Sprintf("the hash of %d bytes of state", sizeOf(m.Body)))
		case want:
			yield(fmt.Sprintf("asks for the state from byte %d on", m.Value))
		case part:
			yield(fmt.Sprintf("%d bytes of state, from byte %d on", len(m.Body), m.Value))
		case done:
			yield("has the state")
		case stand:
			yield(fmt.Sprintf("state %016x where view %d begins", m.Value, m.Seq))
		case missing:
			yield(fmt.Sprintf("misses the word of %s where view %d begins", name(parley.ID(m.Value)), m.Seq))
		case Parted:
			yield(fmt.Sprintf("has another state than the others at position %d", m.Seq))
		case Alike:
			yield(fmt.Sprintf("has the state of the others, at position %d", m.Seq))
		case Lacks:
			yield(fmt.Sprintf("goes on at position %d with a state that lacks what the others had", m.Seq))
		case Diverged:
			yield(fmt.Sprintf("%s has diverged at position %d", name(m.Origin), m.Seq))
		case Differs:
			yield(fmt.Sprintf("state of %s differs at position %d", name(m.Origin), m.Seq))
		case Stopped:
			yield(fmt.Sprintf("has stopped at position %d: %s", m.Seq, m.Body))
		case Serving:
			yield(map[uint64]string{0: "serves no more", 1: "serves"}[m.Value])
		}
	}
}
