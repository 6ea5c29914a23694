package explore

import "parley"

// View is a state as a goal sees it.
type View struct {
	History *parley.History // what was asked, delivered and indicated so far; Over: nothing more is due
	Faulty  parley.Set      // processes that lie
	Down    parley.Set      // processes that crashed and are not back
	// Vars returns the variables of a process's machine by the names that its State gives
	// them, none of one that is down. It is nil if Options.Looks is not set.
	Vars func(id parley.ID) []parley.Variable
}
