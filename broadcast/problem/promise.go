package problem

import "parley"

// Promise returns whether theory promises a property for a broadcast that sends each message once, in the crash
// model. Such a broadcast needs links that lose nothing, and paths of correct processes between all correct
// processes. It does not repeat the messages that a process missed while it was down. The argument because is the
// reason if the promise holds.
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
