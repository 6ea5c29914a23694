package atomic

import "parley/broadcast/problem"

// proofs sketches why the properties hold.
var proofs = map[string]string{
	problem.TotalOrder: "A receiver proposes a priority above all that it knows, and the final priority is the " +
		"highest proposal. So when a receiver delivers a message with priority p, every message that it holds " +
		"or will receive gets a higher final priority. Therefore each process delivers in the order of the " +
		"final priorities, which are the same everywhere.",
}
