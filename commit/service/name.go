package service

import "parley/commit/problem"

// A name belongs to the first transaction that a process hears of under it, as long as the
// process remembers that one. The process votes no on all others, whose outcomes are found
// under no name.

// NameClaim says what is known of another transaction that already has a name.
type NameClaim uint8

// The claims.
const (
	Free          NameClaim = iota // no transaction has the name
	TakenPerhaps                   // one has; it may be the same, with any outcome
	TakenOther                     // a different one has
	TakenByCommit                  // the same one has, and committed
	TakenByAbort                   // the same one has, and aborted
)

// name gives a transaction its name, unless another one has it. After a crash a transaction may
// come back that did not get its name; one that this process voted yes on had it.
func (b *book) name(t *transaction) {
	e, had := b.history.at[t.path], b.names[t.spec.Name]
	switch {
	case b.history.Named(t.spec.Name) != nil, e != nil && e.Why.Claim != Free:
	case had == nil, t.yes && !had.yes:
		b.names[t.spec.Name] = t
	}
}

// claim returns what is known of the transaction that has the name of a new one.
func (b *book) claim(of Spec) NameClaim {
	var digest uint64
	var outcome problem.Outcome
	if t := b.names[of.Name]; t != nil {
		digest, outcome = t.spec.Digest, t.outcome
	} else if e := b.history.Named(of.Name); e != nil {
		digest, outcome = e.Digest, e.Outcome
	} else {
		return Free
	}
	switch {
	case digest != of.Digest:
		return TakenOther
	case outcome == problem.Commit:
		return TakenByCommit
	case outcome == problem.Abort:
		return TakenByAbort
	}
	return TakenPerhaps
}

// holds tells whether no other transaction has the name.
func (b *book) holds(t *transaction) bool {
	if x := b.names[t.spec.Name]; x != nil {
		return x == t
	}
	e := b.history.Named(t.spec.Name)
	return e == nil || e.Path == t.path
}
