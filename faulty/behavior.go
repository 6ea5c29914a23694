package faulty

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/nearest"
)

// Behavior says how one faulty process behaves. The zero value is honest. Choose answers the choices of the
// protocol's own Lies. Tell, if not nil, replaces Lies.
type Behavior struct {
	Name string
	// Model is the mildest fault model that allows this behavior. Crash faults allow only crashes, and any
	// lie is a Byzantine fault.
	Model parley.FaultModel
	// Choose answers the k-th choice of a turn, among n answers: 0 is honest, n-1 is silence, and the answers
	// in between are lies.
	Choose func(s *parley.Step, t *parley.Turn, k, n int) int
	// Tell returns what the process sends in a turn.
	Tell func(s *parley.Step, t *parley.Turn) []parley.Outgoing
	// Overhears means that Tell reads Turn.Seen, as Protocol.Overhears does for
	// Lies.
	Overhears bool
	// Hear reports whether the process receives an arriving message; nil means that it does.
	Hear func(s *parley.Step, from parley.ID, m parley.Msg) bool
	// Down reports whether the process has crashed: from then on it handles no event.
	Down func(now parley.Tick) bool
	// Rounds means that the behavior depends on rounds: see [Behavior.Suits].
	Rounds bool
	// Twin runs two honest copies under one identity. Each copy exchanges messages with one half of the system.
	Twin bool
}

// The behaviors that have no parameter.
var (
	// Honest follows the protocol, but counts as faulty.
	Honest = Behavior{Name: "honest"}
	// Silent never sends anything.
	Silent = Behavior{Name: "silent", Tell: func(*parley.Step, *parley.Turn) []parley.Outgoing { return nil }}
	// Flip sends the protocol's first lie to all receivers: 1 for 0 and 0 for 1.
	Flip = Behavior{Name: "flip", Model: parley.SignedByzantineFaults,
		Choose: func(_ *parley.Step, _ *parley.Turn, _, n int) int {
			return min(1, n-2)
		}}
	// TwoFaced is honest to the lower half of the processes, and flips the values that it sends to the upper
	// half.
	TwoFaced = Behavior{Name: "twofaced", Model: parley.SignedByzantineFaults,
		Choose: func(s *parley.Step, t *parley.Turn, _, n int) int {
			if inUpperHalf(t.To, s.N) {
				return min(1, n-2)
			}
			return 0
		}}
	// Random draws every answer at random, for every receiver.
	Random = Behavior{Name: "random", Model: parley.SignedByzantineFaults,
		Choose: func(s *parley.Step, _ *parley.Turn, _, n int) int {
			return s.Choose(n)
		}}
	// Twin is two honest copies under one identity.
	Twin = Behavior{Name: "twin", Model: parley.SignedByzantineFaults, Twin: true}
	// SendOmission is honest, but in each turn it loses its messages with probability 1/2.
	SendOmission = Behavior{Name: "omit-send", Model: parley.OmissionFaults,
		Tell: func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
			if s.Choose(2) == 1 {
				return nil
			}
			return t.Honest
		}}
	// ReceiveOmission is honest, but loses each message to it with probability 1/2.
	ReceiveOmission = Behavior{Name: "omit-receive", Model: parley.OmissionFaults,
		Hear: func(s *parley.Step, _ parley.ID, _ parley.Msg) bool {
			return s.Choose(2) == 0
		}}
)

// Any leaves every answer to the host: a simulator draws it, as with Random, and an
// explorer tries all answers.
var Any = Behavior{Name: "any", Model: Random.Model, Choose: Random.Choose}

// Crash is honest until it has sent to the given number of processes in the
// given round, in the order of their IDs, and then sends nothing more. It is for
// protocols in rounds, whose messages carry the round in Seq.
func Crash(round, sends int) Behavior {
	return Behavior{
		Name: fmt.Sprintf("crash@r%d:%d", round, sends), Rounds: true,
		Tell: func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
			before := int(t.To)
			if t.To > t.Self {
				before--
			}
			var said []parley.Outgoing
			for _, sent := range t.Honest {
				// Frames and the messages of rounds carry the round in Seq.
				r := int(sent.Msg.Seq)
				if r < round || r == round && before < sends {
					said = append(said, sent)
				}
			}
			return said
		},
	}
}

// CrashAt is honest until the given time, and does nothing after it.
func CrashAt(at parley.Tick) Behavior {
	return Behavior{
		Name: "crash@" + time.Duration(at).String(),
		Tell: func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
			if s.Now >= at {
				return nil
			}
			return t.Honest
		},
		Down: func(now parley.Tick) bool { return now >= at },
	}
}

// Suits returns an error if the behavior has no meaning in p, and nil otherwise. For example, a crash in
// round 2 has no meaning in a protocol without rounds.
func (b Behavior) Suits(p parley.Protocol) error {
	if !b.Rounds || p.Timing == parley.Synchronous {
		return nil
	}
	if strings.HasPrefix(b.Name, moves) {
		return fmt.Errorf("moves name rounds, and %s has none: choose another behavior", p.Name)
	}
	return fmt.Errorf("%s names a round, and %s has none: write crash@DURATION, as in crash@5000ns",
		b.Name, p.Name)
}

// Cast returns which processes are faulty, and the worst model among their behaviors.
func Cast(how map[parley.ID]Behavior) (who parley.Set, worst parley.FaultModel) {
	// order: a set has none, and a maximum does not depend on it
	for id, b := range how {
		who.Add(id)
		worst = max(worst, b.Model)
	}
	return who, worst
}

// Script answers each choice of the protocol's Lies with 0. It is for a Lies that is a script, an exact list
// of messages: the process sends exactly this list.
var Script = Behavior{Name: "script", Model: parley.SignedByzantineFaults,
	Choose: func(*parley.Step, *parley.Turn, int, int) int { return 0 }}

// named are the behaviors without parameters, as on the command line.
var named = []Behavior{Honest, Silent, Flip, TwoFaced, Twin, Random, SendOmission, ReceiveOmission}

// Named returns the behaviors that have no parameter.
func Named() []Behavior { return append([]Behavior(nil), named...) }

// Parse reads a behavior as written on the command line: a name, crash@rR, crash@rR:K, crash@DURATION, or moves:
// followed by moves with dots between them.
func Parse(text string) (Behavior, error) {
	var names []string
	for _, b := range named {
		if b.Name == text {
			return b, nil
		}
		names = append(names, b.Name)
	}
	if list, is := strings.CutPrefix(text, moves); is {
		return parseMoves(list)
	}
	when, isCrash := strings.CutPrefix(text, "crash@")
	if !isCrash {
		hint := "allowed are " + strings.Join(names, ", ") + ", crash@rR, crash@rR:K, crash@DURATION, and moves:LIST"
		if list := nearest.Similar(text, append(names, "crash@r1")); len(list) > 0 {
			hint = nearest.Meant(list)
		}
		return Behavior{}, fmt.Errorf("unknown behavior %q: %s", text, hint)
	}
	unknown := fmt.Errorf("%q is not a crash: allowed are crash@rR, crash@rR:K with R and K up to 65535, "+
		"and crash@DURATION, as in crash@r2:3 or crash@5ms (1 tick is 1ns)", text)
	if in, isRound := strings.CutPrefix(when, "r"); isRound {
		r, k, mid := strings.Cut(in, ":")
		round, err := strconv.ParseUint(r, 10, 16)
		if err != nil {
			return Behavior{}, unknown
		}
		sends := uint64(0)
		if mid {
			if sends, err = strconv.ParseUint(k, 10, 16); err != nil {
				return Behavior{}, unknown
			}
		}
		return Crash(int(round), int(sends)), nil
	}
	d, err := time.ParseDuration(when)
	if err != nil || d < 0 {
		return Behavior{}, unknown
	}
	return CrashAt(parley.Tick(d)), nil
}
