package causal

import "parley/broadcast/problem"

// proofs sketches why the properties hold.
func (c Config) proofs() map[string]string {
	if c.Form == Vector {
		return map[string]string{
			problem.CausalOrder: "The vector of a message m counts, for each incarnation of each process, the messages " +
				"that its sender had delivered: these are the messages that precede m directly. The messages of one sender " +
				"are delivered in the order of their numbers, so a count names them. m waits until they are delivered, and " +
				"each of them has waited for those that precede it.",
		}
	}
	return map[string]string{
		problem.CausalOrder: "A message that precedes m is in the bundle of m, in an earlier bundle of the sender of m, " +
			"or in the bundle of a message that one of these contains. Bundles of one sender arrive in order. So when the " +
			"bundle of m arrives, a process has delivered what precedes m, or it is in the bundle, and is delivered first.",
	}
}
