package api

// meanings has the help text of each metric of a node: its meaning, its unit, and what to do when it rises or falls.
var meanings = map[string]string{
	"info":  "Always 1. The labels name the cluster and the node.",
	"ready": "1 if the node is ready for clients, otherwise 0. If it is 0, /readyz says why.",
	"incarnation": "Number of the present incarnation of the node. A rise means that the node has restarted: " +
		"look at the log.",
	"refused_total": "Messages of the peer that a machine of this node refused, by reason. A steady " +
		"rise means that the peer is faulty or late: look at the log of the peer.",
	"strangers_total": "Connections to the address for nodes that did not authenticate as a member, by reason. " +
		"If it rises, look for a wrong certificate or an attack: the log names the " +
		"addresses.",
	"strange_total": "Messages of other nodes for machines that this node does not have. If it " +
		"rises, compare the configurations of the nodes.",
	"commit_total": "Finished transactions, by outcome. If aborted transactions rise, the log " +
		"of the participants says why.",
	"commit_pending": "Transactions whose outcome this node does not know yet. If it rises, look at " +
		"commit_blocked and participants.",
	"commit_blocked": "Transactions that get no outcome until other nodes recover. If it is not 0, " +
		"start the nodes that are down.",
	"link_connected":  "1 if the peer is connected, otherwise 0. If it is 0, look at the peer and at the network.",
	"member_expelled": "1 from when an operator expelled the member until the member is started again, otherwise 0.",
	"link_connections_total": "Connections with the peer since the start. A rise means that the link breaks: " +
		"look at the network.",
	"link_frames_in_total":  "Frames received from the peer.",
	"link_frames_out_total": "Frames sent to the peer.",
	"link_bytes_in_total":   "Bytes received from the peer.",
	"link_bytes_out_total":  "Bytes sent to the peer.",
	"link_frames_lost_total": "Frames that were lost because they were queued when a connection ended. " +
		"A rise means that the link breaks.",
	"link_queued_bytes": "Bytes queued for the peer. If it rises, the peer or the network is too slow.",
	"link_dropped_total": "Dropped connections and frames of the peer, by reason. If it rises, look " +
		"for the reason in the log.",
	"link_rtt_seconds": "Round-trip time of the last pings to the peer, in seconds: minimum, median, and " +
		"99.9th percentile. If the median exceeds 1/5 of a round, the peer counts as faulty: " +
		"run parley doctor.",
	"table_position": "Commands that this replica has applied. If it stays behind the others, this node is slow.",
	"table_waiting": "Commands of this node without an answer. If it rises, the table stalls: look " +
		"at view_suspected.",
	"table_stopped": "1 if this replica has stopped because it diverged or its machine panicked. " +
		"If it is 1, see the log, and start the node with an empty folder and --rejoin.",
	"table_diverged": "1 for a node whose replica of the table differs from the majority of the replicas. " +
		"If it is 1, start that node with an empty folder and --rejoin, and report the bug.",
	"store_records_total": "Records submitted to the disk since the start.",
	"store_durable_total": "Records that reached the disk since the start. If it stays behind store_records_total, " +
		"the disk is too slow.",
	"store_bytes_total": "Bytes of records submitted to the disk since the start.",
	"store_free_bytes": "Free bytes on the disk of the data folder, measured at most 1 s ago. Below 64 MiB " +
		"the node refuses requests that write.",
	"store_slowest_commit_seconds": "Duration of the slowest commit to the disk since the start, in seconds. If it " +
		"rises, the disk is too slow.",
	"store_refuses": "1 if the node refuses requests that write, because less than 64 MiB are free on the " +
		"disk of the data folder, otherwise 0. If it is 1, free space on that disk.",
	"view_in": "1 if this node is a member of the group or table, otherwise 0. If it is 0, the node " +
		"has not rejoined yet.",
	"view_number": "Number of the view of the group or table. A rise means that a member was " +
		"excluded or has joined.",
	"view_members": "Members of the view. If it falls, a node was excluded: look at link_connected for " +
		"that node.",
	"view_suspected": "Members that this node suspects to have crashed. If it stays above 0, look at " +
		"these nodes.",
	"slots_opened_total": "Agreements that this node has begun or joined, by stream or group.",
	"slots_done":         "Number of the last slot before the first unfinished slot, by stream or group.",
	"slots_abstained_total": "Agreements from which this node abstained because it missed a deadline or was " +
		"rejoining. If it rises, look at pauses_total and clock_synchronized.",
	"clock_synchronized": "1 if the clock is synchronized with the other clocks, otherwise 0. If it is 0, look at " +
		"link_rtt_seconds and clock_skew_seconds.",
	"clock_bound_seconds": "How far the clock of any other correct node may differ from this node's " +
		"clock, in seconds.",
	"clock_offset_seconds": "How far the time of the cluster is ahead of the computer's clock, in seconds.",
	"clock_drift_ppm": "How much faster this node's clock runs than the other clocks, in parts per million. " +
		"Above 3000 the node refuses agreements: repair the clock.",
	"clock_skew_seconds": "How far the peer's clock was ahead of this node's clock at the last reading, in seconds. " +
		"If it rises for one peer, repair the clock of that peer.",
	"wake_late_seconds": "How much later than requested the operating system wakes this process, in seconds: " +
		"median and 99.9th percentile. If it rises, the computer is overloaded.",
	"pauses_total": "Wake-ups later than 1/5 of a round. If it rises, reduce the load or use longer " +
		"rounds: run parley doctor.",
	"suspended_seconds_total": "How long this computer was suspended since the start, in seconds.",
}
