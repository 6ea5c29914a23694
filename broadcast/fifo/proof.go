package fifo

import "parley/broadcast/problem"

// proofs sketches why the properties hold.
var proofs = map[string]string{
	problem.FIFOOrder: "A process counts, for each sender, the number of the message that it must deliver next. " +
		"The count increases by one with each delivery, and a message with another number waits. The sender " +
		"numbers its messages in the order in which it broadcasts them.",
}
