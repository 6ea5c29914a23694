// Package rsm replicates a deterministic state machine over an ordered broadcast.
//
// Problem: the replicas of a service must stay equal and act as one service, although processes crash and
// clients retry.
//
// Model: the same as that of the broadcast below, as in stack.New(timestamp, service). If the broadcast
// delivers one sequence, the replicas are equal at each position. Over FIFO or causal order they diverge if
// concurrent commands do not commute, as with the lecture's bank account. Nothing is promised if a client
// uses the number of another client.
//
// Source: the lecture, the problem of replication: replica consistency and determinism, recovery and
// reintegration, redundancy; F. B. Schneider, Implementing fault-tolerant services using the state machine
// approach, 1990.
//
// Why it works: the state after k commands is a function of the first k commands, and these are the same
// everywhere. A client numbers its commands, and the state holds each client's last number and answer. So a
// retry is answered again, but not applied again. At regular positions each replica broadcasts a hash of its
// state; a replica that differs from the majority is reported, and stops.
//
// A client must not send its next command before it has the answer to the last one. Otherwise the order may
// put the later command first, and then the earlier command is never applied. A process that is its own
// client obeys this rule: one of its commands is in flight, and up to [Queue] commands wait, including the
// command in flight. Each incarnation of a process is another client. Its numbers start at 1 again, and it
// does not take answers to an earlier incarnation for its own.
//
// Reintegration: a process that restarts, or was excluded, takes over the state of a member, including the
// sessions. If it did not crash, it sends its unanswered command again with the same number, so that the
// command is applied once. Over a durable group the state is durable too: a restarted process has the state
// of its last checkpoint, and gets the later deliveries again.
//
// For many clients there are batches of commands (see [Commands]) and sessions. An ordered command opens a
// session. A client whose session was forgotten learns that, and none of its commands is applied again.
//
// # Decisions
//
// Replicas compare hashes of their state. All replicas report a replica that differs from the majority, and
// that replica stops. Motive: no broadcast can detect an application that is not deterministic. Cost: each
// replica broadcasts at every comparison. An application without a Hasher is copied for each comparison, so
// it should be compared less often.
//
// Replicas are compared at the start of each view. With four nodes or more, each replica broadcasts a hash of
// its state in the order of the new view. It answers no commands before it has the hashes of all members, so
// all know the same hashes. The replicas choose the state that most of them have; on a tie, they choose the
// state of the replica with the lowest ID. They choose a state that came from a single sponsor only if there
// is no other. A replica with another state fetches the chosen state. Motive: one broken node can send
// different commands to different nodes, and no order detects that. Cost: two message delays and one hash for
// each view change. Without a Hasher, the cost is a snapshot.
package rsm
