package om

import "parley/agreement/problem"

// proofs sketches why the properties hold. It is the proof of Lamport, Shostak and Pease (1982), section 3.
var proofs = map[string]string{
	problem.Validity: "Let k processes be faulty. Induction over m shows that OM(m) keeps validity if n > 2k + " +
		"m. In OM(0) a correct source sends its value to all. In OM(m) each lieutenant relays the value by " +
		"OM(m-1) to n-1 > 2k + (m-1) processes, so every correct lieutenant obtains it from each of the n-1-k " +
		"correct lieutenants. These are a majority, because n-1 > 2k. With k <= m it is enough that n > 3m.",
	problem.Agreement: "If the source is correct, validity implies agreement. If the source is faulty, at most " +
		"m-1 lieutenants are faulty. Each lieutenant relays by OM(m-1), and n-1 > 3(m-1), so by induction all " +
		"correct lieutenants obtain the same value from each lieutenant. They take the majority of the same " +
		"values.",
}
