package phaseking

import "parley/agreement/problem"

// proofs sketches why the properties hold.
var proofs = map[string]string{
	problem.Validity: "If all correct processes hold v, each of them receives v from all n-m correct processes " +
		"in every phase. That is enough to keep v, whatever the king sends.",
	problem.Agreement: "At least one of m+1 kings is correct. In its phase, a process that keeps its value has " +
		"received it so often that every correct process, and so the king, holds this value too. All other " +
		"processes adopt the value of the king. So all correct processes hold one value, and in later phases " +
		"they receive it often enough to keep it.",
}
