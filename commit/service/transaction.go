package service

import (
	"iter"
	"strconv"

	"parley"
	"parley/commit/problem"
)

// transaction is a live transaction at a process.
type transaction struct {
	path    parley.Path
	spec    Spec // with the part of this process only
	inner   parley.Machine
	logged  bool // the spec is in the log
	outcome problem.Outcome
	told    bool       // the participant knows the outcome
	acked   parley.Set // at the coordinator: members that have carried out the outcome

	asked, ready, yes, given bool       // vote requested; vote present; it is yes; given to the inner machine
	begun                    bool       // the others were asked, perhaps in an earlier incarnation
	heard                    parley.Set // members that answered since this process last asked
	blocked                  bool
	reminded                 bool        // told for at least one period of openTimer
	why                      AbortReason // of an abort
}

// PathOf returns the path of a transaction.
func PathOf(coordinator parley.ID, number uint64) parley.Path {
	return parley.Path(number)<<8 | parley.Path(coordinator)
}

// CoordinatorOf returns the coordinator in a path.
func CoordinatorOf(p parley.Path) parley.ID { return parley.ID(p & 0xFF) }

// NumberOf returns the coordinator's number in a path.
func NumberOf(p parley.Path) uint64 { return uint64(p >> 8) }

func (t *transaction) finished() *Finished {
	return &Finished{t.path, t.spec.Name, t.spec.Digest, t.outcome, t.why}
}

// waits returns the other members that have not answered since this process last asked for the outcome.
func (t *transaction) waits(self parley.ID) parley.Set {
	return parley.SetOf(t.spec.Members...).Minus(parley.SetOf(self)).Minus(t.heard)
}

// missing returns the members other than the coordinator that have not reported that they carried out the
// outcome.
func (t *transaction) missing() parley.Set { return parley.SetOf(t.spec.Members[1:]...).Minus(t.acked) }

// sendTo sends q to one member, or to all others. to is a place in the transaction, or parley.All.
func (t *transaction) sendTo(s *parley.Step, to parley.ID, q parley.Msg) {
	if to != parley.All {
		send(s, t.spec.Members[to], t.path, q)
		return
	}
	for _, id := range t.spec.Members {
		if id != s.Self {
			send(s, id, t.path, q)
		}
	}
}

func (t *transaction) state(v *parley.Vars) {
	v.Inner("#"+strconv.FormatUint(uint64(t.path), 10), t.inner, nil)
	t.why.state(v)
	parley.Num(v, "taken", &t.why.Claim)
	v.Bool("logged", &t.logged)
	parley.Num(v, "outcome", &t.outcome)
	v.Set("acked", &t.acked)
	v.Bool("asked", &t.asked)
	v.Bool("ready", &t.ready)
	v.Bool("given", &t.given)
	v.Bool("begun", &t.begun)
	v.Set("heard", &t.heard)
	v.Bool("blocked", &t.blocked)
	v.Bool("reminded", &t.reminded)
}

// Transaction is what a process reports about a transaction.
type Transaction struct {
	Name        string
	Coordinator parley.ID
	Outcome     problem.Outcome
	Why         AbortReason // of an abort
	Blocked     bool
	Waits       parley.Set // if blocked: members that may know the outcome
	Asked       bool       // the coordinator has asked for the vote
	Voted       bool       // the vote was yes, and the inner machine has it
	Yes         parley.Set // in package ordered: participants that voted yes
}

func (b *txTable) look(t *transaction) Transaction {
	return Transaction{
		Name: t.spec.Name, Coordinator: CoordinatorOf(t.path), Outcome: t.outcome, Why: t.why, Blocked: t.blocked,
		Waits: t.waits(b.self), Asked: t.asked || b.c.Majority, Voted: t.given && t.yes,
	}
}

// Find returns the transaction that holds name, and whether the process remembers one.
func (b *txTable) Find(name string) (Transaction, bool) {
	if t := b.names[name]; t != nil {
		return b.look(t), true
	}
	e := b.history.Named(name)
	if e == nil {
		return Transaction{}, false
	}
	return Transaction{Name: e.Name, Coordinator: CoordinatorOf(e.Path), Outcome: e.Outcome, Why: e.Why}, true
}

// Live iterates over the transactions that are not over, by coordinator and age.
func (b *txTable) Live() iter.Seq[Transaction] {
	return func(yield func(Transaction) bool) {
		for t := range b.all() {
			if !yield(b.look(t)) {
				return
			}
		}
	}
}
