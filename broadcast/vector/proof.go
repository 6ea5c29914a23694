package vector

import "parley/broadcast/problem"

// proofs sketches why the properties hold.
var proofs = map[string]string{
	problem.FIFOOrder: "A message that must keep the order of its sender waits until the earlier messages of " +
		"its sender in the view are delivered. A view ends at all members with the same messages, and counts " +
		"begin again.",
	problem.CausalOrder: "The vector of a message counts, for each member, the messages up to the last one that " +
		"its sender had delivered. A member delivers the message only when it has delivered as many of each " +
		"member. If the sender continues into the next view, it reports these messages, or all members hold " +
		"them.",
}
