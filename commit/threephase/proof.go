package threephase

import "parley/commit/problem"

// proofs sketches why the properties hold.
var proofs = map[string]string{
	problem.Atomicity: "The coordinator commits only when all processes that are up have acknowledged " +
		"PRECOMMIT. So no process commits while a process that is up is uncertain. If the coordinator crashes " +
		"and all that are up are uncertain, nobody has committed, and they abort. If one of them is " +
		"precommitted, nobody has aborted, and they commit.",
	problem.NonBlocking: "When a coordinator crashes, the processes that are up elect another one, which asks " +
		"for their states. If all are uncertain, no process, up or down, has committed, and it aborts. If one " +
		"is precommitted, no process has aborted, and it commits. So no process waits for one that is down.",
}
