package conform_test

import (
	"fmt"
	"strings"
	"testing"
)

const (
	line  = `"graph": {"a": ["b"], "b": ["a", "c"], "c": ["b"]}, "sender": "a"`
	parts = `"graph": {"a": ["b"], "b": ["a"], "c": ["d"], "d": ["c"]}, "sender": "a"`
)

// The deliveries depend on the processes that a process wrote to before it crashed.
func TestDiffusion(t *testing.T) {
	passes(t, "diffusion", line, `{"delivered_by_correct": ["a", "b", "c"], "messages": 5}`)
	passes(t, "diffusion", line, `{"delivered_by_correct": ["a", "c", "b"], "messages": 4}`, "delivered_by_correct", "messages")
	passes(t, "diffusion", line, `{"delivered_by_correct": []}`, "delivered_by_correct")
	passes(t, "diffusion", line+`, "crashes": {}`, `{"messages": 5}`)
	passes(t, "diffusion", line+`, "crashes": {"b": []}`, `{"delivered_by_correct": ["a"], "messages": 2}`)
	passes(t, "diffusion", line+`, "crashes": {"b": ["a"]}`, `{"delivered_by_correct": ["a"], "messages": 3}`)
	passes(t, "diffusion", line+`, "crashes": {"b": ["c"]}`, `{"delivered_by_correct": ["a", "c"], "messages": 4}`)
	passes(t, "diffusion", line+`, "crashes": {"a": ["b"], "c": []}`, `{"delivered_by_correct": ["b"], "messages": 3}`)
	passes(t, "diffusion", parts+`, "crashes": {"d": []}`, `{"delivered_by_correct": ["a", "b"], "messages": 3}`)
	passes(t, "diffusion", `"graph": {"a": []}, "sender": "a"`, `{"delivered_by_correct": ["a"], "messages": 1}`)
	for fields, want := range map[string]string{
		`"sender": "a"`:                                      "0 processes: allowed are 1 to 256",
		`"graph": {"": []}, "sender": ""`:                    `process "": names are different, and not empty`,
		`"graph": {"a": ["b"]}, "sender": "a"`:               `graph: a: there is no process "b"`,
		`"graph": {"a": ["a"]}, "sender": "a"`:               "is given twice, or is the process itself",
		line + `, "crashes": {"d": []}`:                      `crashes: there is no process "d"`,
		line + `, "crashes": {"b": ["d"]}`:                   `crashes: b: there is no process "d"`,
		line + `, "crashes": {"b": ["a", "a"]}`:              "crashes: b: a name is given twice",
		line + `, "crashes": {"a": ["a"]}`:                   `crashes: "a" does not write to all of them`, // its own copy
		line + `, "crashes": {"a": ["c"]}`:                   `crashes: "a" does not write to all of them`,
		parts + `, "crashes": {"c": ["d"]}`:                  `crashes: "c" never comes to write`,
		strings.Replace(line, `["a", "c"]`, `["a"]`, 1):      `graph: "b" is a neighbour of "c", and not the other way round`,
		strings.Replace(line, `["a", "c"]`, `["a", "a"]`, 1): "graph: b: a neighbour is given twice",
		strings.Replace(line, `r": "a"`, `r": "x"`, 1):       `sender: there is no process "x": allowed are a, b, c`,
	} {
		isRefused(t, "diffusion", fields, `{"messages": 5}`, want)
	}
}

const tree = `"root": "S", "tree": {"S": ["A", "B"], "A": ["C", "D"], "B": ["E"]}`

// Which process takes over depends on the processes that a process wrote to before it crashed, and on those that
// learn of the root's crash.
func TestTree(t *testing.T) {
	passes(t, "tree", tree, `{"data": [["B", "E"], ["S", "B"], ["A", "D"], ["A", "C"], ["S", "A"]]}`)
	passes(t, "tree", tree, `{"data": [["B", "E"]]}`, "data")
	passes(t, "tree", tree, `{"delivered_by_correct": [], "data_messages": 6, "acks": 6, "duplicates": ["S"]}`,
		"delivered_by_correct", "data_messages", "acks", "duplicates")
	passes(t, "tree", `"root": "S", "tree": {}`, `{"delivered_by_correct": ["S"], "data_messages": 0, "acks": 0, "duplicates": []}`)
	passes(t, "tree", `"root": "S"`, `{"delivered_by_correct": ["S"]}`)
	// The root and its only heir crash: the other processes know nothing of the root.
	passes(t, "tree", tree+`, "crashes": {"S": ["A"], "A": ["C"]}`, `{"delivered_by_correct": ["C"], "data_messages": 2, "duplicates": []}`)
	// Two levels crash, and the root takes over from both.
	passes(t, "tree", `"root": "S", "tree": {"S": ["A"], "A": ["B"], "B": ["C"]}, "crashes": {"A": ["B"], "B": []}`,
		`{"delivered_by_correct": ["C", "S"], "data": [["S", "A"], ["A", "B"], ["S", "B"], ["S", "C"]], "duplicates": []}`)
	// A process below a crashed one that crashes while handling the replacement message is suspected too.
	passes(t, "tree", `"root": "S", "tree": {"S": ["A"], "A": ["B"], "B": ["C"]}, "crashes": {"A": [], "B": []}`,
		`{"delivered_by_correct": ["C", "S"], "data": [["S", "A"], ["S", "B"], ["S", "C"]]}`)
	passes(t, "tree", tree+`, "crashes": {"E": []}, "takeover": []`, `{"delivered_by_correct": ["A", "B", "C", "D", "S"], "acks": 4}`)
	// In expectations names may be in any order, and must occur as often as the event.
	two := strings.Replace(tree, `["A", "B"]`, `["A", "B", "F"]`, 1) + `, "crashes": {"S": ["A", "B"]}, "takeover": ["B", "A"]`
	passes(t, "tree", two, `{"duplicates": ["F", "B", "A"]}`)
	passes(t, "tree", two, `{"duplicates": ["F", "F", "B", "A"]}`, "duplicates")
	for fields, want := range map[string]string{
		`"root": "S", "tree": {"S": ["A", "A"]}`:                                     `tree: "A" is there twice`,
		`"root": "S", "tree": {"S": ["A"], "A": ["S"]}`:                              `tree: "S" is there twice`,
		`"root": "S", "tree": {"S": ["A"], "B": ["C"]}`:                              "tree: of 2 processes with children 1 are below the root",
		`"root": "", "tree": {"S": ["A"]}`:                                           `tree: process "": names are different`,
		tree + `, "crashes": {"B": ["C"]}`:                                           `crashes: "B" does not write to all of them`,
		tree + `, "crashes": {"S": [], "A": ["C"]}`:                                  `crashes: "A" never comes to write`,
		tree + `, "crashes": {"C": ["A"]}`:                                           `crashes: "C" does not write to all of them`, // no acknowledgment
		tree + `, "takeover": ["A"]`:                                                 `takeover: "A" is no child of a root that crashes`,
		tree + `, "crashes": {"S": ["A"]}, "takeover": ["C"]`:                        `takeover: "C" is no child of a root that crashes`,
		tree + `, "crashes": {"S": ["A"], "A": []}, "takeover": ["A"]`:               `takeover: "A" is no child of a root that crashes, crashes too`,
		tree + `, "crashes": {"S": ["A"]}, "takeover": ["A", "A"]`:                   "or is there twice",
		tree + `, "crashes": {"S": ["A"]}, "takeover": ["G"]`:                        `takeover: there is no process "G"`,
		fmt.Sprintf(`"root": "S", "tree": {"S": [%s"z"]}`, many(`"%d", `, 256)):      "tree: 258 processes: allowed are 1 to 256",
		`"root": "S", "tree": {"S": ["A", "B"], "A": ["C"], "B": ["C"], "C": ["D"]}`: `tree: "C" is there twice`,
	} {
		isRefused(t, "tree", fields, `{"acks": 5}`, want)
	}
}

// many repeats a form with the numbers from 0 to n-1.
func many(form string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, form, i)
	}
	return b.String()
}

// A receiver delivers what it can after each arrival, and holds back the rest.
func TestFIFO(t *testing.T) {
	const two = `"arrivals": [["q", 2], ["r", 3], ["q", 2], ["q", 1], ["q", 1], ["r", 2]]`
	passes(t, "fifo", two, `{"delivered": [["q", 1], ["q", 2]], "next": {"q": 3, "r": 1}, "bag": [["r", 3], ["r", 2]],
"per_arrival": [[], [], [], [["q", 1], ["q", 2]], [], []]}`)
	passes(t, "fifo", two, `{"next": {"q": 3}}`)
	passes(t, "fifo", two, `{"delivered": [["q", 2], ["q", 1]], "next": {"r": 2}, "bag": [["r", 2]], "per_arrival": [[]]}`,
		"delivered", "per_arrival", "next", "bag")
	passes(t, "fifo", two, `{"bag": []}`, "bag")
	passes(t, "fifo", `"arrivals": [["q", 10000]]`, `{"bag": [["q", 10000]], "delivered": []}`)
	for fields, want := range map[string]string{
		`"arrivals": []`:             "0 processes: allowed are 1 to 256",
		`"arrivals": [["q", "1"]]`:   "arrivals: entry 0: string, where a whole number",
		`"arrivals": [["", 1]]`:      `process "": names are different`,
		`"arrivals": [["q", 0]]`:     "entry 0: number 0: allowed are 1 to 10000",
		`"arrivals": [["q", 10001]]`: "entry 0: number 10001",
		`"arrivals": [["q", 1.5]]`:   "arrivals: entry 0: number 1.5, where a whole number",
		`"arrivals": [` + strings.Repeat(`["q", 1], `, 2000) + `["q", 1]]`: "2001 arrivals: allowed are 2000",
		`"arrivals": [` + many(`["q%d", 10000], `, 10) + `["q", 1]]`:       "100001 broadcasts in all: allowed are 100000",
		`"arrivals": [` + many(`["q%d", 1], `, 255) + `["q", 1]]`:          "256 senders",
	} {
		isRefused(t, "fifo", fields, `{"bag": []}`, want)
	}
	isRefused(t, "fifo", two, `{"next": {"s": 1}}`, `expect: next: there is no process "s": allowed are q, r`)
	isRefused(t, "fifo", two, `{"delivered": [["q", "1"]]}`, "expect: delivered: entry 0: string, where a whole number")
	isRefused(t, "fifo", two, `{"bag": [["q", -1]]}`, "expect: bag: entry 0: number -1")
}

// script returns a case of processes a, b and c with the given steps in short form: "a! m" broadcasts m at a, and
// "b<a1" delivers a's first broadcast at b.
func script(steps ...string) string {
	out := make([]string, len(steps))
	for i, s := range steps {
		if p, m, ok := strings.Cut(s, "! "); ok {
			out[i] = fmt.Sprintf(`{"op": "broadcast", "p": %q, "m": %q}`, p, m)
		} else {
			out[i] = fmt.Sprintf(`{"op": "fdeliver", "p": %q, "from": %q, "seq": %s}`, s[:1], s[2:3], s[3:])
		}
	}
	return `"processes": ["a", "b", "c"], "steps": [` + strings.Join(out, ", ") + `]`
}

// A broadcast carries what its sender has delivered since its previous broadcast.
func TestCausal(t *testing.T) {
	news := script("a! m1", "a<a1", "b<a1", "b! m2", "c<b1", "c<a1", "b<b1", "b! m3", "a<b1")
	passes(t, "causal", news, `{"wire": {"m1": ["m1"], "m2": ["m1", "m2"], "m3": ["m2", "m3"]},
"delivered": {"a": ["m1", "m2"], "b": ["m1", "m2"], "c": ["m1", "m2"]},
"prev": {"a": ["m1", "m2"], "b": [], "c": ["m1", "m2"]}, "before": [["m1", "m2"]]}`)
	passes(t, "causal", news, `{"wire": {"m2": ["m2"]}, "delivered": {"c": ["m2", "m1"]}, "prev": {"b": ["m2"]},
"before": [["m1", "m2"], ["m2", "m1"]]}`, "wire", "delivered", "prev", "before")
	passes(t, "causal", news, `{"wire": {"m9": ["m9"]}, "before": [["m9", "m1"]]}`, "wire", "before")
	// A pair that was not delivered everywhere is only checked where it was.
	passes(t, "causal", script("a! m1", "a! m2", "b<a1", "b<a2", "c<a1"), `{"before": [["m1", "m2"]]}`)
	// Concurrent messages have no order if two processes deliver them differently.
	both := script("a! m1", "b! m2", "a<a1", "b<b1", "a<b1", "b<a1")
	passes(t, "causal", both, `{"before": [["m1", "m2"]]}`, "before")
	passes(t, "causal", both, `{"before": [["m2", "m1"]]}`, "before")
	for fields, want := range map[string]string{
		script("d! m"):                           `steps: entry 0: there is no process "d": allowed are a, b, c`,
		script("a! m", "b<d1"):                   `steps: entry 1: from: there is no process "d"`,
		script("a! m", "b! m"):                   `steps: entry 1: message "m": names are different`,
		script("a! "):                            `steps: entry 0: message "": names are different, not empty`,
		script("a! " + strings.Repeat("m", 101)): "not empty and at most 100 bytes long",
		script("a! m", "b<a2"):                   "steps: entry 1: seq 2: in FIFO order it is the turn of 1",
		script("a! m", "b<a1", "b<a1"):           "steps: entry 2: seq 1: in FIFO order it is the turn of 2",
		script("a! m", "b<a1", "b<a2"):           `steps: entry 2: seq 2: "a" has broadcast 1`,
		script("a! m", "b<a0"):                   "in FIFO order it is the turn of 1",
		`"processes": ["a", "a"], "steps": []`:   `processes: process "a": names are different`,
		`"processes": [], "steps": []`:           "processes: 0 processes",
		`"processes": ["a"], "steps": [{"op": "deliver", "p": "a", "m": "m"}]`:                         `op "deliver": allowed are broadcast`,
		`"processes": ["a"], "steps": [{"op": "broadcast", "p": "a"}]`:                                 `op "broadcast": allowed are broadcast with p and m`,
		`"processes": ["a"], "steps": [{"op": "broadcast", "p": "a", "m": "m", "seq": 1}]`:             `op "broadcast": allowed`,
		`"processes": ["a"], "steps": [{"op": "fdeliver", "p": "a", "from": "a"}]`:                     `op "fdeliver": allowed`,
		`"processes": ["a"], "steps": [{"op": "fdeliver", "p": "a", "from": "a", "seq": 1, "m": "m"}]`: `op "fdeliver": allowed`,
		script(strings.Split(strings.TrimSuffix(many("a! m%d,", 2001), ","), ",")...):                  "2001 steps: allowed are 2000",
	} {
		isRefused(t, "causal", fields, `{"delivered": {"a": []}}`, want)
	}
	isRefused(t, "causal", news, `{"delivered": {"d": []}}`, `expect: delivered: there is no process "d"`)
	isRefused(t, "causal", news, `{"prev": {"d": []}}`, `expect: prev: there is no process "d"`)
	isRefused(t, "causal", news, `{"before": []}`, "expect: before: an empty list says nothing")
	isRefused(t, "causal", news, `{"before": [["m1", "m3"]]}`, `expect: before: "m3" is delivered nowhere`)
}
