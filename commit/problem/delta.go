package problem

import (
	"flag"

	"parley"
)

// CheckDelta returns what is wrong with the longest time that a message takes, or nil. 0 is allowed and means
// a default.
func CheckDelta(delta, longest parley.Tick) error {
	if delta < 0 || delta > longest {
		return parley.FlagErrorf("delta", "%d ticks: allowed are 1 to %d", delta, longest)
	}
	return nil
}

// DeltaFlag declares the flag --delta. The function that it returns gets the flag's value and the result of the
// configuration's own check. This function also refuses 0, because 0 is not allowed as a value of the flag.
func DeltaFlag(fs *flag.FlagSet, delta *parley.Tick) func(delta parley.Tick, check error) error {
	fs.Int64Var((*int64)(delta), "delta", int64(*delta), "maximum delay of a message, in `ticks`")
	return func(delta parley.Tick, check error) error {
		if check != nil || delta > 0 {
			return check
		}
		return parley.FlagErrorf("delta", "0 ticks: allowed is at least 1")
	}
}
