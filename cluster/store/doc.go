// Package store keeps what the machines of a node have made durable: the records of each machine, and the
// state that has replaced earlier records.
//
// Appending does not wait. One goroutine commits the records gathered since its last commit, with one write
// and one sync for all, and then reports the number of the last durable record. Nothing that depends on a
// record may leave the node before that.
//
// # Damage
//
// Every batch contains checksums and the checksum of the batch before it, and a manifest names all files
// and their ends. Opening the store finds what is missing or changed, and then fails: see [Damage]. One
// loss looks the same as a crash: the loss of the last sync before it. The store then opens without that
// sync, reports it, and [Store.Position] is smaller than what other nodes have seen of this node.
//
// # Failure
//
// A disk that has failed is not used again: it is unknown how much of a failed write the disk has
// kept, and whether it would report a loss. A disk that does not answer for Options.Limit has
// failed. The store then accepts nothing more and reports the failure to its owner, which stops the
// node.
//
// # Decisions
//
// The records of a node are kept in a log of our own (cluster/store). Batches carry checksums and the
// checksum of the batch before, a manifest names all files and their ends, and one disk call that fails or
// takes longer than 5 s ends the store. Motive: a node must notice every loss of what it acknowledged, and
// stop when its disk fails. Of 63 damages that a log can notice, cluster/store reports all. The others lose
// records silently: pebble, which the node used before, in 48 (in its newest format 32), hashicorp/raft-wal
// in 50, tidwall/wal in 40, etcd's log in 15, bbolt in 23 of 52. pebble and raft-wal do not report a disk
// that does not answer for 15 s. With 64 callers a record of 128 bytes is durable after 354 us; the others
// take 466 us (pebble, newest format) to 1,676 us (bbolt). A single record takes 161 us, etcd's log 129 us,
// raft-wal 136 us, pebble 189 us. cluster/store is built of 2 modules, pebble of 31, etcd's log of 25,
// raft-wal of 17. Measured on 2026-11-23 by tools/storebench (go run . damage, faults, commits), on two
// cores of an AMD EPYC virtual machine that other programs used too, Linux, Go 1.26.8; the tables are in
// docs/reference/performance.md. Cost: 1,450 lines to maintain; a test makes every disk call fail, and others damage
// every file.
//
// A disk call that does not return is abandoned. Go cannot take a goroutine back from the kernel, so calls
// of the store and of the node's folder have a limit, after which the node ends without them. Motive: to
// other nodes, a node that waits for its disk is one that may still answer, and the program that embeds it
// waits too. Cost: a goroutine and what it holds until the disk answers or the process ends; another start
// in the same process finds the folder locked.
//
// A nearly full disk refuses clients, not machines. The store checks the free space once a second and after
// each new log; requests read a number in memory. Below 64 MiB a node refuses requests that would be
// written; records of machines are written as long as they fit. Motive: two logs fit into 64 MiB (more is
// reserved where a state is longer than a log), so that requests in flight complete, and the node can be
// stopped in order; a machine whose record was refused would have to stop. Cost: requests from other nodes
// still fill the disk, and stop the node in the end.
package store
