package main

import (
	"parley/agreement/ballot"
	agree "parley/agreement/problem"
	"parley/broadcast/bracha"
	"parley/broadcast/guard"
	"parley/broadcast/problem"
	"parley/broadcast/timestamp"
	"parley/clock/convergence"
	commit "parley/commit/problem"
	transactions "parley/commit/service"
	"parley/membership/detector"
	"parley/membership/expel"
	"parley/membership/group"
	"parley/replica/rsm"
)

// demand is a property that must be broken in some run of a cell in which it is not promised, with the reason from
// theory.
type demand struct{ row, column, property, because string }

// demands are all demands. If nothing breaks beyond the bound of a model, the model is not understood, or its faults
// do not occur.
var demands = []demand{
	{"eig", "lie>m", agree.Agreement, "n > 3m is necessary"},
	{"eig", "lie>m", agree.Validity, "n > 3m is necessary"},
	{"eig", "loss", agree.Agreement, "a link that loses messages makes the processes at its ends count as faulty"},
	{"eig", "drift>", agree.Agreement, "rounds need clocks with almost the same rate"},
	{"om", "lie>m", agree.Agreement, "n > 3m is necessary"},
	{"om", "lie>m", agree.Validity, "n > 3m is necessary"},
	{"om", "cut", agree.Agreement, "on one side of the cut, the default replaces the missing value"},
	{"om", "reorder", agree.Agreement, "the default replaces a value that arrives after its round"},
	{"sm", "lie>m", agree.Agreement,
		"in the last round, the second liar signs the value that the first liar withheld"},
	{"sm", "reorder", agree.Agreement, "a message that arrives after its round does not count"},
	{"sm-two", "reorder", agree.Agreement, "a message that arrives after its round does not count"},
	{"phaseking", "lie>m", agree.Agreement, "n > 3m is necessary"},
	{"phaseking", "lie>m", agree.Validity, "n > 3m is necessary"},
	{"phaseking-four", "lie>m", agree.Agreement, "n > 3m is necessary"},
	{"phaseking", "loss", agree.Agreement, "in each phase, some process does not receive the king's message"},
	{"interactive", "lie>m", agree.Agreement, "n > 3m is necessary"},
	{"interactive", "lie>m", agree.Validity, "n > 3m is necessary"},
	{"interactive", "slow", agree.Agreement, "the default replaces a value that arrives after its round"},
	{"interactive", "one-way", agree.Agreement, "the default replaces a missing value"},
	{"consensus", "lie>m", agree.Agreement, "n > 3m is necessary"},
	{"consensus", "lie>m", agree.Validity,
		"the initial values of faulty processes outvote the values of correct processes"},
	{"consensus", "cut", agree.Agreement, "on one side of the cut, the default replaces the missing value"},
	{"tetra", "lie>m", agree.Agreement, "n > 3m is necessary"},
	{"tetra", "crash>m", agree.Termination, "a quorum must be up"},
	{"ballot", "crash>m", agree.Termination, "a majority must be up"},
	{"ballot", "disk+cut", ballot.UniformAgreement,
		"a process that forgot the value that it accepted may accept another value"},
	{"ballot-rivals", "crash>m", agree.Termination, "a majority must be up"},
	{"ballot-rivals", "lie>m", ballot.UniformAgreement, "two majorities may have only the liar in common"},
	{"ballot", "lie", ballot.UniformAgreement, "two majorities may have only the liar in common"},

	{"diffusion", "loss", problem.Agreement, "a process sends each message only once on each link"},
	{"diffusion", "cut", problem.Validity, "no process sends a missed message again"},
	{"diffusion", "omit", problem.UniformAgreement,
		"a process that omits to send delivers a message that no other process has"},
	{"diffusion", "lie>m", problem.Agreement, "processes trust relayed messages"},
	{"uniform", "crash>m", problem.Validity, "a majority must be up"},
	{"uniform", "loss", problem.Validity,
		"a process delivers only after it has learned that a majority has the message"},
	{"uniform", "no link", problem.Validity, "no process relays the reports of which processes have a message"},
	{"bracha", "no link", problem.Validity, "no process relays echoes"},
	{"eig", "no link", agree.Agreement, "a missing link makes the processes at its ends count as faulty"},
	{"twophase", "no link", commit.NonTriviality, "a missing vote counts as a no"},
	{"forwarding", "loss", problem.Agreement, "only one path leads to each process, and no message is sent again"},
	{"forwarding", "one-way", problem.Validity, "no process sends a missed message again"},
	{"forwarding", "lie>m", problem.Agreement, "processes trust forwarded messages"},
	{"fifo", "loss", problem.Agreement, "the broadcast layer below sends each message only once"},
	{"fifo", "lost disk", problem.FIFOOrder, "a process that forgets its incarnation begins with number 1 again"},
	{"piggyback", "loss", problem.Agreement, "the broadcast layer below sends each message only once"},
	{"piggyback", "lost disk", problem.CausalOrder,
		"numbers of an earlier incarnation count as numbers of the new incarnation"},
	{"piggyback", "lie>m", problem.CausalOrder, "processes trust the earlier messages that a message carries"},
	{"vector", "loss", problem.Agreement, "the broadcast layer below sends each message only once"},
	{"vector", "lost disk", problem.CausalOrder,
		"numbers of an earlier incarnation count as numbers of the new incarnation"},
	{"vector", "lie>m", problem.CausalOrder, "processes trust the vector of a message"},
	{"guarded", "slow", problem.Validity,
		"without a maximum delay, a slow process looks like a process that omits messages"},
	{"guarded", "restart", guard.NoContamination, "a restarted process counts from the beginning again"},
	{"unguarded", "omit", guard.NoContamination, "no process checks what a sender has delivered"},
	{"unguarded", "cut", guard.NoContamination, "no process checks what a sender has delivered"},
	{"bracha", "lie>m", bracha.Consistency, "n > 3m is necessary"},
	{"bracha", "lie>m", bracha.Totality, "n > 3m is necessary"},
	{"bracha", "crash>m", problem.Validity, "more than (n+m)/2 processes must echo a message"},
	{"bracha", "loss", bracha.Totality, "no message is sent again"},

	{"atomic", "suspect", problem.TotalOrder, "a process that takes over may choose another final priority"},
	{"atomic", "suspect", problem.Agreement, "processes leave out a receiver that they suspect"},
	{"atomic", "slow", problem.TotalOrder, "a slow process is suspected"},
	{"atomic", "omit", problem.UniformTotalOrder,
		"the only process that knows the final priority does not send it"},
	{"atomic", "restart", problem.Validity, "a restarted process takes no part in the protocol any more"},
	{"byzantine", "crash>m", problem.Validity, "2m+1 processes must decide a cut"},
	{"byzantine", "restart", problem.Validity, "a process that restarts without its state has forgotten its requests"},
	{"byzantine", "lie>m", problem.Validity, "n > 3m is necessary"},
	{"byzantine-durable", "lost disk", problem.Validity, "a process that lost its disk has forgotten its requests"},
	{"vector-causal", "crash>m", problem.Agreement, "a majority of all processes must be up"},
	{"vector-causal", "lie", problem.CausalOrder, "processes trust the vector of a message"},
	{"vector-durable", "lost disk", problem.FIFOOrder,
		"a process that lost its disk begins at its sponsor's position"},
	{"vector-uniform", "cut", problem.UniformAgreement, "an excluded process receives nothing more"},
	{"vector-uniform", "lie", group.ViewAgreement, "two majorities may have only the liar in common"},
	{"atomic-views", "crash>m", problem.Validity, "a majority of all processes must be up"},
	{"atomic-views", "cut", problem.UniformAgreement, "an excluded process receives nothing more"},
	{"atomic-views", "restart", problem.UniformPrefix, "a process that joins begins at its sponsor's position"},
	{"atomic-views", "lie", group.ViewAgreement, "two majorities may have only the liar in common"},
	{"timestamp", "crash>m", problem.Validity, "a majority of all processes must be up"},
	{"timestamp", "cut", problem.UniformAgreement, "an excluded process receives nothing more"},
	{"timestamp", "lie", timestamp.OneSequence, "processes trust acknowledgements"},
	{"timestamp-durable", "lost disk", problem.UniformAgreement,
		"a process that lost its disk does not get its earlier deliveries"},
	{"timestamp-durable", "lost disk", problem.FIFOOrder,
		"a process that lost its disk begins at its sponsor's position"},
	{"timestamp-durable", "crash>m", problem.Validity, "a majority of all processes must be up"},
	{"timestamp-return", "restart", problem.FIFOOrder, "a process that joins begins at its sponsor's position"},
	{"timestamp-return", "slow", problem.Validity,
		"a process that rejoins does not get the messages that it missed"},
	{"atomic-durable", "lost disk", problem.UniformPrefix,
		"a process that lost its disk begins at its sponsor's position"},
	{"atomic-durable", "slow", problem.Validity, "an excluded process receives nothing more"},
	{"atomic-return", "restart", problem.UniformPrefix, "a process that joins begins at its sponsor's position"},
	{"group", "lie", group.ViewAgreement, "two majorities may have only the liar in common"},
	{"bank", "crash>m", rsm.Completion, "a majority of all processes must be up"},
	{"bank", "restart", rsm.Completion, "a process that crashes forgets its requests"},
	{"bank", "lie", rsm.Consistency, "the broadcast layer below trusts acknowledgements"},
	{"bank-causal", "slow", rsm.Consistency, "replicas may apply independent commands in different orders"},
	{"bank-causal", "slow", rsm.OneMachine, "replicas may apply independent commands in different orders"},
	{"bank-causal", "reorder", rsm.Consistency, "replicas may apply independent commands in different orders"},

	{"detector", "loss", detector.Accuracy, "a process is suspected if several of its heartbeats in a row are lost"},
	{"detector", "slow", detector.Accuracy, "without a maximum delay, silence does not prove a crash"},
	{"detector", "pause", detector.Accuracy, "a paused process is as silent as a crashed process"},
	{"convergence", "drift>", convergence.ClockBound, "adjustments cannot correct clocks that drift so much"},
	{"convergence", "drift>", convergence.ClockRate, "a logical clock runs at the rate of its hardware clock"},
	{"convergence", "lie>m", convergence.ClockBound, "n > 3m is necessary"},
	{"convergence", "crash>m", convergence.NoAlarm, "a process raises an alarm if too few clocks are near its own"},
	{"dated", "drift>", convergence.ClockBound, "adjustments cannot correct clocks that drift so much"},
	{"dated", "lie>m", convergence.ClockBound, "n > 3m is necessary"},
	{"cold-start", "drift>", convergence.ClockBound, "adjustments cannot correct clocks that drift so much"},
	{"cold-start", "lie>m", convergence.ClockBound, "n > 3m is necessary"},
	{"cold-start", "crash>m", convergence.NoAlarm, "a process raises an alarm if too few clocks are near its own"},
	{"twophase", "crash", commit.Termination, "the coordinator has crashed, and all other processes are in doubt"},
	{"twophase", "crash", commit.NonBlocking, "the coordinator has crashed, and all other processes are in doubt"},
	{"twophase", "cut", commit.NonBlocking,
		"a participant that is cut off after it voted yes cannot ask the others"},
	{"twophase", "lost disk", commit.Atomicity, "a process with an empty log assumes an abort"},
	{"threephase", "cut", commit.Atomicity, "each side assumes that the other side has crashed"},
	{"threephase", "slow", commit.Atomicity, "a process that does not answer in time is suspected"},
	{"threephase", "lost disk", commit.Atomicity, "a process with an empty log assumes an abort"},
	{"quorum", "crash>m", commit.Termination, "a majority must be up"},
	{"quorum", "cut", commit.NonBlocking, "the side without a majority waits"},
	{"quorum", "slow", commit.NonTriviality, "a late vote does not count"},
	{"transactions", "crash", commit.Termination,
		"the coordinator has crashed, and all other processes are in doubt"},
	{"transactions", "lie", commit.Atomicity, "processes trust reports of an outcome"},
	{"transactions", "lie", transactions.Names, "a liar may begin any transaction under a name"},
	{"transactions", "slow", commit.NonTriviality, "a late vote counts as a no"},
	{"transactions-majority", "cut", commit.NonBlocking, "the side without a majority waits"},
	{"transactions-majority", "lost disk", commit.Termination,
		"a process that lost its log cannot report earlier transactions"},
	{"ordered", "lie>m", commit.Termination, "n > 3m is necessary"},
	{"ordered", "lost disk", commit.Termination, "a process that forgot its yes vote does not ask for the outcome"},
	{"stream", "lie>m", agree.Agreement, "n > 3m is necessary"},
	{"stream", "loss", agree.Termination,
		"a link that loses messages makes the processes at its ends count as faulty"},
	{"expel", "lie>m", expel.Accuracy, "m+1 votes are enough to expel a process, and m+1 processes lie"},
	{"expel", "no link", expel.Completeness, "no process relays requests"},
	{"agreed", "lie>m", commit.Atomicity, "n > 3m is necessary"},
	{"agreed", "loss", commit.Atomicity,
		"a link that loses messages makes the processes at its ends count as faulty"},
	{"agreed", "slow", commit.NonTriviality, "a late vote counts as a no"},
}

// demanded returns the properties that must be broken in a cell.
func demanded(row, column string) (out []demand) {
	for _, d := range demands {
		if d.row == row && d.column == column {
			out = append(out, d)
		}
	}
	return out
}
