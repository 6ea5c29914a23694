package diffusion

import "parley/broadcast/problem"

// proofs sketches why the properties hold.
func (c Config) proofs() map[string]string {
	if c.Uniform {
		return uniformProofs
	}
	return plainProofs
}

var plainProofs = map[string]string{
	problem.Validity: "A correct sender sends its message to all neighbors. Consider a path of correct " +
		"processes to another correct process: each process on it sends the message to the next one before it " +
		"delivers it itself. So the message reaches the end of the path.",
	problem.Agreement: "Suppose that a correct process delivers a message. Consider a path of correct processes " +
		"to another correct process: each process on it sends the message to the next one before it delivers it " +
		"itself. So the other process receives the message, and delivers it.",
}

var uniformProofs = map[string]string{problem.Agreement: uniformProof, problem.UniformAgreement: uniformProof}

const uniformProof = "A process delivers a message only after copies from more than half of all " +
	"processes. More than half are correct, so one of these copies is from a correct process, which sent it " +
	"to all. So every correct process receives the message, relays it, and receives the copies of all " +
	"correct processes."
