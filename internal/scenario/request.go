package scenario

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml/ast"

	"parley"
	"parley/broadcast/problem"
	"parley/membership/group"
	"parley/replica/service"
	"parley/run"
	"parley/sim"
)

// request reads {at: P1, when: 100, broadcast: hello}, with to: [P2, P3] for named
// receivers. In place of broadcast there may be propose; command, of a client and with
// a number, which a replicated service applies once; leave, for a member of a group;
// or setup, for the copies of a service.
func (r reader) request(n ast.Node, p *run.Plan) error {
	var q sim.Request
	var given []string
	var words string
	var to parley.Set
	var client, number int
	var setup service.Setup
	one := func(key string, read func(ast.Node) error) func(ast.Node) error {
		return func(n ast.Node) error {
			given = append(given, key)
			return read(n)
		}
	}
	err := r.fields(n, map[string]func(ast.Node) error{
		"at": into(&q.At, r.process), "when": into(&q.When, r.time), "to": into(&to, r.processes),
		"client": into(&client, r.count), "number": into(&number, r.count),
		"broadcast": one("broadcast", into(&words, r.text)), "propose": one("propose", into(&words, r.text)),
		"command": one("command", into(&words, r.text)),
		"setup":   one("setup", func(n ast.Node) error { return r.setup(n, &setup) }),
		"leave": one("leave", func(n ast.Node) error {
			yes, err := r.yes(n)
			if err == nil && !yes {
				err = at(n, errors.New("true was expected, or nothing"))
			}
			return err
		}),
	}, "at")
	switch {
	case err != nil:
		return err
	case len(given) != 1:
		return errors.New("one of broadcast, propose, command, leave and setup was expected")
	case to != (parley.Set{}) && given[0] != "broadcast":
		return fmt.Errorf("to: there are named receivers of a broadcast alone, and not of a %s", given[0])
	case (client != 0 || number != 0) && given[0] != "command":
		return fmt.Errorf("client and number are of a command, and not of a %s", given[0])
	case given[0] == "command" && number == 0:
		return errors.New("number: a command has one, from 1, by which it is known when it is asked again")
	}
	q.Msg = asked(given[0], words, to, client, number, setup)
	p.Requests = append(p.Requests, q)
	return nil
}

// setup reads {active: [P1, P2], wrong: 1, checked: true}.
func (r reader) setup(n ast.Node, t *service.Setup) error {
	err := r.fields(n, map[string]func(ast.Node) error{
		"active": into(&t.Active, r.processes), "wrong": into(&t.M, r.count), "checked": into(&t.Checked, r.yes),
	}, "active")
	if err == nil && t.Active.Len() <= t.M {
		err = at(n, fmt.Errorf("%d active copies: more were expected than may be wrong, %d", t.Active.Len(), t.M))
	}
	return err
}

// asked is the message of a request.
func asked(how, words string, to parley.Set, client, number int, setup service.Setup) parley.Msg {
	switch how {
	case "propose":
		return parley.Msg{Kind: parley.Propose, Body: []byte(words)}
	case "command":
		return parley.Msg{Kind: service.Command, Value: uint64(client), Seq: uint64(number), Body: []byte(words)}
	case "leave":
		return parley.Msg{Kind: group.Leave}
	case "setup":
		return parley.Msg{Kind: service.Configure, Body: setup.Append(nil)}
	case "broadcast":
		if to != (parley.Set{}) {
			return problem.RequestTo(to, []byte(words))
		}
	}
	return problem.Request([]byte(words))
}
