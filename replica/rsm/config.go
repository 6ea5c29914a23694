package rsm

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"math"

	"parley"
)

// Config configures the replicas. It must be identical at all of them.
type Config struct {
	N   int
	New func() Application
	// Setup is the initial setup. The zero value means that all processes are active and answer at once.
	Setup Setup
	// Every makes replicas compare their states at every multiple of this position. 0 means never.
	Every uint64
	// Beneath returns the promises of the broadcast below. Order names those of its properties that together keep
	// replicas equal: all processes, including processes that crash, deliver one sequence without gaps. If Order
	// names total order and agreement, which cover only correct processes, less is promised for a run with crashes.
	// If Beneath is nil, nothing is known about the broadcast, so nothing that needs an order is promised.
	Beneath func(parley.RunConditions) []parley.Promise
	Order   []string
	// Transfer states that the layer below is a group whose Config.State (of membership/group) is set. Such a group
	// asks for a state and gives it to joiners, so a process that rejoins continues at the position of the others.
	// Set Transfer if and only if State is set. If State is not set, a replica that joins stops. If the layer below
	// is no group, a process with Transfer waits forever for a view before it sends its own requests.
	Transfer bool
	// Durable states that the group is durable: after a restart it repeats the deliveries since its last
	// checkpoint. Durable needs Transfer.
	Durable bool
	// Piece is the largest number of bytes of a state in one message. A joiner fetches a longer state in pieces. It
	// accepts the hash that more than half of the other members report. 0 means that every joiner gets its state in
	// one message of the group. Piece needs Transfer.
	Piece int
	// Longest is the largest state, in bytes, that a joiner fetches. It also bounds the bytes that are delivered
	// during a fetch. If more bytes are delivered, the joiner asks for a later state. 0 means 256 MiB.
	Longest int
	// Retry is the silence, in ticks, after which a joiner asks again for the rest of a state. After 3 Retry
	// it asks another process. 0 means 5000.
	Retry parley.Tick
	// Liars is how many processes may accidentally send wrong messages, as a broken process would. If it is
	// above 0, replicas compare their states at the start of each view, and no replica answers before all
	// members have reported. A replica with another state than the chosen one fetches the chosen state. The
	// setup is then fixed. Liars needs Piece. With 0, a replica that differs from the majority stops.
	Liars int
	// Sessions is how many clients are remembered. Each incarnation of a process is one client. If there are more,
	// the owner with the most sessions loses the session with the oldest last command. If a forgotten client repeats
	// its last command, the command is applied again. This cannot happen to a client that opened its session (see
	// [Commands]). 0 means 65,536.
	Sessions int
	// Recover makes a panic of the application stop this replica with the reason, instead of a panic of the
	// machine.
	Recover bool
	// Answers is how many bytes of answers are remembered. If there are more, the owner with the most bytes loses a
	// session: of its sessions that have an answer, the session with the oldest last command. 0 means no limit.
	Answers int

	ordered bool // the order may carry commands of liars: see NewOrdered
}

// Setup says which replicas answer, and when. It is part of the replicated state. An ordered command changes
// it, at the same position everywhere.
type Setup struct {
	// Active are the replicas that answer and compare their states. The others are spares: they apply all
	// commands, but send nothing until they become active.
	Active parley.Set
	// M is how many of the active replicas may be wrong.
	M int
	// Checked delays an answer until M+1 replicas have the same state. At least one of them is correct.
	Checked bool
}

// Append appends the encoded setup to buf, as the Body of a Configure.
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

// of reports whether t is a setup of n processes: more than M of them are active.
func (t Setup) of(n int) bool {
	return t.M >= 0 && t.Active.Len() > t.M && t.Active.Minus(parley.Everyone(n)) == parley.Set{}
}

func (t *Setup) state(v *parley.Vars) {
	v.Set("active", &t.Active)
	parley.Num(v, "m", &t.M)
	v.Bool("checked", &t.Checked)
}

// New returns the protocol, the top layer of a stack. It panics if the limits, the setup or the options of c
// contradict each other.
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

// explain shows a message in words.
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
			yield(fmt.Sprintf("continues at position %d with a state that lacks what the others had", m.Seq))
		case Diverged:
			yield(fmt.Sprintf("finds that %s has diverged at position %d", name(m.Origin), m.Seq))
		case Differs:
			yield(fmt.Sprintf("state of %s differs at position %d", name(m.Origin), m.Seq))
		case Stopped:
			yield(fmt.Sprintf("has stopped at position %d: %s", m.Seq, m.Body))
		case Serving:
			yield(map[uint64]string{0: "serves no more", 1: "serves"}[m.Value])
		}
	}
}
