// Package rsm replicates a deterministic state machine over an ordered broadcast.
//
// Problem: replicas of one service must stay the same and answer as one, although processes crash and clients
// retry.
//
// Model: that of the broadcast below, as in stack.New(timestamp, service). If it delivers one sequence, the
// replicas are the same at each position. Over FIFO or causal order they diverge as soon as concurrent
// commands do not commute, as with the lecture's bank account. Nothing is promised if clients use each other's
// numbers.
//
// Source: the lecture, the problem of replication: replica consistency and determinism, recovery and
// reintegration, redundancy; F. B. Schneider, Implementing fault-tolerant services using the state machine
// approach, 1990.
//
// Why it works: the state after k commands is a function of the first k commands, and these are the same
// everywhere. A client numbers its commands, and the state holds each client's last number and answer. A retry
// is therefore answered again and not applied again. At regular positions each replica broadcasts a hash of
// its state; a replica that differs from the majority is reported, and stops.
//
// A client must not send its next command before it has the answer to the last one: the order may put the
// later one first, and then the earlier one is never applied. A process that is its own client obeys this
// rule: one of its commands is in flight, and up to [Queue] commands wait, including that one. Each
// incarnation of a process is another client: its numbers start at 1 again, and it takes no answer of an
// earlier incarnation for its own.
//
// Reintegration: a process that restarts, or was excluded, takes over the state of a member, including the
// sessions. If it did not crash, it sends its unanswered command again with the same number, so that it is
// applied once. Over a durable group the state is durable too: a restarted process has the state of the last
// log replacement, and gets the later deliveries again.
//
// For many clients there are packs of commands (see [Commands]), with sessions that an ordered command opens.
// A client whose session was forgotten learns that, and none of its commands is applied again.
//
// # Decisions
//
// Replicas compare hashes of their state. One that differs from the majority is reported by all and stops.
// Motive: an application that is not deterministic is the fault that no broadcast can see. Cost: a broadcast
// of each replica at every comparison; an application without a Hasher is copied for each comparison, so it
// should be compared less often.
//
// Replicas are compared at the start of each view. With four nodes or more, each broadcasts a hash of its
// state in the order of the new view, and answers nothing before all members have: then all know the same
// hashes. The state that most replicas have is chosen; on a tie, the one of the lowest ID. A state that came
// from a single sponsor is chosen only if there is no other. A replica with another state fetches the chosen
// one. Motive: one broken node can send different commands to different nodes, and no order shows it. Cost:
// two message delays and one hash for each view change; without a Hasher, a snapshot.
package rsm
