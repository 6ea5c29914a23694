// Package store keeps the durable data of a node's machines on the disk. For each machine, it keeps the log records
// and a checkpoint: a copy of the machine's state that replaces earlier records.
//
// Append does not wait for the disk. One goroutine takes all records that were appended since its last commit, and
// commits them with one write and one sync. Then it reports the number of the last durable record. A message that
// depends on a record may leave the node only after this report.
//
// # Damage
//
// All records of one commit form a batch. Every batch contains checksums of its contents, and the checksum of the
// previous batch. A manifest names all files and their ends. If anything is missing or changed, opening the store
// fails, and the error says what is damaged: see [Damage].
//
// There is one exception: the loss of the records of the last sync looks like a crash before that sync. In this case
// the store opens without these records. Only [Store.Position] shows the loss: it is smaller than the position that
// other nodes have seen from this node.
//
// # Failure
//
// The store does not use a disk again after a failure. After a failed write, the store cannot find out how much of the
// data the disk has kept, and the disk may not report a loss. A disk that does not answer within Options.Limit counts
// as failed. After a failure the store accepts nothing more. It reports the failure to its owner, and the owner stops
// the node.
//
// # Decisions
//
// Parley has its own log for the records of a node, and uses no library. Motive: a node must detect every loss of
// acknowledged records, and must stop when its disk fails. The first two points show that the stores that we tried do
// not do this. The other two points are further reasons:
//
//   - Damage: of 63 kinds of damage that a log can detect in its files, cluster/store reports all. Other stores lose
//
// records silently in many of these cases: pebble in 48 (in 32 with its newest format), hashicorp/raft-wal in 50,
// tidwall/wal in 40, etcd's log in 15, and bbolt in 23 of 52.   - Unresponsive disks: cluster/store fails if a disk
// call takes longer than 5 s. pebble and raft-wal do not report     a disk that does not answer for 15 s.   - Speed:
// with 64 callers, a record of 128 bytes is durable after 354 us. The other stores take 466 us (pebble,     newest
// format) to 1,676 us (bbolt). A single record takes 161 us; with etcd's log it takes 129 us, with     raft-wal 136
// us, with pebble 189 us.   - Dependencies: cluster/store needs 2 modules, pebble 31, etcd's log 25, and raft-wal 17.
//
// The program tools/storebench measured these figures on 2026-11-23, on two cores of an AMD EPYC virtual machine that
// other programs used too, with Linux and Go 1.26.8. The README of storebench says how to measure again. The tables
// are in docs/reference/performance.md. Cost: 1,450 lines to maintain. One test makes every disk call fail, and other
// tests damage every file.
//
// A node abandons a disk call that does not return. Go cannot interrupt a goroutine that waits in the operating
// system. So calls of the store, and calls on the node's folder, have a time limit. When this limit has passed, the
// node stops, but the goroutine remains. Motive: a node that waits for its disk would make other nodes wait, and also
// the program that embeds the node. Cost: the goroutine keeps its resources until the disk answers or the process
// ends. If the same process starts the node again, the folder is still locked.
//
// If the disk is nearly full, the node refuses requests of clients, but still writes the records of machines as long
// as they fit. Below 64 MiB of free space a node refuses requests that need a write. The store measures the free space
// once a second and after each new log file. Motive: two log files fit into 64 MiB, so requests in flight can
// complete, and an operator can stop the node in an orderly way. (The store reserves more if a state is longer than a
// log file.) If the store refused a record of a machine, the machine would have to stop. Cost: requests from other
// nodes still fill the disk, and finally stop the node.
package store
