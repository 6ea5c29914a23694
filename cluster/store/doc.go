// Package store keeps what the machines of a node have made durable: for each
// machine its records, and the state that has replaced earlier ones.
//
// Records are handed over without waiting. One goroutine commits what has gathered
// since its last commit, with one write and one sync for all, and then says up to where
// all is on the disk. Nothing that depends on a record may leave the node before that.
//
// # Damage
//
// Every batch carries checksums and that of the batch before it, and a manifest names all
// files and where they end. What is missing or changed is found when the store is opened, and
// then it does not open: see [Damage]. One loss cannot be told from a crash: that of the last
// sync before it. The store then opens without it, says so, and [Store.Position] is smaller
// than what others have seen of the node.
//
// # Failure
//
// A disk that fails is not asked again: what it has kept of a failed write is unknown,
// and so is whether it will say so. A disk that does not answer for Options.Limit has failed.
// The store then takes in nothing more and tells its owner, who stops the node.
//
// # Decisions
//
// The records of a node are kept in a log of our own (cluster/store). Batches carry checksums and the
// checksum of the batch before, a manifest names all files and their ends, and one call of the disk that
// fails or takes longer than 5 s ends the store. Motive: a node must notice every loss of what it
// acknowledged, and stop when its disk does. Of 63 damages that a log can notice, cluster/store reports
// all. The others lose records in silence: pebble, which the node used before, in 48 (in its newest
// format 32), hashicorp/raft-wal in 50, tidwall/wal in 40, etcd's log in 15, bbolt in 23 of 52. pebble
// and raft-wal say nothing of a disk that does not answer for 15 s. With 64 callers a record of 128
// bytes is durable after 354 us; the others take 466 us (pebble, newest format) to 1,676 us (bbolt). A
// lone record takes 161 us, etcd's log 129 us, raft-wal 136 us, pebble 189 us. cluster/store is built of
// 2 modules, pebble of 31, etcd's log of 25, raft-wal of 17. Measured on 2026-11-23 by tools/storebench
// (go run . damage, faults, commits), on two cores of an AMD EPYC virtual machine that other programs
// used too, Linux, Go 1.26.8; the tables are in docs/performance.md. Cost: 1,450 lines to keep; a test
// fails every call of the disk, and others damage every file.
//
// A call of the disk that does not end is left behind. Go cannot take a goroutine back from the kernel,
// so calls of the store and of the node's folder have a limit, after which the node ends without them.
// Motive: a node that waits for its disk is for the others one that may answer yet, and who embeds it
// waits too. Cost: a goroutine and what it holds until the disk answers or the process ends; another
// start in the same process finds the folder locked.
//
// A disk that is nearly full refuses clients, not machines. The store looks at the room once a second
// and after each new log, and what asks for it reads a number in memory. Below 64 MiB a node refuses
// requests that would be written; records of machines are written as long as they fit. Motive: two logs
// fit into 64 MiB (more is kept where a state is longer than a log), so that what is under way ends, and
// the node can be stopped in order; a machine that were refused a record would have to stop. Cost: what
// other nodes are asked still fills the disk, and stops the node in the end.
package store
