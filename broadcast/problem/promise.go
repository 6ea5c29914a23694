package problem

import "parley"

// Promise returns whether theory promises property for a broadcast that sends each message once, in the crash
// model: it needs links that lose nothing and correct processes connected by correct ones, and does not
// repeat what a process missed while it was down. because is the reason if it holds.
func Promise(a parley.RunConditions, property, because string) parley.Promise {
	lacks := ""
	switch property {
	case Validity, Agreement, UniformAgreement:
		lacks = losses(a)
	case FIFOOrder, CausalOrder, TotalOrder, UniformTotalOrder, UniformPrefix:
		if a.Processes.LostDisk {
			lacks = "a process that lost its disk uses its old sequence numbers again"
		}
	case Delivery:
		lacks = "a single run need not show this"
	}
	return parley.Promised(property, because, lacks)
}

// losses returns why a message may not reach a correct process, or "".
func losses(a parley.RunConditions) string {
	switch {
	case a.Network.Lost || a.Network.Cut:
		return "a link lost messages, and no process sends them again"
	case a.Network.Disconnected:
		return "some correct processes are not connected through correct processes"
	case a.Processes.LostDisk:
		return "a process that lost its disk uses its old sequence numbers again"
	case a.Processes.Restarted:
		return "a process was down, and no process sends the missed messages again"
	}
	return ""
}
