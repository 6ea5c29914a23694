package bracha

import "parley/broadcast/problem"

// proofs sketches why the properties hold.
var proofs = map[string]string{
	problem.Validity: "If the sender is correct, all n-m correct processes echo its message, and n-m > (n+m)/2. " +
		"So all correct processes are ready, and these are at least 2m+1, which is enough to deliver.",
	problem.Agreement: "A process that delivers a message has received 2m+1 times that a process is ready, so " +
		"m+1 correct processes are. All other correct processes receive this and are ready too. At least 2m+1 " +
		"processes are correct, because n > 3m. So all of them deliver.",
	Consistency: "Two sets of more than (n+m)/2 processes share more than m processes, so they share a correct " +
		"one, which echoes only one message. So the first correct processes that are ready are ready for the " +
		"same message. Others join only if m+1 processes are ready, one of which is correct. Among 2m+1 " +
		"processes that are ready, one is correct, so all deliver that message.",
	Totality: "A process that delivers a message has received 2m+1 times that a process is ready, so m+1 " +
		"correct processes are. All other correct processes receive this and are ready too. At least 2m+1 " +
		"processes are correct, because n > 3m. So all of them deliver.",
}
