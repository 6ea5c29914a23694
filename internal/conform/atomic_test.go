package conform_test

import (
	"fmt"
	"strings"
	"testing"
)

// queues returns a case of processes a, b and c with the given steps in short form: "a<m" receives m, "a=m" receives
// its final priority, and "!m" decides.
func queues(steps ...string) string {
	out := make([]string, len(steps))
	for i, s := range steps {
		switch {
		case s[0] == '!':
			out[i] = fmt.Sprintf(`{"op": "decide", "m": %q}`, s[1:])
		case s[1] == '<':
			out[i] = fmt.Sprintf(`{"op": "recv", "p": %q, "m": %q}`, s[:1], s[2:])
		default:
			out[i] = fmt.Sprintf(`{"op": "final", "p": %q, "m": %q}`, s[:1], s[2:])
		}
	}
	return `"kind": "script", "processes": ["a", "b", "c"], "steps": [` + strings.Join(out, ", ") + `]`
}

// A process's proposals exceed every number that it has proposed or seen as final, even in messages that it has
// delivered. The head of a queue leaves it once it is deliverable.
func TestQueues(t *testing.T) {
	alone := queues("a<m1", "!m1", "a=m1", "a<m2", "!m2", "a=m2")
	passes(t, "atomic", alone, `{"proposals": {"m1": {"a": 1}, "m2": {"a": 2}}, "final": {"m1": [1, "a"], "m2": [2, "a"]},
"delivered": {"a": ["m1", "m2"], "b": [], "c": []}, "after_step": {"2": {"a": ["m1"]}, "4": {"a": ["m1"]}}, "total_order": true}`)
	// b proposes above the final priority that it has seen, although c never had one as high.
	seen := queues("a<m1", "a<m2", "a<m3", "b<m3", "!m3", "b=m3", "b<m4", "c<m4", "!m4", "c=m4", "!m1")
	passes(t, "atomic", seen, `{"proposals": {"m3": {"a": 3, "b": 1}, "m4": {"b": 4, "c": 1}}, "final": {"m3": [3, "a"], "m4": [4, "b"]},
"delivered": {"a": [], "b": ["m3"], "c": ["m4"]}, "total_order": true}`)
	// a holds m2 back as long as m1 may precede it.
	head := queues("a<m1", "a<m2", "b<m2", "b<m1", "!m2", "a=m2", "b=m2", "!m1", "b=m1", "a=m1")
	passes(t, "atomic", head, `{"final": {"m2": [2, "a"], "m1": [2, "b"]}, "delivered": {"a": ["m2", "m1"], "b": ["m2", "m1"]},
"after_step": {"5": {"a": []}, "6": {"a": [], "b": ["m2"]}, "8": {"b": ["m2", "m1"]}, "9": {"a": ["m2", "m1"]}}}`)
	passes(t, "atomic", head, `{"proposals": {"m1": {"c": 1}, "m9": {"a": 1}}, "final": {"m1": [2, "a"], "m9": [1, "a"]},
"delivered": {"a": ["m1", "m2"]}, "after_step": {"6": {"b": []}}, "total_order": false}`,
		"proposals.m1", "proposals.m9", "final.m1", "final.m9", "delivered", "after_step.6", "total_order")
	for steps, want := range map[string]string{
		"d<m":            `steps: entry 0: there is no process "d": allowed are a, b, c`,
		"a<":             "steps: entry 0: m: the name of a message was expected",
		"a<m a<m":        `steps: entry 1: recv: "a" does not get that of "m", or has got it`,
		"!m":             `decide: nobody receives "m", or it is decided`,
		"a<m !m !m":      `decide: nobody receives "m", or it is decided`,
		"a<m !m b<m":     `steps: entry 1: decide: "b" has not proposed for "m"`,
		"a<m a=m":        `steps: entry 1: final: "a" does not get that of "m"`,
		"a<m !m b=m":     `steps: entry 2: final: "b" does not get that of "m"`,
		"a<m !m a=m a=m": `steps: entry 3: final: "a" does not get that of "m", or has got it`,
		"a<m1 !m1 a=m2":  `steps: entry 2: final: "a" does not get that of "m2"`,
	} {
		isRefused(t, "atomic", queues(strings.Fields(steps)...), `{"delivered": {"a": []}}`, want)
	}
	const one = `"kind": "script", "processes": ["a"], "steps": [%s]`
	for step, want := range map[string]string{
		`{"op": "send", "p": "a", "m": "m"}`:                           `op "send": allowed are recv and final`,
		`{"op": "recv", "m": "m"}`:                                     `op "recv": allowed`,
		`{"op": "decide", "p": "a", "m": "m"}`:                         `op "decide": allowed`,
		strings.Repeat(`{"op": "x", "m": "m"},`, 2000) + `{"op": "x"}`: "2001 steps: allowed are 2000",
	} {
		isRefused(t, "atomic", fmt.Sprintf(one, step), `{"delivered": {"a": []}}`, want)
	}
	isRefused(t, "atomic", fmt.Sprintf(`"kind": "script", "processes": [%s"z"]`, many(`"%d", `, 255)), `{"total_order": true}`, "and 256 is the most")
	for expect, want := range map[string]string{
		`{"delivered": {"d": []}}`:          `expect: delivered: there is no process "d"`,
		`{"proposals": {"m1": {"d": 1}}}`:   `expect: proposals: m1: there is no process "d"`,
		`{"final": {"m1": ["a", 1]}}`:       "expect: final: m1: number, where a string was expected",
		`{"after_step": {"5": {"d": []}}}`:  `expect: after_step: 5: there is no process "d"`,
		`{"after_step": {"05": {"a": []}}}`: `expect: after_step: "05" is no step of 0 to 5`,
		`{"after_step": {"6": {"a": []}}}`:  `expect: after_step: "6" is no step of 0 to 5`,
		`{"after_step": {"-1": {"a": []}}}`: `expect: after_step: "-1" is no step`,
	} {
		isRefused(t, "atomic", alone, expect, want)
	}
}

// total_order is checked even for an outcome that the protocol excludes.
func TestTotalOrderIsNotTaken(t *testing.T) {
	cross := queues("a<m1", "b<m2", "a<m2", "b<m1", "!m1", "!m2", "a=m1", "b=m2", "a=m2", "b=m1")
	passes(t, "atomic", cross, `{"total_order": true, "final": {"m1": [2, "b"], "m2": [2, "a"]}}`)
	passes(t, "atomic", cross, `{"total_order": false}`, "total_order")
}

func statuses(all string) string { return `"kind": "recovery", "status": {` + all + `}` }

// The process that takes over adopts a final priority if any process knows one.
func TestRecovery(t *testing.T) {
	const held, unknown = `"a": {"state": "undeliverable", "priority": [3, "a"]}`, `"b": {"state": "unknown"}`
	const again = `{"action": "restart-phase-1"}`
	passes(t, "atomic", statuses(held), again)
	passes(t, "atomic", statuses(unknown), again)
	passes(t, "atomic", statuses(held+", "+unknown), again)
	passes(t, "atomic", statuses(held+", "+unknown), `{"action": "multicast-final", "priority": [3, "a"]}`, "action", "priority")
	for _, state := range []string{"deliverable", "delivered"} {
		final := fmt.Sprintf(`"c": {"state": %q, "priority": [9, "e"]}, "d": {"state": "deliverable", "priority": [9, "e"]}`, state)
		passes(t, "atomic", statuses(held+", "+final), `{"action": "multicast-final", "priority": [9, "e"]}`)
		passes(t, "atomic", statuses(final+", "+unknown), `{"action": "multicast-final", "priority": [9, "e"]}`)
		passes(t, "atomic", statuses(final), `{"action": "restart-phase-1", "priority": [9, "c"]}`, "action", "priority")
	}
	const own = "a: undeliverable: the priority is its own proposal"
	const two = `"a": {"state": "delivered", "priority": [1, "a"]}, "b": {"state": "delivered", "priority": [2, "a"]}`
	for fields, want := range map[string]string{
		`"kind": "recovery"`:                                              "0 processes",
		statuses(`"a": {"state": "lost"}`):                                `status: a: state "lost": allowed are undeliverable, deliverable`,
		statuses(`"a": {"state": "unknown", "priority": [1, "a"]}`):       "a: there is a priority unless the state is unknown",
		statuses(`"a": {"state": "delivered"}`):                           "a: there is a priority unless",
		statuses(`"a": {"state": "undeliverable", "priority": [1, "b"]}`): own,
		statuses(`"a": {"state": "undeliverable", "priority": [0, "a"]}`): "a: priority: 0: allowed are 1 to 1125899906842624",
		statuses(two): "b: there is one final priority, and others have another",
	} {
		isRefused(t, "atomic", fields, again, want)
	}
	isRefused(t, "atomic", statuses(held), `{"action": "give-up"}`, `expect: action "give-up": allowed are multicast-final and restart-phase-1`)
}

// Operations on an account do not commute.
func TestAccount(t *testing.T) {
	const ops = `"kind": "account", "initial": 10, "ops": {"a": {"add": -3}, "b": {"percent": 50}, "c": {"add": 1}}`
	passes(t, "atomic", ops, `{"balance": {"a,b,c": "23/2", "c,a,b": "24/2", "b,a,c": "13", "b,c,a": "13"}}`)
	passes(t, "atomic", ops, `{"balance": {"a,b,c": "12", "b,a,c": "14"}}`, "balance.a,b,c", "balance.b,a,c")
	for fields, want := range map[string]string{
		strings.Replace(ops, `"initial": 10, `, "", 1):                                                     "initial: a whole number was expected",
		strings.Replace(ops, `"add": 1`, `"add": 1, "percent": 1`, 1):                                      "ops: c: it adds an amount or a percentage",
		strings.Replace(ops, `"c":`, `"c,d":`, 1):                                                          `ops: "c,d": names are without commas`,
		`"kind": "account", "initial": 1, "ops": {` + many(`"%d": {"add": 1}, `, 100) + `"z": {"add": 1}}`: "ops: 101: allowed are 100",
	} {
		isRefused(t, "atomic", fields, `{"balance": {"a,b,c": "1"}}`, want)
	}
	for order, want := range map[string]string{
		`"a,b": "1"`: `expect: balance: "a,b" is no order of a, b, c`, `"a,b,b": "1"`: "is no order", `"": "1"`: "is no order",
		`"a,b,c": "1.5"`: "a whole number or a fraction was expected", `"a,b,c": "x"`: "a whole number or a fraction", `"a,b,c": "1e999999999"`: "a whole number",
	} {
		isRefused(t, "atomic", ops, `{"balance": {`+order+`}}`, want)
	}
}
