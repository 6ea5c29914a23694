package problem

import "parley"

// Promise says what theory promises of one of the properties for a broadcast that
// sends each message once, in the crash model: it needs links that lose nothing
// and correct processes that are joined by correct ones, and it does not help who
// was down. because is the reason if it holds.
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
		lacks = "a single run need not show it"
	}
	return parley.Promised(property, because, lacks)
}

// losses tells why a message may not reach a correct process, "" if it does.
func losses(a parley.RunConditions) string {
	switch {
	case a.Network.Lost || a.Network.Cut:
		return "a link lost messages, and each is sent once"
	case a.Network.Disconnected:
		return "correct processes are not joined by correct ones"
	case a.Processes.LostDisk:
		return "a process that lost its disk uses its old sequence numbers again"
	case a.Processes.Restarted:
		return "a process was down, and nobody repeats what it missed"
	}
	return ""
}
