// Package store keeps the durable data of a node's machines on the disk: the log records of each machine, and
// its checkpoint, which is the state that has replaced earlier records.
//
// Appending does not wait. One goroutine commits all records gathered since its last commit, with one write
// and one sync, and then reports the number of the last durable record. A message that depends on a record
// may leave the node only after this report.
//
// # Damage
//
// Every batch contains checksums and the checksum of the batch before it, and a manifest names all files and
// their ends. If anything is missing or changed, opening the store fails and says what: see [Damage]. There
// is one exception. A loss of the records of the last sync looks like a crash before that sync. The store
// then opens without these records and reports that, and [Store.Position] is smaller than the position that
// other nodes have seen from this node.
//
// # Failure
//
// The store does not use a disk again after a failure: nobody knows how much of a failed write the disk has
// kept, and whether it would report a loss. A disk that does not answer for Options.Limit counts as failed.
// After a failure the store accepts nothing more, and reports the failure to its owner, which stops the node.
//
// # Decisions
//
// Parley has its own log for the records of a node (cluster/store), and uses no library. Batches carry their
// checksum and the checksum of the batch before. A manifest names all files and their ends. One disk call
// that fails or takes longer than 5 s ends the store. Motive: a node must notice every loss of acknowledged
// records, and stop when its disk fails. cluster/store reports all of 63 damages that a log can notice. Other
// stores lose records silently in many of these cases: pebble, which the node used before, in 48 (in its
// newest format 32), hashicorp/raft-wal in 50, tidwall/wal in 40, etcd's log in 15, bbolt in 23 of 52. pebble
// and raft-wal do not report a disk that does not answer for 15 s. With 64 callers a record of 128 bytes is
// durable after 354 us; the other stores take 466 us (pebble, newest format) to 1,676 us (bbolt). A single
// record takes 161 us; with etcd's log it takes 129 us, with raft-wal 136 us, with pebble 189 us.
// cluster/store consists of 2 modules, pebble of 31, etcd's log of 25, raft-wal of 17. These figures were
// measured on 2026-11-23 by tools/storebench (go run . damage, faults, commits), on two cores of an AMD EPYC
// virtual machine that other programs used too, with Linux and Go 1.26.8. The tables are in
// docs/reference/performance.md. Cost: 1,450 lines to maintain. One test makes every disk call fail, and
// other tests damage every file.
//
// A disk call that does not return is abandoned. Go cannot interrupt a goroutine that waits in the operating
// system. So calls of the store and of the node's folder have a time limit. When it has passed, the node ends
// and leaves the goroutine behind. Motive: other nodes wait for a node that waits for its disk, and so does
// the program that embeds the node. Cost: the goroutine keeps its resources until the disk answers or the
// process ends. Another start in the same process finds the folder locked.
//
// If the disk is nearly full, the node refuses clients, but not the records of machines. The store checks the
// free space once a second and after each new log. A request compares only the last measured number. Below 64
// MiB a node refuses requests that need a write. Records of machines are written as long as they fit. Motive:
// two logs fit into 64 MiB (the store reserves more if a state is longer than a log). So requests in flight
// complete, and the node can be stopped in order. A machine whose record is refused would have to stop. Cost:
// requests from other nodes still fill the disk, and stop the node in the end.
package store
