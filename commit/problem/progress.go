package problem

import "parley"

// Progress implements [parley.Protocol.Progress] for a process with one transaction, whose log holds the records of
// this package.
func Progress(m parley.Msg, record bool) (p parley.Progress) {
	switch {
	case record && string(m.Body) == RecordYes:
		p.Stage = parley.StageInDoubt
	case record:
	case m.Kind == parley.Decide:
		p.Stage = Stage(ReadOutcome(m.Body))
	case m.Kind == Blocked:
		p.Stage = parley.StageBlocked
	}
	return p
}

// Stage returns the stage of a process that knows the outcome.
func Stage(o Outcome) parley.Stage {
	return [...]parley.Stage{parley.NoStage, parley.StageCommitted, parley.StageAborted}[min(o, Abort)]
}

// Waits describes what a process waits for that has voted yes, for [parley.Vars.Derive]: until the outcome it holds its
// locks.
func Waits(what string) parley.Variable {
	return parley.Variable{Name: "waits", Kind: parley.WaitingProcess, Value: "its locks", Waits: what}
}
