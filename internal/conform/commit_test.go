package conform_test

import (
	"fmt"
	"strings"
	"testing"
)

// object returns a JSON object for "a=yes b=no".
func object(words string) string {
	var out []string
	for _, w := range strings.Fields(words) {
		name, value, _ := strings.Cut(w, "=")
		out = append(out, fmt.Sprintf("%q: %q", name, value))
	}
	return "{" + strings.Join(out, ", ") + "}"
}

// One vote that is no or missing is enough to abort.
func TestVotes(t *testing.T) {
	for votes, want := range map[string]string{
		"a=yes": "commit", "a=yes b=yes": "commit", "a=no": "abort", "a=none": "abort",
		"a=yes b=no c=yes": "abort", "a=yes b=yes c=none": "abort", "a=none b=none": "abort", "a=no b=none": "abort",
	} {
		fields := `"kind": "2pc-vote", "votes": ` + object(votes)
		passes(t, "commit", fields, fmt.Sprintf(`{"decision": %q}`, want))
		for _, other := range []string{"commit", "abort", "blocked"} {
			if other != want {
				passes(t, "commit", fields, fmt.Sprintf(`{"decision": %q}`, other), "decision")
			}
		}
	}
	isRefused(t, "commit", `"kind": "2pc-vote", "votes": {"a": "maybe"}`, `{"decision": "abort"}`, `votes: a: "maybe": allowed are yes, no and none`)
	isRefused(t, "commit", `"kind": "2pc-vote"`, `{"decision": "abort"}`, "0 participants: allowed are 1 to 255")
	isRefused(t, "commit", `"kind": "2pc-vote", "votes": {"a": "yes"}`, `{"decision": "yes"}`, `expect: decision: "yes": allowed are commit, abort and blocked`)
}

// The outcome from the states of the participants that reach each other, in two phases and in three. With two there
// may be none.
func TestTermination(t *testing.T) {
	for states, want := range map[string][2]string{
		"a=initial": {"abort", "abort"}, "a=uncertain": {"blocked", "abort"}, "a=aborted": {"abort", "abort"},
		"a=committed": {"commit", "commit"}, "a=precommitted": {"", "commit"},
		"a=uncertain b=uncertain c=uncertain": {"blocked", "abort"}, "a=uncertain b=initial": {"abort", "abort"},
		"a=initial b=uncertain c=uncertain": {"abort", "abort"}, "a=uncertain b=aborted": {"abort", "abort"},
		"a=aborted b=initial c=uncertain": {"abort", "abort"}, "a=committed b=uncertain c=uncertain": {"commit", "commit"},
		"a=uncertain b=uncertain c=committed": {"commit", "commit"}, "a=uncertain b=precommitted": {"", "commit"},
		"a=precommitted b=uncertain c=uncertain": {"", "commit"}, "a=precommitted b=committed": {"", "commit"},
		"a=precommitted b=precommitted": {"", "commit"},
	} {
		for i, phases := range []string{"2pc", "3pc"} {
			fields := fmt.Sprintf(`"kind": "%s-termination", "states": %s`, phases, object(states))
			if want[i] == "" {
				isRefused(t, "commit", fields, `{"outcome": "commit"}`, "precommitted: there is no such state in two phases")
				continue
			}
			for _, outcome := range []string{"commit", "abort", "blocked"} {
				failing := []string{"outcome"}
				if outcome == want[i] {
					failing = nil
				}
				passes(t, "commit", fields, fmt.Sprintf(`{"outcome": %q}`, outcome), failing...)
			}
		}
	}
	for states, want := range map[string]string{
		"a=committed b=aborted":    "where one has not voted yes, or has aborted, nobody is precommitted or has committed",
		"a=committed b=initial":    "where one has not voted yes",
		"a=precommitted b=aborted": "where one has not voted yes",
		"a=waiting":                `states: a: state "waiting": allowed are initial, uncertain, precommitted, committed and aborted`,
	} {
		isRefused(t, "commit", `"kind": "3pc-termination", "states": `+object(states), `{"outcome": "commit"}`, want)
	}
	isRefused(t, "commit", `"kind": "2pc-termination", "states": {"a": "initial"}`, `{"outcome": "yes"}`, `expect: outcome: "yes"`)
}

// Each group decides by itself: with two phases it may block, with three it may decide wrongly.
func TestPartition(t *testing.T) {
	groups := func(protocol, g1, g2 string) string {
		return fmt.Sprintf(`"kind": "partition", "protocol": %q, "groups": {"g1": %s, "g2": %s}`, protocol, object(g1), object(g2))
	}
	unsafe := groups("3pc", "a=precommitted", "b=uncertain c=uncertain")
	passes(t, "commit", unsafe, `{"outcomes": {"g1": "commit", "g2": "abort"}, "consistent": false}`)
	passes(t, "commit", unsafe, `{"outcomes": {"g2": "commit"}, "consistent": true}`, "outcomes", "consistent")
	passes(t, "commit", groups("3pc", "a=uncertain", "b=uncertain"), `{"outcomes": {"g1": "abort", "g2": "abort"}, "consistent": true}`)
	passes(t, "commit", groups("3pc", "a=precommitted b=uncertain", "c=committed"), `{"outcomes": {"g1": "commit", "g2": "commit"}, "consistent": true}`)
	passes(t, "commit", groups("2pc", "a=committed", "b=uncertain"), `{"outcomes": {"g1": "commit", "g2": "blocked"}, "consistent": true}`)
	passes(t, "commit", groups("2pc", "a=uncertain b=initial", "c=uncertain"), `{"outcomes": {"g1": "abort", "g2": "blocked"}, "consistent": true}`)
	// In the largest system, each process that is up first times out on all the others.
	large := groups("3pc", strings.TrimSpace(many("x%d=uncertain ", 127)), "y=precommitted "+many("y%d=uncertain ", 127))
	passes(t, "commit", large, `{"outcomes": {"g1": "abort", "g2": "commit"}, "consistent": false}`)
	for fields, want := range map[string]string{
		groups("4pc", "a=initial", "b=initial"):                                  `protocol "4pc": allowed are 2pc and 3pc`,
		groups("3pc", "a=initial", "a=initial"):                                  `groups: process "a": names are different`,
		groups("3pc", "a=initial", ""):                                           "groups: g2: an empty object",
		groups("2pc", "a=initial", "b=precommitted"):                             "groups: g2: b: precommitted: there is no such state in two phases",
		groups("3pc", "a=initial", "b=committed c=initial"):                      "groups: g2: where one has not voted yes",
		groups("3pc", "a=initial", strings.TrimSpace(many("x%d=initial ", 255))): "256 participants: allowed are 1 to 255",
		`"kind": "partition", "protocol": "3pc"`:                                 "groups: 0 processes",
	} {
		isRefused(t, "commit", fields, `{"consistent": true}`, want)
	}
	isRefused(t, "commit", unsafe, `{"outcomes": {"g3": "abort"}}`, `expect: outcomes: there is no group "g3"`)
	isRefused(t, "commit", unsafe, `{"outcomes": {"g1": "done"}}`, `expect: outcomes: g1: "done"`)
}

// Without failures a participant costs three messages in two phases and five in three.
func TestCommitCounts(t *testing.T) {
	for _, n := range []int{1, 2, 7, 255} {
		fields := fmt.Sprintf(`"kind": "counts", "participants": %d`, n)
		passes(t, "commit", fields, fmt.Sprintf(`{"2pc_messages": %d, "3pc_messages": %d}`, 3*n, 5*n))
		passes(t, "commit", fields, fmt.Sprintf(`{"2pc_messages": %d, "3pc_messages": %d}`, 3*n+1, 5*n-1), "2pc_messages", "3pc_messages")
	}
	for _, n := range []int{0, 256, -1} {
		isRefused(t, "commit", fmt.Sprintf(`"kind": "counts", "participants": %d`, n), `{"2pc_messages": 0}`, "allowed are 1 to 255")
	}
}
