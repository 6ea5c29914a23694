package service

import "parley/commit/problem"

// A name belongs to the first transaction that a process receives under it, as long as the process remembers
// that one. The process votes no on all others, and no name leads to their outcomes.

// NameClaim says what is known about another transaction that holds a name.
type NameClaim uint8

// The claims.
const (
	Free          NameClaim = iota // no transaction holds the name
	TakenPerhaps                   // one does; it may be the same, with any outcome
	TakenOther                     // a different one does
	TakenByCommit                  // the same one does, and committed
	TakenByAbort                   // the same one does, and aborted
)

// name gives t its name, unless another transaction holds it. A restart may restore a transaction that did not
// get its name; one that this process voted yes on did.
func (b *txTable) name(t *transaction) {
	e, had := b.history.at[t.path], b.names[t.spec.Name]
	switch {
	case b.history.Named(t.spec.Name) != nil, e != nil && e.Why.Claim != Free:
	case had == nil, t.yes && !had.yes:
		b.names[t.spec.Name] = t
	}
}

// claim returns what is known of the transaction that holds the name of a new one.
func (b *txTable) claim(of Spec) NameClaim {
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

// holds reports whether no other transaction holds the name of t.
func (b *txTable) holds(t *transaction) bool {
	if x := b.names[t.spec.Name]; x != nil {
		return x == t
	}
	e := b.history.Named(t.spec.Name)
	return e == nil || e.Path == t.path
}
