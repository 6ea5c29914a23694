package kernel

import "parley/cluster/protocols"

// Level is what a group promises, and under which faults. See [protocols.Level] for its methods.
type Level = protocols.Level

// The levels.
const (
	Total     = protocols.Total
	Reliable  = protocols.Reliable
	Uniform   = protocols.Uniform
	FIFO      = protocols.FIFO
	Causal    = protocols.Causal
	Atomic    = protocols.Atomic
	Byzantine = protocols.Byzantine
)

// ParseLevel parses the result of Level.String.
func ParseLevel(text string) (Level, error) { return protocols.ParseLevel(text) }
