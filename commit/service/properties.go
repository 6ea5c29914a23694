package service

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/commit/problem"
)

// The names of the properties, in addition to those of package problem.
const (
	Names   = "names"
	Answers = "answers"
)

// Judging says how to judge runs of a service with participants: each transaction by itself, and all transactions by
// their names.
type Judging struct {
	// Of returns the properties of one transaction with the given voters, such as problem.Uniform.
	Of func(voters parley.Set) []parley.Property
	// ByName identifies transactions by name, for systems in which the processes use different paths.
	ByName bool
	// Majority excuses a transaction from ending if at most half of its members are correct.
	Majority bool
}

// Properties returns the properties of a run.
func (j Judging) Properties() []parley.Property {
	var list []parley.Property
	for i, p := range j.Of(parley.Set{}) {
		ends := p.Name == problem.Termination || p.Name == problem.NonBlocking
		list = append(list, parley.Property{
			Name: p.Name, Says: "for each transaction: " + p.Says, Mode: p.Mode,
			Check: func(h *parley.History) error {
				for _, t := range j.transactions(h) {
					if ends && j.lost(h, t.members) {
						continue
					}
					if err := j.Of(t.voters)[i].Check(t.seen(p.Name)); err != nil {
						return fmt.Errorf("%s: %w", parley.Printable([]byte(t.name)), err)
					}
				}
				return nil
			},
			Vacuous: func(h *parley.History) string {
				why := "no transaction is begun"
				for _, t := range j.transactions(h) {
					one := j.Of(t.voters)[i]
					if one.Vacuous == nil {
						return ""
					}
					if why = one.Vacuous(t.seen(p.Name)); why == "" {
						return ""
					}
				}
				return why
			},
		})
	}
	return append(list, parley.Property{
		Name: Names, Mode: parley.Always, Check: j.names, Vacuous: j.unasked,
		Says: "a process votes on only one transaction with a name until this transaction aborts, and " +
			"reports no other transaction under this name",
	}, parley.Property{
		Name: Answers, Mode: parley.Eventually, Check: j.answers, Vacuous: j.unasked,
		Says: "every request at a process that does not crash is answered: by an outcome, or by the " +
			"report that the transaction has not begun",
	})
}

// lost reports whether a transaction lacks a correct majority of its members.
func (j Judging) lost(h *parley.History, members parley.Set) bool {
	return j.Majority && 2*members.Minus(h.Faulty).Len() <= members.Len()
}

// judgedTx is one transaction of a run.
type judgedTx struct {
	key             string
	name, votes     string
	coordinator     parley.ID
	voters, members parley.Set
	history         parley.History
	again           []parley.ExternalEvent // votes after which their process did not restart
}

// seen returns the transaction as one property sees it. A process that crashes before its vote is durable has
// not voted, and termination does not require it to decide: it may have forgotten the transaction. If a
// correct process has committed, all votes were durable.
func (t *judgedTx) seen(property string) *parley.History {
	if property != problem.Termination || t.committed() {
		return &t.history
	}
	h := t.history
	h.Requests = t.again
	return &h
}

// committed reports whether a correct process has committed the transaction.
func (t *judgedTx) committed() bool {
	return slices.ContainsFunc(t.history.Deliveries, func(d parley.ExternalEvent) bool {
		return t.history.Correct(d.At) && string(d.Msg.Body) == problem.Commit.String()
	})
}

// transactions splits a run into its transactions, in the order of their first events.
func (j Judging) transactions(h *parley.History) []*judgedTx {
	var list []*judgedTx
	find := func(d *parley.ExternalEvent, name string) *judgedTx {
		key := j.key(d, name)
		for _, t := range list {
			if t.key == key {
				return t
			}
		}
		t := &judgedTx{key: key, name: name, coordinator: d.From, history: parley.History{
			N: h.N, Faulty: h.Faulty, Restarts: h.Restarts, Over: h.Over, Naming: h.Naming,
		}}
		t.involve(asked(h, d.From, name, d.Order))
		if key != "" {
			list = append(list, t)
		}
		return t
	}
	for i := range h.Deliveries {
		d := &h.Deliveries[i]
		if d.Msg.Kind != Voted && d.Msg.Kind != parley.Decide {
			continue
		}
		first, rest, _ := strings.Cut(string(d.Msg.Body), " ")
		name := first
		if d.Msg.Kind == parley.Decide {
			name = rest
		}
		t, one := find(d, name), *d
		if one.Path = 0; d.Msg.Kind == Voted {
			t.name, t.votes = name, rest
			t.involve(rest)
			t.vote(h, one)
		} else {
			one.Msg.Body = []byte(first)
			t.history.Deliveries = append(t.history.Deliveries, one)
		}
	}
	for _, d := range h.Indications {
		if d.Msg.Kind != Blocked {
			continue
		}
		_, name := ReadBlocked(d.Msg.Body, h.N)
		key := j.key(&d, name)
		d.Msg = parley.Msg{Kind: problem.Blocked}
		for _, t := range list { // a blocked process has voted
			if t.key == key {
				t.history.Indications = append(t.history.Indications, d)
			}
		}
	}
	return list
}

// asked returns the votes in the last request for the named transaction at a process before the event with
// order until, or "" if there is none.
func asked(h *parley.History, at parley.ID, name string, until uint64) (votes string) {
	for _, q := range h.Requests {
		if of, v, ok := readOrder(q.Msg.Body, q.At, h.N); ok && q.At == at && of == name && q.Order < until {
			votes = v
		}
	}
	return votes
}

// key identifies a transaction; "" means that d does not identify one.
func (j Judging) key(d *parley.ExternalEvent, name string) string {
	if j.ByName {
		return name
	}
	return strconv.FormatUint(d.Msg.Value, 10)
}

// involve records the voters and the members.
func (t *judgedTx) involve(votes string) {
	if votes != "" {
		t.voters = parley.Set{}
	}
	for id := range votes {
		if votes[id] != '-' {
			t.voters.Add(parley.ID(id))
		}
	}
	t.members = t.voters
	t.members.Add(t.coordinator)
}

// vote records a vote as a request at time 0. Participants vote at once, so it may count as an initial value.
func (t *judgedTx) vote(h *parley.History, d parley.ExternalEvent) {
	vote := "no"
	if d.Msg.Seq == 1 {
		vote = "yes"
	}
	d.When, d.From, d.Msg = 0, d.At, parley.Msg{Kind: parley.Propose, Body: []byte(vote)}
	t.history.Requests = append(t.history.Requests, d)
	if !problem.CameBack(h, d.At, d.Order, math.MaxUint64) {
		t.again = append(t.again, d)
	}
}

// names checks that a process keeps the name of what it committed across its incarnations, and the name of
// what it voted on within one incarnation, until that aborts.
func (j Judging) names(h *parley.History) error {
	type place struct {
		at   parley.ID
		name string
	}
	all, does := make(map[place]nameHolder), make(map[uint64]string)
	for _, d := range h.Deliveries {
		first, rest, _ := strings.Cut(string(d.Msg.Body), " ")
		here := place{d.At, rest}
		if d.Msg.Kind == Voted || d.Msg.Kind == Refused {
			here.name = first
		}
		had, has := all[here]
		has = has && (had.committed || !problem.CameBack(h, d.At, had.order, d.Order))
		ends := d.Msg.Kind == parley.Decide
		same := has && (had.path == d.Msg.Value || j.ByName && (ends || had.votes == rest))
		if !h.Correct(d.At) || here.name == "" {
			continue
		}
		var err error
		switch name := parley.Printable([]byte(here.name)); {
		case d.Msg.Kind == Ended:
			err = j.repeated(h, &d, first, here.name)
		case d.Msg.Kind == Refused:
			if has && d.Msg.Seq == NameTaken && refusesOwn(h, &d, had.votes) {
				err = fmt.Errorf("%s refuses %s, which it has begun itself, as another transaction", h.Name(d.At), name)
			}
		case has && !same:
			err = fmt.Errorf("%s has two transactions called %s", h.Name(d.At), name)
		case ends && first != problem.Commit.String():
			delete(all, here)
		case ends:
			all[here] = nameHolder{path: d.Msg.Value, order: d.Order, committed: true}
			if same {
				all[here] = nameHolder{had.path, d.Order, true, had.votes}
			}
		default:
			all[here] = nameHolder{path: d.Msg.Value, order: d.Order, committed: same && had.committed, votes: rest}
			if was, known := does[d.Msg.Value]; known && was != rest && !j.ByName {
				err = fmt.Errorf("%s votes on %s, but other processes have another transaction in its place", h.Name(d.At), name)
			}
			does[d.Msg.Value] = rest
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refusesOwn reports whether a process has refused more transactions of a name than the requests for it with
// other votes than the given ones. If so, it has refused the transaction that holds the name.
func refusesOwn(h *parley.History, d *parley.ExternalEvent, votes string) bool {
	more := 0
	for _, e := range h.Deliveries {
		if e.At == d.At && e.Order <= d.Order && e.Msg.Kind == Refused && e.Msg.Seq == NameTaken &&
			string(e.Msg.Body) == string(d.Msg.Body) {
			more++
		}
	}
	for _, q := range h.Requests {
		name, v, ok := readOrder(q.Msg.Body, q.At, h.N)
		if ok && q.At == d.At && q.Order < d.Order && name == string(d.Msg.Body) && v != votes {
			more--
		}
	}
	return more > 0
}

// nameHolder is the transaction that holds a name at a process.
type nameHolder struct {
	path      uint64
	order     uint64 // when the process voted
	committed bool
	votes     string
}

// repeated checks that an answer with an earlier outcome is about the transaction that the process requested,
// and that no process decided otherwise.
func (j Judging) repeated(h *parley.History, d *parley.ExternalEvent, outcome, name string) error {
	votes := asked(h, d.At, name, d.Order)
	for _, t := range j.transactions(h) {
		if t.key != j.key(d, name) {
			continue
		}
		if t.votes != votes && t.votes != "" {
			return fmt.Errorf("%s asked for %s %s, but receives the outcome of %s", h.Name(d.At),
				parley.Printable([]byte(name)), votes, t.votes)
		}
		for _, e := range t.history.Deliveries {
			if string(e.Msg.Body) != outcome && e.Order < d.Order {
				return fmt.Errorf("%s receives %s for %s, but %s decided %s", h.Name(d.At), outcome,
					parley.Printable([]byte(name)), h.Name(e.At), e.Msg.Body)
			}
		}
	}
	return nil
}

// answers checks that each correct process that does not restart gets an answer to its requests.
func (j Judging) answers(h *parley.History) error {
	if !h.Over {
		return nil
	}
	for _, q := range h.Requests {
		name, votes, ok := readOrder(q.Msg.Body, q.At, h.N)
		t := judgedTx{coordinator: q.At}
		t.involve(votes)
		if !ok || !h.Correct(q.At) || problem.CameBack(h, q.At, q.Order, math.MaxUint64) || j.lost(h, t.members) {
			continue
		}
		if !slices.ContainsFunc(h.Deliveries, func(d parley.ExternalEvent) bool {
			return d.At == q.At && d.Order > q.Order && tells(&d.Msg) == name
		}) {
			return fmt.Errorf("%s has no answer to its request for %s", h.Name(q.At), parley.Printable([]byte(name)))
		}
	}
	return nil
}

// tells returns the name of the transaction whose end or refusal m delivers.
func tells(m *parley.Msg) string {
	switch m.Kind {
	case parley.Decide, Ended:
		_, name, _ := strings.Cut(string(m.Body), " ")
		return name
	case Refused:
		return string(m.Body)
	}
	return ""
}

// unasked returns why a run without requests demands nothing.
func (j Judging) unasked(h *parley.History) string {
	if len(h.Requests) == 0 {
		return "no transaction is asked for"
	}
	return ""
}
