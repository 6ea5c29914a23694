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
	{"eig", "loss", agree.Agreement, "a link that loses makes its ends as good as faulty"},
	{"eig", "drift>", agree.Agreement, "rounds need clocks that run alike"},
	{"om", "lie>m", agree.Agreement, "n > 3m is necessary"},
	{"om", "lie>m", agree.Validity, "n > 3m is necessary"},
	{"om", "cut", agree.Agreement, "a missing value is the default, on one side alone"},
	{"om", "reorder", agree.Agreement, "what comes after its round is the default"},
	{"sm", "lie>m", agree.Agreement, "the second liar signs in the last round what the first kept back"},
	{"sm", "reorder", agree.Agreement, "what comes after its round counts no more"},
	{"sm-two", "reorder", agree.Agreement, "what comes after its round counts no more"},
	{"phaseking", "lie>m", agree.Agreement, "n > 3m is necessary"},
	{"phaseking", "lie>m", agree.Validity, "n > 3m is necessary"},
	{"phaseking-four", "lie>m", agree.Agreement, "n > 3m is necessary"},
	{"phaseking", "loss", agree.Agreement, "no phase has a king whom all hear"},
	{"interactive", "lie>m", agree.Agreement, "n > 3m is necessary"},
	{"interactive", "lie>m", agree.Validity, "n > 3m is necessary"},
	{"interactive", "slow", agree.Agreement, "what comes after its round is the default"},
	{"interactive", "one-way", agree.Agreement, "a missing value is the default"},
	{"consensus", "lie>m", agree.Agreement, "n > 3m is necessary"},
	{"consensus", "lie>m", agree.Validity, "faulty initial values outvote correct ones"},
	{"consensus", "cut", agree.Agreement, "a missing value is the default, on one side alone"},
	{"ballot", "crash>m", agree.Termination, "a majority must be up"},
	{"ballot", "disk+cut", ballot.UniformAgreement,
		"a process that forgets what it accepted may accept something else"},
	{"ballot-rivals", "crash>m", agree.Termination, "a majority must be up"},
	{"ballot-rivals", "lie>m", ballot.UniformAgreement, "majorities share a process, which may be the liar"},
	{"ballot", "lie", ballot.UniformAgreement, "majorities share a process, which may be the liar"},

	{"diffusion", "loss", problem.Agreement, "each message is sent once on each link"},
	{"diffusion", "cut", problem.Validity, "no process repeats what others missed"},
	{"diffusion", "omit", problem.UniformAgreement, "a process that omits to send delivers what no other has"},
	{"diffusion", "lie>m", problem.Agreement, "relayed messages are believed"},
	{"uniform", "crash>m", problem.Validity, "a majority must be up"},
	{"uniform", "loss", problem.Validity, "a majority must be heard of"},
	{"uniform", "no link", problem.Validity, "no process relays which processes hold a message"},
	{"bracha", "no link", problem.Validity, "no process relays echoes"},
	{"eig", "no link", agree.Agreement, "a link that is not there makes its ends as good as faulty"},
	{"twophase", "no link", commit.NonTriviality, "a vote that does not come is a no"},
	{"forwarding", "loss", problem.Agreement, "there is one way to each process, and nothing is sent again"},
	{"forwarding", "one-way", problem.Validity, "no process repeats what was missed"},
	{"forwarding", "lie>m", problem.Agreement, "forwarded messages are believed"},
	{"fifo", "loss", problem.Agreement, "the broadcast below sends each message once"},
	{"fifo", "lost disk", problem.FIFOOrder, "a process that forgets its incarnation begins with number 1 again"},
	{"piggyback", "loss", problem.Agreement, "the broadcast below sends each message once"},
	{"piggyback", "lost disk", problem.CausalOrder, "numbers of an old life are taken for those of the new one"},
	{"piggyback", "lie>m", problem.CausalOrder, "what a message says that it follows is believed"},
	{"vector", "loss", problem.Agreement, "the broadcast below sends each message once"},
	{"vector", "lost disk", problem.CausalOrder, "numbers of an old life are taken for those of the new one"},
	{"vector", "lie>m", problem.CausalOrder, "a vector is believed"},
	{"guarded", "slow", problem.Validity, "without a bound on time a slow process is taken for one that omits"},
	{"guarded", "restart", guard.NoContamination, "a process that restarts counts from the beginning again"},
	{"unguarded", "omit", guard.NoContamination, "no process checks what a sender has delivered"},
	{"unguarded", "cut", guard.NoContamination, "no process checks what a sender has delivered"},
	{"bracha", "lie>m", bracha.Consistency, "n > 3m is necessary"},
	{"bracha", "lie>m", bracha.Totality, "n > 3m is necessary"},
	{"bracha", "crash>m", problem.Validity, "more than (n+m)/2 must echo"},
	{"bracha", "loss", bracha.Totality, "nothing is sent again"},

	{"atomic", "suspect", problem.TotalOrder, "a process that takes over may choose another final priority"},
	{"atomic", "suspect", problem.Agreement, "a receiver that is suspected is left out"},
	{"atomic", "slow", problem.TotalOrder, "a slow process is suspected"},
	{"atomic", "omit", problem.UniformTotalOrder, "the one to know the final priority keeps it to itself"},
	{"atomic", "restart", problem.Validity, "a process that restarts takes no further part"},
	{"byzantine", "lie>m", problem.Agreement, "n > 3m is necessary"},
	{"byzantine", "slow", problem.Agreement, "what comes after its round is the default"},
	{"byzantine", "restart", problem.Validity, "a process that restarts delivers nothing of what it missed"},
	{"vector-causal", "crash>m", problem.Agreement, "a majority of all processes must be up"},
	{"vector-causal", "lie", problem.CausalOrder, "a vector is believed"},
	{"vector-durable", "lost disk", problem.FIFOOrder, "a process that lost its disk begins at its sponsor's position"},
	{"vector-uniform", "cut", problem.UniformAgreement, "an excluded process receives nothing more"},
	{"vector-uniform", "lie", group.ViewAgreement, "majorities share a process, which may be the liar"},
	{"atomic-views", "crash>m", problem.Validity, "a majority of all processes must be up"},
	{"atomic-views", "cut", problem.UniformAgreement, "an excluded process receives nothing more"},
	{"atomic-views", "restart", problem.UniformPrefix, "a process that joins begins at its sponsor's position"},
	{"atomic-views", "lie", group.ViewAgreement, "majorities share a process, which may be the liar"},
	{"timestamp", "crash>m", problem.Validity, "a majority of all processes must be up"},
	{"timestamp", "cut", problem.UniformAgreement, "an excluded process receives nothing more"},
	{"timestamp", "lie", timestamp.OneSequence, "acknowledgements are believed"},
	{"timestamp-durable", "lost disk", problem.UniformAgreement,
		"a process that lost its disk does not get its earlier deliveries"},
	{"timestamp-durable", "lost disk", problem.FIFOOrder,
		"a process that lost its disk begins at its sponsor's position"},
	{"timestamp-durable", "crash>m", problem.Validity, "a majority of all processes must be up"},
	{"timestamp-return", "restart", problem.FIFOOrder, "a process that joins begins at its sponsor's position"},
	{"timestamp-return", "slow", problem.Validity, "a process that rejoins does not get what it missed"},
	{"atomic-durable", "lost disk", problem.UniformPrefix,
		"a process that lost its disk begins at its sponsor's position"},
	{"atomic-durable", "slow", problem.Validity, "an excluded process receives nothing more"},
	{"atomic-return", "restart", problem.UniformPrefix, "a process that joins begins at its sponsor's position"},
	{"group", "lie", group.ViewAgreement, "majorities share a process, which may be the liar"},
	{"bank", "crash>m", rsm.Completion, "a majority of all processes must be up"},
	{"bank", "restart", rsm.Completion, "a process that crashes forgets its requests"},
	{"bank", "lie", rsm.Consistency, "the order beneath believes acknowledgements"},
	{"bank-causal", "slow", rsm.Consistency, "commands that do not depend on each other are in any order"},
	{"bank-causal", "slow", rsm.OneMachine, "commands that do not depend on each other are in any order"},
	{"bank-causal", "reorder", rsm.Consistency, "commands that do not depend on each other are in any order"},

	{"detector", "loss", detector.Accuracy, "heartbeats in a row are lost"},
	{"detector", "slow", detector.Accuracy, "silence is a guess where delays have no bound"},
	{"detector", "pause", detector.Accuracy, "a paused process is silent"},
	{"convergence", "drift>", convergence.ClockBound, "no adjustment makes up for such clocks"},
	{"convergence", "drift>", convergence.ClockRate, "a logical clock runs as its hardware does"},
	{"convergence", "lie>m", convergence.ClockBound, "n > 3m is necessary"},
	{"convergence", "crash>m", convergence.NoAlarm, "a process that sees too few clocks near its own says so"},
	{"dated", "drift>", convergence.ClockBound, "no adjustment makes up for such clocks"},
	{"dated", "lie>m", convergence.ClockBound, "n > 3m is necessary"},
	{"cold-start", "drift>", convergence.ClockBound, "no adjustment makes up for such clocks"},
	{"cold-start", "lie>m", convergence.ClockBound, "n > 3m is necessary"},
	{"cold-start", "crash>m", convergence.NoAlarm, "a process that sees too few clocks near its own says so"},
	{"twophase", "crash", commit.Termination, "the coordinator is gone, and all others are uncertain"},
	{"twophase", "crash", commit.NonBlocking, "the coordinator is gone, and all others are uncertain"},
	{"twophase", "cut", commit.NonBlocking, "a participant that is cut off after its yes can ask no other"},
	{"twophase", "lost disk", commit.Atomicity, "an empty log is taken for an abort"},
	{"threephase", "cut", commit.Atomicity, "each side takes the other for crashed"},
	{"threephase", "slow", commit.Atomicity, "a process that does not answer in time is suspected"},
	{"threephase", "lost disk", commit.Atomicity, "an empty log is taken for an abort"},
	{"quorum", "crash>m", commit.Termination, "a majority must be up"},
	{"quorum", "cut", commit.NonBlocking, "the side without a majority waits"},
	{"quorum", "slow", commit.NonTriviality, "a vote that is late counts as none"},
	{"transactions", "crash", commit.Termination, "the coordinator is gone, and all others are uncertain"},
	{"transactions", "lie", commit.Atomicity, "reports of an outcome are believed"},
	{"transactions", "lie", transactions.Names, "a liar begins what it likes under a name"},
	{"transactions", "slow", commit.NonTriviality, "a vote that is late counts as a no"},
	{"transactions-majority", "cut", commit.NonBlocking, "the side without a majority waits"},
	{"transactions-majority", "lost disk", commit.Termination,
		"a process that lost its log reports nothing of the past"},
	{"ordered", "lie>m", commit.Termination, "n > 3m is necessary"},
	{"ordered", "lost disk", commit.Termination, "a process that forgot its yes does not ask for the outcome"},
	{"stream", "lie>m", agree.Agreement, "n > 3m is necessary"},
	{"stream", "loss", agree.Termination, "a link that loses makes its ends as good as faulty"},
	{"expel", "lie>m", expel.Accuracy, "m+1 liars are enough votes"},
	{"expel", "no link", expel.Completeness, "no process relays requests"},
	{"agreed", "lie>m", commit.Atomicity, "n > 3m is necessary"},
	{"agreed", "loss", commit.Atomicity, "a link that loses makes its ends as good as faulty"},
	{"agreed", "slow", commit.NonTriviality, "a vote that is late is a no"},
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
