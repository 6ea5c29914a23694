// Package envelope defines the lines of text that Parley exchanges with a program in any language. Each such program
// is a process of a run. Each line is a JSON object in the envelope of Maelstrom: {"src": …, "dest": …, "body":
// {"type": …}}. The package neither starts programs nor reads files (cli/foreign starts the programs). So the lab,
// which can do neither in a browser, can contain it too.
//
// # Decisions
//
// A foreign process is a [parley.Machine]. Each event of the machine is sent to the program as a line. The program
// answers with lines, which are the effects of the step. Motive: the simulator, its faults, traces, pictures and
// properties apply to the program unchanged. Cost: Parley cannot save the state of a program, so it can neither explore
// nor replay the program.
//
// A program takes the place of a protocol of the catalog, and is judged by the properties and the theorem of this
// protocol. Motive: "agreement holds for n > 3m" is a claim about an algorithm, and the program claims to implement the
// algorithm. Cost: if the program implements another algorithm than the named protocol, a promise can break although
// the program does what its author wants.
//
// A program says with parley_done that its answer is complete. Motive: the run depends on the seed alone, because
// Parley needs no clock to know where an answer ends. Cost: programs that were written for Maelstrom do not send
// parley_done. Parley waits 20 ms for each of their answers, and marks the run, because another run with the same seed
// can differ.
package envelope

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/agreement/problem"
	broadcast "parley/broadcast/problem"
	commit "parley/commit/problem"
)

// Message is the only kind of message between programs. Body: the JSON object that the program sent, without spaces.
// Seq: the round in which it was sent, in a protocol in rounds. Origin and Value: unused.
const Message parley.Kind = 1

// RoundTicks is the length of a round in the simulator. A message that a program sends at the beginning of a round
// arrives in this round.
const RoundTicks = 1000

// span is how long a run of programs lasts at most after its last planned event, in ticks, if its protocol comes to
// rest: programs may set timers without end.
const span = 100_000

// judged are the properties whose events a program can cause.
var judged = []string{
	problem.Agreement, problem.Validity, problem.Termination, problem.Integrity,
	broadcast.FIFOOrder, broadcast.CausalOrder, broadcast.TotalOrder, broadcast.UniformAgreement,
	broadcast.UniformTotalOrder, broadcast.SenderIntegrity, broadcast.Delivery, "consistency", "totality",
	commit.Atomicity, commit.Validity, commit.NonTriviality, commit.Stability, commit.NonBlocking,
}

// Suits returns an error if no program can stand in for p.
func Suits(p parley.Protocol) error {
	why := ""
	for _, property := range p.Properties {
		if !slices.Contains(judged, property.Name) {
			why = fmt.Sprintf("no line of a program says what %q is about", property.Name)
		}
	}
	if p.Name == "interactive" {
		why = "its processes decide on a vector"
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("no program can stand in for %s: %s; the protocols of agreement, broadcast and commit are "+
		"allowed, such as om, fifo and twophase", p.Name, why)
}

// Of returns p with programs as processes. Its machines do nothing: the host that starts the programs replaces them.
func Of(p parley.Protocol) parley.Protocol {
	return parley.Protocol{
		Name: p.Name, Title: p.Title + ", by programs", Paper: p.Paper, Timing: p.Timing, Faults: p.Faults,
		Kinds: []string{"", "MESSAGE"}, N: p.N, M: p.M, Serves: p.Serves, Relies: p.Relies, Relays: p.Relays,
		Rejoins: p.Rejoins, Graph: p.Graph, Span: cmp.Or(p.Span, span), Samples: p.Samples, Proposers: p.Proposers,
		New:        func(parley.ID) parley.Machine { return absent{} },
		Properties: p.Properties, Promises: p.Promises, Bound: p.Bound,
		Explain: func(_ parley.Env, m parley.Msg, _ func(parley.ID) string) iter.Seq[string] {
			return func(yield func(string) bool) { yield(parley.Printable([]byte(inWords(m.Body)))) }
		},
		Lies: lies,
	}
}

// absent takes the place of a program that does not run.
type absent struct {
	parley.Base
	parley.Outside
}

// inWords describes a body: its type, then the other keys in their order, and at the end its value, as in
// "diffuse origin=n2 number=1 hello". Pictures color a message by the value at the end.
func inWords(body []byte) string {
	read := json.NewDecoder(bytes.NewReader(body))
	kind, rest, last := "", "", ""
	if brace, err := read.Token(); err != nil || brace != json.Delim('{') {
		return string(body)
	}
	for read.More() {
		key, err := read.Token()
		var value json.RawMessage
		if err != nil || read.Decode(&value) != nil {
			return string(body)
		}
		switch name, _ := key.(string); {
		case name == "type":
			kind = string(bytesOf(value))
		case last == "" && slices.Contains(valueKeys, name):
			last = " " + string(bytesOf(value))
		default:
			rest += fmt.Sprintf(" %s=%s", name, bytesOf(value))
		}
	}
	if kind == "" {
		return string(body)
	}
	return kind + rest + last
}

// lies changes the values in a message, or omits the message.
func lies(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	out := t.Out[:0]
	for _, one := range t.Honest {
		lie, can := otherValues(one.Msg.Body)
		switch {
		case !can:
			if s.Choose(2) == 1 {
				continue
			}
		default:
			switch s.Choose(3) {
			case 1:
				one.Msg.Body = lie
			case 2:
				continue
			}
		}
		out = append(out, one)
	}
	return out
}

// valueKeys are the keys of a body whose values a faulty process changes.
var valueKeys = []string{"value", "values", "message", "vote"}

// otherValues returns a body with other values, and whether it has any.
func otherValues(body []byte) (lie []byte, can bool) {
	read := json.NewDecoder(bytes.NewReader(body))
	read.UseNumber()
	var tree any
	if read.Decode(&tree) != nil {
		return nil, false
	}
	var walk func(x any, inValue bool) any
	walk = func(x any, inValue bool) any {
		switch x := x.(type) {
		case map[string]any:
			for k, v := range x { // order: each key is changed by itself
				x[k] = walk(v, inValue || slices.Contains(valueKeys, k))
			}
			return x
		case []any:
			for i := range x {
				x[i] = walk(x[i], inValue)
			}
			return x
		}
		if !inValue {
			return x
		}
		can = true
		switch x := x.(type) {
		case string:
			return otherText(x)
		case json.Number:
			return json.Number(otherNumber(string(x)))
		case bool:
			return !x
		}
		return "0"
	}
	tree = walk(tree, false)
	lie, err := json.Marshal(tree)
	return lie, can && err == nil
}

func otherText(x string) string {
	switch x {
	case "0":
		return "1"
	case "yes":
		return "no"
	case "no":
		return "yes"
	}
	return "0"
}

func otherNumber(x string) string {
	if x == "0" {
		return "1"
	}
	return "0"
}

// Name returns the name of a process in lines: n1, n2, ...
func Name(id parley.ID) string { return "n" + strconv.Itoa(int(id)+1) }

// Names returns the names of processes.
func Names(ids iter.Seq[parley.ID]) []string {
	all := []string{}
	for id := range ids {
		all = append(all, Name(id))
	}
	return all
}

// parse returns the process of a name, among n processes.
func parse(name string, n int) (parley.ID, bool) {
	i, err := strconv.Atoi(strings.TrimPrefix(name, "n"))
	if err != nil || i < 1 || i > n || Name(parley.ID(i-1)) != name {
		return 0, false
	}
	return parley.ID(i - 1), true
}

// bytesOf returns a JSON value as the bytes of a value or of a payload: a string as its text, anything else as JSON.
func bytesOf(value json.RawMessage) []byte {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return []byte(text)
	}
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return nil
	}
	return b.Bytes()
}
