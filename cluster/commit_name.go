package cluster

import "parley/commit/problem"

// Who has which name. A name is of the first transaction that a node hears of under it, as long as
// the node remembers that; the node says no to all others, and what becomes of those is found
// under no name.

// taking is what is known of a transaction that has had a name already.
type taking uint8

const (
	free          taking = iota
	takenPerhaps         // it may be the same, and have any outcome
	takenOther           // it is another one
	takenByCommit        // it is the same, and committed
	takenByAbort         // it is the same, and aborted
)

// name gives a transaction its name, unless that is taken. After a crash there may be one that
// did not get it; who said yes had it.
func (m *transactions) name(t *transaction) {
	e, had := m.past.at[t.path], m.names[t.sheet.name]
	switch {
	case m.past.named(t.sheet.name) != nil, e != nil && e.why.taken != free:
	case had == nil, t.yes && !had.yes:
		m.names[t.sheet.name] = t
	}
}

// taking tells what has the name of a transaction, if anything has.
func (m *transactions) taking(of sheet) taking {
	var digest uint64
	var outcome problem.Outcome
	if t := m.names[of.name]; t != nil {
		digest, outcome = t.sheet.digest, t.outcome
	} else if e := m.past.named(of.name); e != nil {
		digest, outcome = e.digest, e.outcome
	} else {
		return free
	}
	switch {
	case digest != of.digest:
		return takenOther
	case outcome == problem.Commit:
		return takenByCommit
	case outcome == problem.Abort:
		return takenByAbort
	}
	return takenPerhaps
}

// holds tells whether no other transaction has the name.
func (m *transactions) holds(t *transaction) bool {
	if x := m.names[t.sheet.name]; x != nil {
		return x == t
	}
	e := m.past.named(t.sheet.name)
	return e == nil || e.path == t.path
}
