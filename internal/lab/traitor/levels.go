package traitor

import (
	"maps"
	"slices"
)

// Level is a task for a traitor, with a claim that a test checks: it can be done, or it cannot.
type Level struct {
	ID       string            `json:"id"` // in links: the number that the page shows
	Title    string            `json:"title"`
	Task     string            `json:"task"`
	Flags    map[string]string `json:"flags"` // of the run, without what the traitor chooses
	Protocol string            `json:"protocol"`
	Seats    []string          `json:"seats"`    // the processes that the traitor plays, if it chooses messages
	Dials    []Dial            `json:"dials"`    // what it sets instead
	Property string            `json:"property"` // to break
	Can      bool              `json:"can"`      // it can be broken
	Proof    Proof             `json:"proof"`    // how that is known
	Wins     map[string]string `json:"wins"`     // flags that break it, if it can be broken
	Theorem  string            `json:"theorem"`
	// Split means that the search is split, see [Question].
	Split bool `json:"split,omitempty"`
	// Seeds is the number of runs, each with another seed, that do not break the property of a level that is Sampled.
	Seeds uint64 `json:"seeds,omitempty"`
	// Pairs are flags of a short search for runs that look the same to a process. It finds some beyond the bound.
	Pairs map[string]string `json:"pairs"`
}

// Dial is a part of a plan that a traitor sets: a flag with a place for the chosen value.
type Dial struct {
	Name    string `json:"name"`
	Asks    string `json:"asks"`
	Flag    string `json:"flag"`
	Form    string `json:"form"` // the value of the flag, with % for the choice
	Choices []Mark `json:"choices"`
}

// Mark is one choice of a dial.
type Mark struct {
	Value string `json:"value"` // for % in the form of the dial
	Says  string `json:"says"`
}

// Proof says how the claim of a level is known.
type Proof string

// The proofs: the engine tries everything that the seats can send; a run shows that the level can be won; or none of
// many runs with different seeds breaks the property, which proves nothing.
const (
	Searched Proof = "search"
	Shown    Proof = "run"
	Sampled  Proof = "seeds"
)

// Levels are the tasks, in order. Links name a level by its ID, so a new one stands at the end.
var Levels = []Level{
	{
		ID: "1", Title: "Make P3 disobey a loyal General", Protocol: "om", Property: "validity", Can: true, Proof: Searched,
		Task:  "You are the lieutenant P2. P1 orders attack, which is 1. Make P3 decide otherwise.",
		Flags: map[string]string{"n": "3", "m": "1", "beyond-bound": "true"}, Seats: []string{"P2"},
		Wins:    map[string]string{"faulty": "2=moves:1-3-0-1"},
		Theorem: "With oral messages three processes cannot tolerate one traitor: n > 3m is necessary.",
		Pairs:   map[string]string{"n": "3", "m": "1", "beyond-bound": "true"},
	},
	{
		ID: "2", Title: "Divide two lieutenants", Protocol: "om", Property: "agreement", Proof: Searched,
		Task:  "You are the General. Make P2 and P3 decide differently. Can you?",
		Flags: map[string]string{"n": "3", "m": "1", "beyond-bound": "true"}, Seats: []string{"P1"},
		Theorem: "Each of the two loyal lieutenants hears what the other one heard, and both use one default for a tie. " +
			"So they agree even with n = 3. Only validity breaks.",
		Pairs: map[string]string{"n": "3", "m": "1", "beyond-bound": "true"},
	},
	{
		ID: "3", Title: "One traitor among four", Protocol: "om", Property: "validity", Proof: Searched,
		Task:  "You are the lieutenant P2, and now there are four. Make a loyal lieutenant disobey.",
		Flags: map[string]string{"n": "4", "m": "1"}, Seats: []string{"P2"},
		Theorem: "n > 3m: 4 > 3. OM(1) outvotes one traitor, whatever it sends (Lamport, Shostak, Pease 1982).",
		Pairs:   map[string]string{"n": "4", "m": "1"},
	},
	{
		ID: "4", Title: "A General among four", Protocol: "om", Property: "agreement", Proof: Searched,
		Task:  "You are the General of three loyal lieutenants. Make two of them decide differently.",
		Flags: map[string]string{"n": "4", "m": "1"}, Seats: []string{"P1"},
		Theorem: "n > 3m: 4 > 3. The lieutenants compare what you sent them, and take the majority.",
		Pairs:   map[string]string{"n": "4", "m": "1"},
	},
	{
		ID: "5", Title: "Two traitors among six", Protocol: "eig", Property: "validity", Can: true, Proof: Shown,
		Task:  "You are the lieutenants P2 and P3. Make a loyal lieutenant disobey.",
		Flags: map[string]string{"n": "6", "m": "2", "beyond-bound": "true"}, Seats: []string{"P2", "P3"},
		Wins: map[string]string{
			"faulty": "2=moves:1-4-0-1.2-4-0-1.2-4-1-1.2-4-2-1.2-4-3-1,3=moves:1-4-0-1.2-4-0-1.2-4-1-1.2-4-2-1.2-4-3-1",
		},
		Theorem: "n > 3m is necessary: 6 > 6 is false. Two traitors who deny every order tie the vote. " +
			"The argument with three processes stands for it: each of them plays two.",
		Pairs: map[string]string{"n": "3", "m": "1", "beyond-bound": "true"},
	},
	{
		ID: "6", Title: "One round fewer", Protocol: "eig", Property: "agreement", Can: true, Proof: Searched,
		Task:  "You are the General of three loyal lieutenants. They stop after m rounds. Make two decide differently.",
		Flags: map[string]string{"n": "4", "m": "1", "rounds": "1", "beyond-bound": "true"}, Seats: []string{"P1"},
		Wins:    map[string]string{"faulty": "1=moves:0-2-0-1"},
		Theorem: "m+1 rounds are necessary (Fischer, Lynch 1982): in one round nobody can compare.",
		Pairs:   map[string]string{"n": "4", "m": "1", "rounds": "1", "beyond-bound": "true"},
	},
	{
		ID: "7", Title: "A General who signs two orders", Protocol: "sm", Property: "agreement", Proof: Searched,
		Task:  "You are the General and the lieutenant P2. You sign both orders. Make P3 and P4 decide differently.",
		Flags: map[string]string{"n": "4", "m": "2"}, Seats: []string{"P1", "P2"},
		Theorem: "With signatures n = m+2 processes tolerate m traitors: a process that sees two orders passes both on.",
		Pairs:   map[string]string{"n": "4", "m": "2"},
	},
	{
		ID: "8", Title: "Block a commit with one crash", Protocol: "twophase", Property: "non-blocking", Can: true,
		Proof: Shown,
		Task:  "All vote yes. Crash one process at one time so that the others can neither commit nor abort.",
		Flags: map[string]string{"n": "4", "delay": "400", "values": "yes"},
		Dials: []Dial{{
			Name: "crash", Asks: "Which process crashes, and when?", Flag: "crashes", Form: "[{process: %}]",
			Choices: []Mark{
				{"1, when: 200", "P1, the coordinator, at 200: its questions are on their way"},
				{"1, when: 790", "P1, the coordinator, at 790: the votes are on their way to it"},
				{"1, when: 900", "P1, the coordinator, at 900: it has decided"},
				{"2, when: 200", "P2 at 200: the question is on its way to it"},
				{"2, when: 790", "P2 at 790: it has voted"},
				{"3, when: 790", "P3 at 790: it has voted"},
			},
		}},
		Wins:    map[string]string{"crashes": "[{process: 1, when: 790}]"},
		Theorem: "Two-phase commit blocks if the coordinator crashes between the votes and its decision.",
	},
	{
		ID: "9", Title: "Cut the network in three-phase commit", Protocol: "threephase", Property: "atomicity", Can: true,
		Proof: Shown, Task: "All vote yes. Cut the network at one time so that one side commits and the other aborts.",
		Flags: map[string]string{"n": "4", "delay": "400", "values": "yes"},
		Dials: []Dial{{
			Name: "cut", Asks: "Which processes are cut off from which, and from when on?", Flag: "partitions",
			Form: "[{groups: %}]",
			Choices: []Mark{
				{"[[1, 2], [3, 4]], since: 400", "P1 and P2 from P3 and P4, from 400 on"},
				{"[[1, 2], [3, 4]], since: 800", "P1 and P2 from P3 and P4, from 800 on"},
				{"[[1, 2], [3, 4]], since: 1300", "P1 and P2 from P3 and P4, from 1,300 on"},
				{"[[1], [2, 3, 4]], since: 800", "P1, the coordinator, from all others, from 800 on"},
				{"[[1, 2, 3], [4]], since: 1300", "P4 from all others, from 1,300 on"},
			},
		}},
		Wins:    map[string]string{"partitions": "[{groups: [[1, 2], [3, 4]], since: 800}]"},
		Theorem: "Three-phase commit does not block after crashes, and it does not tolerate partitions.",
	},
	{
		ID: "10", Title: "Two traitors among seven", Protocol: "om", Property: "validity", Proof: Searched, Split: true,
		Task: "In level 5, two traitors won among six. You are the lieutenants P2 and P3 of seven. Make a loyal " +
			"lieutenant disobey.",
		Flags: map[string]string{"n": "7", "m": "2"}, Seats: []string{"P2", "P3"},
		Theorem: "n > 3m: 7 > 6. In each vote of OM(2) the loyal lieutenants outnumber you, whatever you send. To try " +
			"everything, the engine tries the lies of the last round separately for each receiver, because nobody acts " +
			"on them afterward. It leaves out silence, because a missing value counts as 0.",
		Pairs: map[string]string{"n": "4", "m": "1"},
	},
	{
		ID: "11", Title: "Drive two clocks apart", Protocol: "convergence", Property: "clock bound", Can: true, Proof: Shown,
		Task: "P1 has a slow clock and P2 has a fast one. Each reads all clocks again and again, and adjusts its own. " +
			"You are P3. Choose which times you show, so that the clocks of P1 and P2 drift apart.",
		Flags: with(clocks, "n", "3", "beyond-bound", "true"),
		Dials: []Dial{{Name: "show", Asks: "Which times does P3 show?", Flag: "faulty", Form: "3=%", Choices: times}},
		Wins:  map[string]string{"faulty": "3=flip"},
		Theorem: "n > 3m is necessary: 3 > 3 is false. You show each process a time that is just near enough to count. " +
			"So each mean keeps its distance, and the drift adds up.",
	},
	{
		ID: "12", Title: "Four clocks", Protocol: "convergence", Property: "clock bound", Proof: Sampled, Seeds: 10_000,
		Task:  "Now there are four clocks, and you are P4. Drive the clocks of correct processes apart.",
		Flags: with(clocks, "n", "4"),
		Dials: []Dial{{Name: "show", Asks: "Which times does P4 show?", Flag: "faulty", Form: "4=%", Choices: times}},
		Theorem: "n > 3m: 4 > 3. Each process averages all clocks, and your lies move two averages apart by less than " +
			"averaging brings them together (Lamport, Melliar-Smith 1985). The theorem says so; runs alone do not show it.",
	},
	{
		ID: "13", Title: "Two balances", Protocol: "bank-causal", Property: "replica consistency", Can: true, Proof: Shown,
		Task: "P1 and P2 hold a copy of an account of $1000. P1 deposits $150, and P2 pays 8 percent interest. Causal " +
			"broadcast delivers both commands. Make the balances differ.",
		Flags: map[string]string{"n": "2"}, Dials: orders,
		Wins: map[string]string{
			"requests": "[{at: 1, when: 100, broadcast: deposit 150}, {at: 2, when: 5000, broadcast: interest 8}]",
			"links":    "[{from: 1, to: 2, delay: 9000}]",
		},
		Theorem: "Causal order does not order commands that do not depend on each other. If neither process has " +
			"delivered the other's command, each delivers its own command first.",
	},
	{
		ID: "14", Title: "One balance", Protocol: "bank", Property: "replica consistency", Proof: Sampled, Seeds: 10_000,
		Task:  "The commands are the same, but now the broadcast has total order. Make the balances differ.",
		Flags: map[string]string{"n": "2"}, Dials: orders,
		Theorem: "Atomic broadcast delivers all messages in the same order everywhere. So two replicas that apply the same " +
			"commands in that order have the same balance. The theorem says so; runs alone do not show it.",
	},
}

// clocks are the flags of the levels about clocks.
var clocks = map[string]string{
	"m": "1", "resyncs": "12", "clocks": "[{process: 1, drift: -100}, {process: 2, drift: 100}]",
}

// times are what a process can show instead of its clock.
var times = []Mark{
	{"flip", "to a slow clock an earlier time, and to a fast one a later time"},
	{"twofaced", "the right time to the lower half of the processes, and a wrong one to the others"},
	{"twin", "two clocks, one to each half of the processes"},
	{"random", "any time"},
	{"silent", "no time"},
}

// with returns flags and more of them.
func with(flags map[string]string, more ...string) map[string]string {
	out := maps.Clone(flags)
	for pair := range slices.Chunk(more, 2) {
		out[pair[0]] = pair[1]
	}
	return out
}

// orders are the dials of the levels about balances.
var orders = []Dial{
	{
		Name: "when", Asks: "When does P2 pay the interest? P1 deposits at 100.", Flag: "requests",
		Form: "[{at: 1, when: 100, broadcast: deposit 150}, {at: 2, when: %, broadcast: interest 8}]",
		Choices: []Mark{
			{"100", "at 100"}, {"1500", "at 1,500: a message takes up to 900"}, {"5000", "at 5,000"},
		},
	},
	{
		Name: "slow", Asks: "Which link is slow?", Flag: "links", Form: "[{%}]",
		Choices: []Mark{
			{"from: 1, to: 2, delay: 9000", "the link from P1 to P2: 9,000"},
			{"from: 2, to: 1, delay: 9000", "the link from P2 to P1: 9,000"},
			{"from: 2, to: 1, delay: 1", "none: the link from P2 to P1 is fast"},
		},
	},
}
