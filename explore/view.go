package explore

import "parley"

// View is the part of a state that a goal can read.
type View struct {
	History *parley.History // requests, deliveries and indications so far; Over: nothing more is due
	Faulty  parley.Set      // processes that lie
	Down    parley.Set      // processes that crashed and have not restarted
	// Vars returns the variables of a process's machine by the names that its State gives them, nil for a
	// process that is down. Vars is nil if Options.Looks is not set.
	Vars func(id parley.ID) []parley.Variable
}
