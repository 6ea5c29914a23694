package timestamp

import "parley/broadcast/problem"

// proofs sketches why the properties hold.
var proofs = map[string]string{
	problem.UniformTotalOrder: "A member delivers the message with the smallest key when all members have " +
		"acknowledged it. When a member acknowledges m, its clock has passed the key of m, so its later " +
		"messages have larger keys. Its earlier messages arrived before, because links are FIFO. So every " +
		"message with a smaller key has arrived, and all members deliver in the order of the keys.",
	problem.UniformAgreement: "A member that delivers m knows that all members have received m. When a view " +
		"ends, each member reports the messages that it holds, so each reports m or has delivered it. The union " +
		"of the reports is delivered before the next view.",
	OneSequence: "Within a view, all deliver in the order of the keys. A view ends with the same messages at " +
		"all members that continue, and what any process has delivered is among them. So the deliveries of " +
		"every process are a prefix of one sequence.",
}
