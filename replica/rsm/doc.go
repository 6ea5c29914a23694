// Package rsm replicates a deterministic state machine over an ordered broadcast.
//
// Problem: a service consists of replicas, which are copies of one state machine. The replicas must stay equal and
// act as one service, although processes crash and clients retry.
//
// Model: the model of the broadcast beneath. An example is stack.New(timestamp, service). If the broadcast delivers
// one sequence, the replicas are equal at each position. With only FIFO or causal order they diverge if the result
// of concurrent commands depends on their order, as with the bank account of package bank. Nothing is promised if a
// client uses the client number of another client.
//
// Source: the lecture (docs/explanation/sources.md), the problem of replication: replica consistency and
// determinism, recovery and reintegration, redundancy. F. B. Schneider, Implementing fault-tolerant services using
// the state machine approach, 1990.
//
// Why it works: the state after k commands is a function of the first k commands, and these are the same
// everywhere. A client numbers its commands, and the state holds the last number and answer of each client. So a
// retry gets the same answer again, but is not applied again. At regular positions each replica broadcasts a hash
// of its state. All replicas report a replica that differs from the majority, and that replica stops.
//
// A client must not send its next command before it has the answer to the last one. Otherwise the order may put the
// later command first, and then the earlier command is never applied. If a process is its own client, this package
// obeys the rule: one command is in flight, and further commands wait in a queue. At most [Queue] commands wait,
// including the command in flight. Each incarnation of a process counts as another client, whose numbers start at
// 1. So it does not mistake the answers to an earlier incarnation for its own.
//
// Reintegration: a process that restarts, or was excluded, takes over the state of a member, including the clients'
// numbers and answers. If it was excluded but did not crash, it sends its unanswered command again with the same
// number, so that the command is applied once. If the group beneath is durable, the state is durable, too. A
// restarted process then has the state of its last checkpoint, and gets the later deliveries again.
//
// Many clients can share a replica, by batches of commands (see [Commands]) and by sessions. A client opens a
// session by a command, and the session numbers the client's commands. Replicas keep a limited number of sessions.
// If they have forgotten a session, its client learns that, and none of its commands is applied again.
//
// # Decisions
//
// Replicas compare hashes of their state at regular positions. All replicas report a replica that differs from the
// majority, and that replica stops. Motive: no broadcast can detect an application that is not deterministic. Cost:
// each replica broadcasts at every comparison. If an application has no Hasher, its whole state is copied for each
// comparison, so you should compare less often.
//
// Replicas are also compared at the start of each view. With four nodes or more, each replica broadcasts a hash of
// its state in the order of the new view. It answers no commands before it has the hashes of all members, so all
// know the same hashes. The replicas choose the state that most of them have; on a tie, they choose the state of
// the replica with the lowest ID. A sponsor is the member that sends its state to a joining replica. A state that
// came from a sponsor, and was not compared since, counts only if no replica has a state that was compared. A
// replica with another state fetches the chosen state. Motive: one broken node can send different commands to
// different nodes, and no order detects that. Cost: two message delays and one hash for each view change. Without a
// Hasher, the cost is a snapshot.
package rsm
