package eig

import "parley/agreement/problem"

// proofs sketches why the properties hold.
var proofs = map[string]string{
	problem.Validity: "If the path of a node ends in a correct process, that process sent the same value to " +
		"all. With n > 3m, more than half of the children of the node end in correct processes too, which relay " +
		"that value. So from the leaves upward each such node gets the value that its last process sent. The " +
		"root is such a node if the source is correct.",
	problem.Agreement: "All correct processes compute the same value at a node whose path ends in a correct " +
		"process, because such processes relay the same value to all and, with n > 3m, are the majority of its " +
		"children. A path from the root to a leaf names m+1 processes, so one of them is correct. So each path " +
		"has a node at which all agree, and from these nodes upward all compute the same values, up to the root.",
}
