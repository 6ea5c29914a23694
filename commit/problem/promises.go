package problem

import "parley"

// Failed returns what made timeouts expire in a run, or "" if nothing did.
func Failed(a parley.RunConditions) string {
	switch {
	case a.Faulty > 0 || a.Processes.Restarted || a.Processes.LostDisk:
		return "a process crashed"
	case a.Network.Lost || a.Network.Cut || a.Network.Disconnected:
		return "messages were lost"
	case a.Network.Late || a.Processes.Paused:
		return "a message was late, or a clock was wrong"
	}
	return ""
}

// Phases returns the cost for n processes if nothing fails: one message between the coordinator and each
// participant in each phase. The cost has one entry, because messages are not counted by phase.
func Phases(phases, n int) parley.Cost {
	all := parley.Traffic{Messages: uint64(phases * (n - 1))}
	return parley.Cost{Rounds: phases, PerRound: []parley.Traffic{all}, AtMost: true}
}
