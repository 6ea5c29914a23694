package conform

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/commit/problem"
	"parley/commit/threephase"
	"parley/commit/twophase"
	"parley/internal/conform/form"
)

// commitment is a protocol with the messages of its coordinator, process 0.
type commitment struct {
	of                          func(n int) parley.Protocol // n includes the coordinator
	ask, prepare, commit, abort parley.Msg                  // prepare: none in two phases
}

var commitments = map[string]commitment{
	"2pc": {
		of:     func(n int) parley.Protocol { return twophase.New(twophase.Config{N: n}) },
		ask:    parley.Msg{Kind: twophase.VoteRequest},
		commit: parley.Msg{Kind: twophase.Decision, Value: 1}, abort: parley.Msg{Kind: twophase.Decision},
	},
	"3pc": {
		of:  func(n int) parley.Protocol { return threephase.New(threephase.Config{N: n}) },
		ask: parley.Msg{Kind: threephase.VoteRequest}, prepare: parley.Msg{Kind: threephase.Precommit},
		commit: parley.Msg{Kind: threephase.Decision, Value: 1}, abort: parley.Msg{Kind: threephase.Decision},
	},
}

const coordinator parley.ID = 0

// vote returns the request to vote.
func vote(text string) parley.Msg { return parley.Msg{Kind: parley.Propose, Body: []byte(text)} }

// voteCase has the votes of the participants in two-phase commit. The coordinator wants to commit.
type voteCase struct {
	kinded
	Votes map[string]string `json:"votes"`
}

type voteExpect struct {
	Decision string `json:"decision"`
}

func votes(c voteCase, want voteExpect, report reporter) {
	checkOutcome("decision", want.Decision)
	names := form.Keys(c.Votes)
	checkParticipants("", len(names))
	t := newHost(commitments["2pc"].of(len(names) + 1))
	for i, name := range names {
		switch v := c.Votes[name]; v {
		case "yes", "no":
			t.run(parley.ID(i+1), request(vote(v)))
		case "none":
		default:
			fail("votes: %s: %q: allowed are yes, no and none", name, v)
		}
	}
	t.run(coordinator, request(vote("yes")))
	report("decision", want.Decision, t.outcome(parley.Everyone(len(names)+1)))
}

// checkParticipants checks the number of participants without the coordinator.
func checkParticipants(what string, n int) {
	if n < 1 || n >= parley.MaxProcesses {
		check(what, fmt.Errorf("%d participants: allowed are 1 to %d", n, parley.MaxProcesses-1))
	}
}

// checkOutcome demands that the expected text is an outcome.
func checkOutcome(key, text string) {
	if text != "commit" && text != "abort" && text != "blocked" {
		fail("expect: %s: %q: allowed are commit, abort and blocked", key, text)
	}
}

// up returns the processes that have not crashed.
func (t *scriptHost) up() parley.Set { return parley.Everyone(t.protocol.N).Minus(t.down) }

// maxTimeouts is the number of expired timers after which a case counts as endless. A process sets one again for each
// process that it waits for in vain.
const maxTimeouts = 100 * parley.MaxProcesses

// outcome advances the time until each of the given processes has decided or reports that it is blocked. It returns
// their common outcome as one word, if they agree.
func (t *scriptHost) outcome(of parley.Set) string {
	for range maxTimeouts {
		t.rest()
		if len(t.said(of)) == of.Len() || !t.tick() {
			break
		}
	}
	said := t.said(of)
	var words []string
	for id := range of.All() {
		words = append(words, cmp.Or(said[id], "nothing"))
	}
	slices.Sort(words)
	return strings.Join(slices.Compact(words), ", ")
}

// said returns what processes report about the transaction.
func (t *scriptHost) said(of parley.Set) map[parley.ID]string {
	said := make(map[parley.ID]string)
	for _, h := range t.above {
		switch {
		case !of.Has(h.At):
		case h.Msg.Kind == parley.Decide:
			said[h.At] = string(h.Msg.Body)
		case h.Msg.Kind == problem.Blocked:
			said[h.At] = problem.Undecided.String()
		}
	}
	return said
}

// countsCase checks the number of messages of a transaction without failures.
type countsCase struct {
	kinded
	Participants int `json:"participants"`
}

type countsExpect struct {
	TwoPhase   *uint64 `json:"2pc_messages"`
	ThreePhase *uint64 `json:"3pc_messages"`
}

func counts(c countsCase, want countsExpect, report reporter) {
	if c.Participants < 1 || c.Participants >= parley.MaxProcesses {
		fail("participants: %d: allowed are 1 to %d", c.Participants, parley.MaxProcesses-1)
	}
	report("2pc_messages", want.TwoPhase, commitments["2pc"].messages(c.Participants))
	report("3pc_messages", want.ThreePhase, commitments["3pc"].messages(c.Participants))
}

// messages counts the messages of a transaction for which all vote yes.
func (c commitment) messages(participants int) (sum uint64) {
	t := newHost(c.of(participants + 1))
	for id := range parley.ID(participants) {
		t.run(id+1, request(vote("yes")))
	}
	t.run(coordinator, request(vote("yes")))
	t.rest()
	for _, m := range t.sent {
		sum += t.protocol.Size(parley.Env{From: m.from, To: m.to}, m.msg).Messages
	}
	return sum
}
