package problem

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"parley"
)

// Instance configures one agreement. It must be identical at all processes.
type Instance struct {
	N, M   int       // processes, and faults to tolerate
	Source parley.ID // the process whose value is agreed on, if there is one source
	// Rounds is the number of rounds. 0 means M+1, as many as are necessary. More rounds do not help: in a deeper
	// tree of oral messages, faulty processes are a majority at the leaves.
	Rounds int
	// Default is decided if there is no majority, and replaces a missing value.
	// It is "0" in the sources.
	Default []byte
	// Alphabet are the values that a faulty process may send; empty means 0 and 1.
	Alphabet [][]byte
}

// Last returns the number of the last round, from 0.
func (in Instance) Last() int { return in.last(in.M) }

// last is Last for m faults.
func (in Instance) last(m int) int {
	if in.Rounds > 0 {
		return in.Rounds - 1
	}
	return m
}

// Bounded returns a bound that also requires the rounds that m faults need.
func (in Instance) Bounded(bound func(n, m int) error) func(n, m int) error {
	return func(n, m int) error {
		if err := bound(n, m); err != nil || in.last(m) >= m {
			return err
		}
		return fmt.Errorf("with --rounds %d at most m = %d is tolerated, not %d: m+1 rounds are necessary "+
			"(Fischer, Lynch 1982; Dolev, Strong 1983)", in.Rounds, in.Rounds-1, m)
	}
}

// Costing returns a count for the number of rounds of the instance.
func (in Instance) Costing(cost func(n, last int) parley.Cost) func(n, m int) parley.Cost {
	return func(n, m int) parley.Cost { return cost(n, in.last(m)) }
}

// RoundsFlag declares the flag for the number of rounds. The function that it returns checks
// the rounds of an instance.
func RoundsFlag(fs *flag.FlagSet, in *Instance) func(*Instance) error {
	fs.IntVar(&in.Rounds, "rounds", in.Rounds,
		"`number` of rounds, 1 to m+1 (default: m+1, the number that the bound needs)")
	return func(in *Instance) error {
		if in.Rounds < 0 || in.Rounds > in.M+1 {
			return parley.FlagErrorf("rounds", "%d rounds: allowed are 1 to m+1 = %d", in.Rounds, in.M+1)
		}
		return nil
	}
}

// Values returns the alphabet.
func (in Instance) Values() [][]byte {
	if len(in.Alphabet) > 0 {
		return in.Alphabet
	}
	return bits
}

// bits are the values of the sources.
var bits = [][]byte{[]byte("0"), []byte("1")}

// Others returns the values of the alphabet except the given one: the possible lies.
func (in Instance) Others(than []byte) [][]byte {
	var out [][]byte
	for _, v := range in.Values() {
		if !bytes.Equal(v, than) {
			out = append(out, v)
		}
	}
	return out
}

// Lie chooses what a faulty process sends instead of a value that it holds: the value, any
// other of the alphabet, or nothing.
func (in Instance) Lie(s *parley.Step, held []byte) (told []byte, said bool) {
	values := in.Values()
	own, others := -1, len(values)
	for i, v := range values {
		if bytes.Equal(v, held) {
			own, others = i, others-1
			break
		}
	}
	switch k := s.Choose(others + 2); {
	case k == 0:
		return held, true
	case k == others+1:
		return nil, false
	case own < 0 || k-1 < own:
		return values[k-1], true
	default:
		return values[k], true
	}
}

// Lies replaces each value that is the body of a message by the result of [Instance.Lie].
func (in Instance) Lies(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	out := t.Out[:0]
	for _, one := range t.Honest {
		var said bool
		if one.Msg.Body, said = in.Lie(s, one.Msg.Body); said {
			out = append(out, one)
		}
	}
	return out
}

// Another returns what a faulty process may say instead of any value, without an alphabet: the lie of the layer above
// if there is one, otherwise the value with a mark appended, or removed if it is already there. So all faulty processes
// know one common other value for each value.
func Another(s *parley.Step, t *parley.Turn, value []byte) []byte {
	if t.Body != nil {
		if told := t.Body(s, value); told != nil {
			return told
		}
	}
	const mark = '\''
	if last := len(value) - 1; last >= 0 && value[last] == mark {
		return slices.Clip(value[:last])
	}
	return append(slices.Clip(value), mark)
}

// Check returns an error if an instance is invalid by itself. It does not check whether n processes can tolerate m
// faults: see the protocol's Bound.
func (in Instance) Check() error {
	switch {
	case in.N < 2 || in.N > parley.MaxProcesses:
		return parley.CheckN(in.N, 2)
	case in.M < 0 || in.M > in.N-2:
		return parley.FlagErrorf("m", "%d faults of %d processes: allowed are 0 to n-2 = %d, "+
			"because agreement needs two correct processes", in.M, in.N, in.N-2)
	case int(in.Source) >= in.N:
		return parley.FlagErrorf("source", "the process does not exist: allowed are the %d processes of the system", in.N)
	case len(in.Default) > MaxValue:
		return parley.FlagErrorf("default", "%d bytes: allowed are %d", len(in.Default), MaxValue)
	}
	for _, v := range in.Alphabet {
		if len(v) > MaxValue {
			return parley.FlagErrorf("alphabet", "a value of %d bytes: allowed are %d", len(v), MaxValue)
		}
	}
	return nil
}

// EchoCost counts a broadcast of Bracha without faults, and so an agreement that begins with one: the source's message
// to all others, and an ECHO and a READY from each process to each other.
func EchoCost(n, _ int) parley.Cost {
	one := parley.Traffic{Messages: uint64(max(n-1, 0))}
	return parley.Cost{Rounds: 3, PerRound: []parley.Traffic{one, one.Times(uint64(n)), one.Times(uint64(n))}}
}

// CountSent counts messages. An own copy that a process keeps is not a message.
func CountSent(e parley.Env, _ parley.Msg) parley.Traffic {
	if e.From == e.To {
		return parley.Traffic{}
	}
	return parley.Traffic{Messages: 1}
}

// Flags declares the flags of an instance. A flag that is not given keeps its value, with one exception: without the
// flag m, m is most(n), the largest m that n processes tolerate. The function that Flags returns completes and checks
// an instance after parsing.
func Flags(fs *flag.FlagSet, in *Instance, most func(n int) int) func(*Instance, parley.Naming) error {
	fs.IntVar(&in.N, "n", in.N, "number of `processes`")
	var m faults
	fs.Var(&m, "m", "`faults` to tolerate (default: as many as the theorem allows)")
	source := fs.String("source", "", "`process` that is the source: the processes agree on its value "+
		"(default: the first process)")
	otherwise := fs.String("default", string(in.Default), "`value` to use for a tie and for a missing value")
	alphabet := fs.String("alphabet", "", "`values` that faulty processes may send, separated by commas (default: 0,1)")
	return func(in *Instance, naming parley.Naming) error {
		in.M, in.Default = m.n, []byte(*otherwise)
		if !m.given {
			in.M = max(0, most(in.N))
		}
		if *source != "" {
			id, err := naming(*source)
			if err != nil {
				return &parley.FlagError{Flag: "source", Err: err}
			}
			in.Source = id
		}
		if *alphabet != "" {
			in.Alphabet = nil
			for v := range strings.SplitSeq(*alphabet, ",") {
				in.Alphabet = append(in.Alphabet, []byte(v))
			}
		}
		return in.Check()
	}
}

// OralFlags declares Flags and RoundsFlag for agreement with oral messages.
func OralFlags(fs *flag.FlagSet, in *Instance) func(*Instance, parley.Naming) error {
	instance, rounds := Flags(fs, in, MostOral), RoundsFlag(fs, in)
	return func(in *Instance, naming parley.Naming) error {
		if err := instance(in, naming); err != nil {
			return err
		}
		return rounds(in)
	}
}

// faults is the flag for m; it records whether it was given.
type faults struct {
	n     int
	given bool
}

// Set implements flag.Value.
func (f *faults) Set(text string) (err error) {
	f.given = true
	if f.n, err = strconv.Atoi(text); err != nil {
		err = errors.New("a number was expected")
	}
	return err
}

// String implements flag.Value.
func (f *faults) String() string {
	if f == nil || !f.given {
		return ""
	}
	return strconv.Itoa(f.n)
}

// OralBound returns nil if n > 3m, and otherwise the theorem as an error: n processes with oral
// messages tolerate m Byzantine faults only if n > 3m.
func OralBound(n, m int) error {
	if n > 3*m {
		return nil
	}
	return fmt.Errorf("with oral messages %d processes tolerate at most m = %d, not %d: n > 3m is necessary",
		n, MostOral(n), m)
}

// MostOral returns the largest m with n > 3m.
func MostOral(n int) int { return (n - 1) / 3 }

// ErrSigned is the error of [SignedBound].
var ErrSigned = errors.New("with fewer than two correct processes there is nothing to agree on: n >= m+2")

// SignedBound returns nil if agreement with signed messages is not vacuous.
func SignedBound(n, m int) error {
	if n >= m+2 {
		return nil
	}
	return ErrSigned
}

// Promises promises agreement and validity within the bound, if at most
// m processes are faulty, and termination and integrity always.
func Promises(a parley.RunConditions, bound func(n, m int) error, theorem string) []parley.Promise {
	lacks := Lacks(a, bound)
	return []parley.Promise{
		parley.Promised(Agreement, theorem, lacks),
		parley.Promised(Validity, theorem, lacks),
		{Property: Termination, Holds: true, Because: "rounds end at fixed times, no matter which messages arrive"},
		{Property: Integrity, Holds: true, Because: "a process decides once, when the last round closes"},
	}
}

// Lacks returns why a run has too few processes or too many faults for a bound, or "".
func Lacks(a parley.RunConditions, bound func(n, m int) error) string {
	switch err := bound(a.N, a.M); {
	case err != nil:
		return err.Error()
	case a.Faulty > a.M:
		return a.Excess()
	}
	return ""
}

// Explain writes messages whose values come along paths as the article
// does: {0,132}.
func Explain(
	items iter.Seq2[[]parley.ID, []byte], n int, name func(parley.ID) string,
) iter.Seq[string] {
	return func(yield func(string) bool) {
		for path, v := range items {
			if !yield("{" + parley.Printable(v) + "," + PathText(path, n, name) + "}") {
				return
			}
		}
	}
}

// PathText writes a path of processes as the article does: 132, or with dots, 1.3.12,
// in a system in which some name has more than one digit.
func PathText(path []parley.ID, n int, name func(parley.ID) string) string {
	parts := make([]string, len(path))
	for i, id := range path {
		parts[i] = name(id)
	}
	if len(name(parley.ID(n-1))) > 1 {
		return strings.Join(parts, ".")
	}
	return strings.Join(parts, "")
}
