package conform_test

import (
	"strings"
	"testing"
)

const clocks = `"n": 4, "m": 1, "delta": "3/2", "faulty": ["r"],
"readings": {"p": {"p": "10", "q": "11", "s": "10"}, "q": {"p": "10", "q": "11", "s": "10", "r": "25/2"}, "s": {"p": "10", "q": "11", "s": "10", "r": "8"}}`

// Numbers are exact. A reading that is missing or more than delta away counts as the process's own.
func TestClock(t *testing.T) {
	passes(t, "clock", clocks, `{"new": {"p": "41/4", "q": "87/8", "s": "41/4"}, "increment": {"p": "1/4", "q": "-1/8", "s": "2/8"},
"skew_before": "1", "skew_after": "5/8", "bound": "9/8"}`)
	passes(t, "clock", clocks, `{"new": {"p": "10"}, "increment": {"q": "1/8"}, "skew_before": "2", "skew_after": "1/2", "bound": "1"}`,
		"new", "increment", "skew_before", "skew_after", "bound")
	far := strings.Replace(clocks, `"delta": "3/2"`, `"delta": "1/2", "preconditions_hold": false`, 1)
	passes(t, "clock", far, `{"new": {"p": "10", "q": "11"}, "skew_after": "1"}`)
	passes(t, "clock", strings.Replace(clocks, `"n"`, `"preconditions_hold": true, "n"`, 1), `{"bound": "9/8"}`)
	const marked, apart = `"delta": "3/2", "preconditions_hold": false`, "correct clocks are 1 apart, and delta is "
	for fields, want := range map[string]string{
		strings.Replace(clocks, `"delta": "3/2"`, marked, 1):           "preconditions_hold: false: " + apart + "3/2",
		strings.Replace(clocks, `"delta": "3/2"`, `"delta": "3/4"`, 1): "preconditions_hold: true: " + apart + "3/4",
		strings.Replace(clocks, `"3/2"`, `"1.5"`, 1):                   `delta: "1.5": a whole number or a fraction`,
		strings.Replace(clocks, `"3/2"`, `"-1"`, 1):                    "delta: -1 is negative",
		strings.Replace(clocks, `"n": 4`, `"n": 5`, 1):                 "n is 5 and there are 4 processes",
		strings.Replace(clocks, `"m": 1`, `"m": 4`, 1):                 "m: allowed are 0 to n-1",
		strings.Replace(clocks, `["r"]`, `["r", "s"]`, 1):              `readings: "s" is faulty: it makes what it likes of them`,
		strings.Replace(clocks, `["r"]`, `[]`, 1):                      "readings: r: a process reads its own clock",
		strings.Replace(clocks, `{"p": {"p": "10", `, `{"p": {`, 1):    "readings: p: a process reads its own clock",
		strings.Replace(clocks, `"25/2"`, `"25/0"`, 1):                 `readings: q: r: "25/0"`,
		strings.Replace(clocks, `"25/2"`, `"4000000000000000000"`, 1):  "too large to be exact",
	} {
		isRefused(t, "clock", fields, `{"bound": "9/8"}`, want)
	}
	for expect, want := range map[string]string{
		`{"new": {"r": "1"}}`:       `expect: new: "r" is faulty`,
		`{"increment": {"x": "1"}}`: `expect: increment: there is no process "x"`,
		`{"new": {"p": "x"}}`:       `expect: new: p: "x": a whole number`,
		`{"bound": "x"}`:            `expect: bound: "x": a whole number`,
	} {
		isRefused(t, "clock", clocks, expect, want)
	}
}
