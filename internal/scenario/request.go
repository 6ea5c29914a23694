package scenario

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml/ast"

	"parley"
	"parley/broadcast/problem"
	"parley/membership/group"
	"parley/replica/rsm"
	"parley/sim"
)

// request is {at: P1, when: 100, broadcast: hello}, with to: [P2, P3] for named receivers. Instead of broadcast there
// may be propose; command, with a client and a number, which a replicated service applies once; leave, for a member
// of a group; or setup, for the replicas of a service.
func request(q *sim.Request, _ []sim.Request) entry {
	var to parley.Set
	if q.Msg.Kind == problem.CarryTo { // it is being written, and RequestTo made it
		receivers, payload, err := problem.Decode(q.Msg, parley.MaxProcesses)
		if err != nil {
			panic("scenario: " + err.Error())
		}
		to, q.Msg = receivers, problem.Request(payload)
	}
	var given []string
	var kinds []parley.Kind
	asks := func(
		key string, what parley.Kind, read func(reader, ast.Node) (string, error), write func(names) string,
	) field {
		kinds = append(kinds, what)
		return field{
			key, func(r reader, n ast.Node) error {
				given = append(given, key)
				body, err := read(r, n)
				q.Msg.Kind, q.Msg.Body = what, []byte(body)
				return err
			},
			func(n names) string {
				switch {
				case !slices.Contains(kinds, q.Msg.Kind):
					panic(fmt.Sprintf("scenario: a request of kind %d", q.Msg.Kind))
				case q.Msg.Kind != what:
					return ""
				}
				return write(n)
			},
		}
	}
	words := func(names) string { return quoted(string(q.Msg.Body)) }
	return entry{
		[]field{
			value("at", &q.At, process), value("when", &q.When, moment),
			asks("broadcast", parley.Carried, reader.text, words), asks("propose", parley.Propose, reader.text, words),
			asks("command", rsm.Command, reader.text, words),
			asks("leave", group.Leave, reader.leave, func(names) string { return "true" }),
			asks("setup", rsm.Configure, reader.setup, func(n names) string { return writtenSetup(n, q.Msg.Body) }),
			value("to", &to, processes), value("client", &q.Msg.Value, steps), value("number", &q.Msg.Seq, steps),
		},
		[]string{"at"},
		func() error {
			m := &q.Msg
			switch {
			case len(given) != 1:
				return errors.New("a request has exactly one of broadcast, propose, command, leave, and setup")
			case to != (parley.Set{}) && m.Kind != parley.Carried:
				return fmt.Errorf("to: only a broadcast has receivers, not a %s: omit it", given[0])
			case (m.Value != 0 || m.Seq != 0) && m.Kind != rsm.Command:
				return fmt.Errorf("only a command has client and number, not a %s: omit them", given[0])
			case m.Kind == rsm.Command && m.Seq == 0:
				return errors.New("number: a command has one, from 1, which identifies its retries: add it")
			case to != (parley.Set{}):
				*m = problem.RequestTo(to, m.Body)
			case m.Kind == group.Leave:
				m.Body = nil
			}
			return nil
		},
	}
}

// leave reads true, the only value of leave.
func (r reader) leave(n ast.Node) (string, error) {
	leaves, err := yes.read(r, n)
	if err == nil && !leaves {
		err = at(n, errors.New("false is not allowed: write true, or omit leave"))
	}
	return "", err
}

// setup reads {active: [P1, P2], wrong: 1, checked: true}.
func (r reader) setup(n ast.Node) (string, error) {
	var t rsm.Setup
	err := r.fields(n, setupFields(&t), "active")
	if err == nil && t.Active.Len() <= t.M {
		err = at(n, fmt.Errorf("%d active replicas, of which %d may be wrong: more must be active than may be wrong",
			t.Active.Len(), t.M))
	}
	return string(t.Append(nil)), err
}

func setupFields(t *rsm.Setup) []field {
	return []field{value("active", &t.Active, processes), value("wrong", &t.M, whole), value("checked", &t.Checked, yes)}
}

// writtenSetup writes the setup in body, which Setup.Append encoded.
func writtenSetup(n names, body []byte) string {
	active, rest, err := parley.ReadSet(body, parley.MaxProcesses)
	wrong, size := binary.Uvarint(rest)
	if err != nil || size <= 0 || len(rest) != size+1 {
		panic("scenario: a setup that cannot be read")
	}
	return flow(n, setupFields(&rsm.Setup{Active: active, M: int(wrong), Checked: rest[size] != 0}))
}
