package conform

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"parley"
	"parley/agreement/tetra"
)

// viewCase is one process of an agreement in views. Its events are requests, time-outs, restarts and messages.
type viewCase struct {
	head
	N       int      `json:"n"`
	M       int      `json:"m"`
	Process string   `json:"process"`
	Source  string   `json:"source"`
	Steps   []string `json:"steps"`
}

type viewExpect struct {
	Sends    [][]string `json:"sends"` // by step
	Decision *string    `json:"decision"`
	View     *uint64    `json:"view"`
}

// viewRun is a case that runs.
type viewRun struct {
	n        int
	protocol parley.Protocol
	machine  parley.Machine
	step     parley.Step
	log      []parley.Record
	view     uint64
	decision string
}

func viewed(c viewCase, want viewExpect, report reporter) {
	checkSteps("steps", len(c.Steps))
	if c.N < 1 || c.N > parley.MaxProcesses || c.M < 0 || c.M >= c.N {
		fail("n and m: %d and %d: allowed are n from 1 to %d, and m from 0 to n-1", c.N, c.M, parley.MaxProcesses)
	}
	r := viewRun{n: c.N}
	self := r.process("process", c.Process)
	r.protocol = tetra.New(tetra.Config{N: c.N, M: c.M, Source: r.process("source", c.Source)})
	r.step = parley.Step{Self: self, N: c.N, Host: new(scriptHost)}
	r.machine = r.protocol.New(self)
	r.do(r.machine.Start)
	sends := [][]string{}
	for i, text := range c.Steps {
		within(fmt.Sprintf("steps: entry %d: %q", i, text), func() { sends = append(sends, r.take(text)) })
	}
	report("sends", want.Sends, sends)
	report("decision", want.Decision, r.decision)
	report("view", want.View, r.view)
}

// process reads the name of a process: P1 to Pn.
func (r *viewRun) process(what, name string) parley.ID {
	number, is := strings.CutPrefix(name, "P")
	k, err := strconv.Atoi(number)
	if !is || err != nil || k < 1 || k > r.n || strconv.Itoa(k) != number {
		fail("%s: there is no process %q: allowed are P1 to P%d", what, name, r.n)
	}
	return parley.ID(k - 1)
}

func nameOf(id parley.ID) string { return fmt.Sprintf("P%d", id+1) }

// take carries out a step, and returns what the process sends.
func (r *viewRun) take(text string) []string {
	if from, message, is := strings.Cut(text, ": "); is {
		sender, m := r.process("sender", from), r.message(strings.Fields(message))
		return r.do(func(s *parley.Step) { r.machine.Receive(s, sender, m) })
	}
	switch words := strings.Fields(text); {
	case len(words) == 2 && words[0] == "request":
		value := []byte(words[1])
		return r.do(func(s *parley.Step) { r.machine.Request(s, parley.Msg{Kind: parley.Propose, Body: value}) })
	case text == "timeout":
		return r.do(func(s *parley.Step) { r.machine.Timeout(s, 1) })
	case text == "restart":
		r.machine = r.protocol.New(r.step.Self)
		r.step.Restart, r.step.Log = true, r.log
		sent := r.do(r.machine.Start)
		r.step.Restart, r.step.Log = false, nil
		return sent
	}
	fail(`allowed are "request VALUE", "timeout", "restart", and "PROCESS: MESSAGE"`)
	return nil
}

// do runs a clause, and returns what it sends.
func (r *viewRun) do(clause func(*parley.Step)) []string {
	sent := []string{}
	r.step.Effects = nil
	clause(&r.step)
	for _, e := range r.step.Effects {
		switch e.Op {
		case parley.OpAppend:
			r.log = append(r.log, parley.Record{Body: e.Msg.Body})
		case parley.OpDeliver:
			r.decision = valueText(e.Msg.Body)
		case parley.OpSend:
			text := messageText(e.Msg)
			if e.To != parley.All {
				text = "to " + nameOf(e.To) + ": " + text
			}
			if sent = append(sent, text); e.Msg.Kind == tetra.Enter {
				r.view = e.Msg.Seq
			}
		}
	}
	return sent
}

// nothing is the text of the empty value, which means nothing.
const nothing = "-"

func valueText(value []byte) string {
	if len(value) == 0 {
		return nothing
	}
	return string(value)
}

func valueOf(text string) []byte {
	if text == nothing {
		return nil
	}
	return []byte(text)
}

// formOf has the words of each message: its name, and which fields follow.
var formOf = map[parley.Kind]string{
	tetra.Proposal: "propose VIEW VALUE", tetra.Echo: "echo VALUE", tetra.Ready: "ready VALUE", tetra.Wish: "wish VIEW",
	tetra.Enter: "enter VIEW VALUE", tetra.Witness: "witness PROCESS VALUE", tetra.Vouch: "vouch VALUE",
	tetra.Vote: "vote VIEW PHASE VALUE", tetra.Decided: "decided VALUE",
}

// message reads a message.
func (r *viewRun) message(words []string) (m parley.Msg) {
	for kind, text := range formOf { // order: names differ
		fields := strings.Fields(text)
		if len(words) < len(fields) || words[0] != fields[0] {
			continue
		}
		m.Kind = kind
		for i, field := range fields[1:] {
			switch word := words[i+1]; field {
			case "VIEW":
				m.Seq = numberOf(word)
			case "PHASE":
				m.Value = numberOf(word)
			case "PROCESS":
				m.Origin = r.process("claim of", word)
			default:
				m.Body = valueOf(word)
			}
		}
		switch rest := words[len(fields):]; {
		case kind == tetra.Wish && len(rest) == 1 && rest[0] == "repeat":
			m.Value = 1
		case kind == tetra.Enter:
			m.Body = reportOf(m.Body, rest)
		case len(rest) > 0:
			fail("%q: a message %q was expected", strings.Join(words, " "), text)
		}
		return m
	}
	fail("unknown message %q", strings.Join(words, " "))
	return m
}

func numberOf(text string) uint64 {
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		fail("%q: a number was expected", text)
	}
	return number
}

// votePhases is the number of phases of a view.
const votePhases = 4

// reportOf writes the body of ENTER: a claim, and votes PHASE:VIEW:VALUE in the order of phases and values.
func reportOf(claim []byte, votes []string) []byte {
	b := parley.AppendBytes(nil, claim)
	for phase := range uint64(votePhases) {
		count, list := uint64(0), []byte(nil)
		for _, text := range votes {
			parts := strings.SplitN(text, ":", 3)
			if len(parts) != 3 || numberOf(parts[0])-1 >= votePhases {
				fail("%q: a vote PHASE:VIEW:VALUE with a phase from 1 to %d was expected", text, votePhases)
			}
			if numberOf(parts[0]) == phase+1 {
				list = parley.AppendBytes(binary.AppendUvarint(list, numberOf(parts[1])), valueOf(parts[2]))
				count++
			}
		}
		b = append(binary.AppendUvarint(b, count), list...)
	}
	return b
}

// messageText is the inverse of message.
func messageText(m parley.Msg) string {
	words := strings.Fields(formOf[m.Kind])
	var votes []string
	if m.Kind == tetra.Enter {
		r := parley.Reader{Rest: m.Body}
		m.Body = r.Bytes()
		for phase := range votePhases {
			for range r.Number(parley.MaxProcesses + 1) {
				view := r.Number(1 << 32)
				votes = append(votes, fmt.Sprintf("%d:%d:%s", phase+1, view, valueText(r.Bytes())))
			}
		}
	}
	for i, field := range words {
		switch field {
		case "VIEW":
			words[i] = strconv.FormatUint(m.Seq, 10)
		case "PHASE":
			words[i] = strconv.FormatUint(m.Value, 10)
		case "PROCESS":
			words[i] = nameOf(m.Origin)
		case "VALUE":
			words[i] = valueText(m.Body)
		}
	}
	if m.Kind == tetra.Wish && m.Value == 1 {
		words = append(words, "repeat")
	}
	return strings.Join(append(words, votes...), " ")
}
