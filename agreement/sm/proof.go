package sm

import "parley/agreement/problem"

// proofs sketches why the properties hold.
var proofs = map[string]string{
	problem.Validity: "A correct source signs only one value, and no other process can forge its signature. All " +
		"correct lieutenants receive this value in round 0, and no other value with the signature of the " +
		"source. So V contains only this value.",
	problem.Agreement: "All correct lieutenants end with the same set V. If one receives a value before round " +
		"m, it signs and relays the value, and all others have it one round later. If it receives a value in " +
		"round m, the chain has m+1 signers. One of these is correct, and has relayed the value to all. The " +
		"decision is a function of V only.",
}
