// Package rsm replicates a deterministic state machine over an ordered
// broadcast.
//
// Problem: copies of one service at several processes are to stay the same and to
// answer as one, although processes crash and clients repeat what they have asked.
//
// Model: that of the broadcast beneath, as in stack.New(timestamp, service). If it
// delivers one sequence the copies are the same at each position; over FIFO or causal
// order they part as soon as concurrent commands do not commute, as with the
// lecture's bank account. Nothing is promised if clients use each other's numbers.
//
// Source: the lecture, the problem of replication: replica consistency and
// determinism, recovery and reintegration, redundancy; F. B. Schneider, Implementing
// fault-tolerant services using the state machine approach, 1990.
//
// Why it works: the state after k commands is a function of the first k commands,
// and these are the same everywhere. A client numbers its commands, and the state
// holds the last number of each client with the answer, so that one which is asked
// again is answered again and applied once. Every so often each copy broadcasts a
// hash of its state: who has another one than the majority is named, and stops.
//
// A client must not ask its next command before it has the answer to the last one:
// the order may put the later one first, and then the earlier one is never applied.
// A process as a client of its own keeps to that: one command of its is under way,
// and up to [Queue] wait for it. Each life of a process is another client: its numbers
// begin again at 1, and no answer is taken for one of an earlier life.
//
// Reintegration: a process that comes back, or was excluded, takes over the state of a
// member, the sessions too. What it had under way and saw no answer to, if it did not
// crash, it asks again with the same number: it is applied once. Over a durable group the
// state is durable, too: who comes back has it as of when it replaced the log beneath, and
// is delivered again what came since.
//
// For many clients there are packs of commands, see [Commands], with sessions that are
// opened in the order: who was forgotten is told so, and nothing of it is applied again.
//
// # Decisions
//
// Replicas compare hashes of their state. One that differs from the majority is named by all and stops.
// Motive: an application that is not deterministic is the fault that no broadcast can see. Cost: a
// broadcast of each copy every so many commands; a machine that keeps no hash of its state is copied for
// each comparison, so that it is compared less often.
//
// Replicas are compared where a view begins. With four nodes or more each tells a hash of its state in
// the order of the new view, and answers nothing before all members have: then all know the same hashes.
// The state that most have counts, and of several the one of the lowest id; one that came from a single
// sponsor counts only if there is no other. A replica with another state fetches that one. Motive: one
// broken node can tell others different commands, and no order shows it. Cost: two message delays and a
// hash a view change; of a machine that keeps no hash of its state, a snapshot.
package rsm
