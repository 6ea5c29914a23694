// Package rsm replicates a deterministic state machine over an ordered broadcast.
//
// Problem: a service consists of replicas, which are copies of one state machine. The replicas must stay equal and
// act as one service, even if processes crash and clients retry.
//
// Model: the model of the broadcast in the layer below. An example is stack.New(timestamp, service). If the broadcast
// delivers one sequence, the replicas are equal at each position. If the broadcast guarantees only FIFO or causal
// order, replicas diverge when the result of concurrent commands depends on their order. The bank account of package
// bank is an example. Nothing is promised if a client uses the client number of another client.
//
// Source: the lecture (docs/explanation/sources.md), the problem of replication: replica consistency and
// determinism, recovery and reintegration, redundancy. F. B. Schneider, Implementing fault-tolerant services using
// the state machine approach, 1990.
//
// Why it works: the first k commands determine the state after k commands, and the first k commands are the same at
// all replicas. A client numbers its commands. The state contains the number and the answer of each client's last
// command. So a retry gets the same answer again, but is not applied again.
//
// A client must not send its next command before it has the answer to the last one. Otherwise the broadcast may
// deliver the later command first, and then the earlier command is never applied. For commands of the process itself,
// this package obeys the rule: one command is in flight, and further commands wait in a queue. The queue holds at
// most [Queue] commands, including the command in flight. Each incarnation of a process counts as another client,
// whose numbers start at 1. So a process does not mistake an answer to an earlier incarnation for an answer to its
// own command.
//
// Reintegration: a process that has restarted, or that was excluded, takes over the state of a member, including the
// clients' numbers and answers. If it was excluded but did not crash, it sends its unanswered command again with the
// same number, so the command is applied once. If the group in the layer below is durable, the state is durable, too.
// Then a restarted process has the state of its last checkpoint, and receives the later deliveries again.
//
// Many clients can share a replica. A broadcast can contain a batch of commands (see [Commands]), and each client can
// open a session by a command. A session numbers the client's commands. Replicas keep a limited number of sessions.
// If they have dropped a session, they apply no more commands of this session, not even retries. The reply to such a
// command says that the session has expired.
//
// [NewOrdered] makes a replica above a Byzantine order, whose processes may lie. It applies packs of commands, with
// sessions. It keeps a log of its own, and takes over a state only if m+1 others report it.
//
// # Decisions
//
// Replicas compare hashes of their state at regular positions of the sequence. If the hash of one replica differs
// from the hash of the majority, all replicas report this, and that replica stops. Motive: no broadcast can detect an
// application that is not deterministic. Cost: each replica broadcasts at every comparison. If an application has no
// Hasher, each comparison copies the whole state, so you should compare less often.
//
// With four nodes or more, replicas also compare their states at the start of each view. Each replica broadcasts a
// hash of its state, and answers no commands before it has the hashes of all members. The replicas choose the state
// that most of them have. On a tie, they choose the state of the replica with the lowest ID. A replica with another
// state fetches the chosen state. A joining replica receives its state from one member, the sponsor. Such a state
// counts only if no replica has a state that was compared. Motive: one broken node can send different commands to
// different nodes, and no broadcast detects this. Cost: two message delays and one hash for each view change. Without
// a Hasher, the cost is a snapshot instead of the hash.
//
// A replica above a Byzantine order writes each delivery to its own log, although the order keeps it, too. Motive: a
// liar can fill the order with deliveries that are no commands, until the order forgets commands that are in no
// snapshot. If all processes then restarted at once, no process would have them. Also, a long state need not be written
// more often than the log reaches its length. Cost: each command is written twice, and an answer waits for one more
// sync of the disk.
package rsm
