package consensus

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/agreement/problem"
)

// Rule makes the decision from the vector. It must be a function of its arguments
// only, or processes with equal vectors decide differently.
type Rule struct {
	Name string
	// Of returns the decision on a vector with one entry per process. The argument otherwise is the default. Of may
	// return one of its arguments, and must not change them.
	Of func(vector [][]byte, otherwise []byte) []byte

	numeric   bool // entries are numbers; any other entry counts as the default
	unanimous bool // if all correct processes start with the same value, it is decided, if n > 2m
	inRange   bool // the decision lies in the range of the correct entries, if n > 2m
	because   string
}

// The rules of this package.
//
// Majority takes the value that more than half of the entries have, or the default if there is no such value.
//
// The other rules are for readings of one quantity: decimal integers of 64 bits. Entries are compared as numbers, and
// different spellings of the same number as bytes. So the decision is an entry as it was written, or the default. An
// entry that is not a number counts as the default. If the default is not a number, it counts as 0. Median takes the
// middle entry. If there are two middle entries, it takes the lower one. Minimum and Maximum take the least and the
// greatest entry, which one faulty process can choose.
var (
	Majority = Rule{
		Name: "majority", Of: majority, unanimous: true,
		because: "n > 2m: equal entries of all correct processes are more than half",
	}
	Median = Rule{
		Name: "median", Of: ordered(func(n int) int { return (n - 1) / 2 }), numeric: true, unanimous: true, inRange: true,
		because: "n > 2m: the liars' entries are too few to reach the middle from outside",
	}
	Minimum = Rule{
		Name: "minimum", Of: ordered(func(int) int { return 0 }), numeric: true,
		because: "one liar's entry below all others is the minimum",
	}
	Maximum = Rule{
		Name: "maximum", Of: ordered(func(n int) int { return n - 1 }), numeric: true,
		because: "one liar's entry above all others is the maximum",
	}
)

var rules = []Rule{Majority, Median, Minimum, Maximum}

// RuleNames returns the names that [RuleOf] knows.
func RuleNames() []string {
	var names []string
	for _, r := range rules {
		names = append(names, r.Name)
	}
	return names
}

// RuleOf returns the rule of this package with the given name.
func RuleOf(name string) (Rule, error) {
	for _, r := range rules {
		if r.Name == name {
			return r, nil
		}
	}
	return Rule{}, fmt.Errorf("rule %q: allowed are %s", name, strings.Join(RuleNames(), ", "))
}

// majority counts every entry once, including the process's own.
func majority(vector [][]byte, otherwise []byte) []byte {
	var votes parley.Tally
	for i, v := range vector {
		votes.Vote(parley.ID(i), v)
	}
	return votes.Majority(otherwise)
}

func number(v []byte) (int64, bool) {
	x, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return 0, false // on a range error ParseInt returns the nearest number
	}
	return x, true
}

// ordered returns the rule that takes the entry at place(n) of n sorted entries, the least first.
func ordered(place func(n int) int) func(vector [][]byte, otherwise []byte) []byte {
	return func(vector [][]byte, otherwise []byte) []byte {
		entries := slices.Clone(vector)
		for i, v := range entries {
			if _, ok := number(v); !ok {
				entries[i] = otherwise
			}
		}
		slices.SortFunc(entries, compare)
		return entries[place(len(entries))]
	}
}

// compare orders values as numbers, and equal numbers as bytes.
func compare(a, b []byte) int {
	x, _ := number(a)
	y, _ := number(b)
	return cmp.Or(cmp.Compare(x, y), bytes.Compare(a, b))
}

// Range is the property that a decision lies within the range of correct processes' values.
const Range = "range"

func (r Rule) properties() []parley.Property {
	list := problem.Consensus()
	if !r.numeric {
		return list
	}
	i := slices.IndexFunc(list, func(p parley.Property) bool { return p.Name == problem.Validity })
	list[i].Says = "if all correct processes start with the same number, they decide on it"
	list[i] = ofNumbers(list[i])
	return append(list, ofNumbers(parley.Property{
		Name: Range,
		Says: "if all correct processes start with numbers, the decision lies between the least and the " +
			"greatest of these numbers",
		Mode: parley.Always, Check: inRange, Vacuous: func(*parley.History) string { return "" },
	}))
}

// ofNumbers returns a property that demands nothing if a correct process starts with a
// value that is not a number.
func ofNumbers(p parley.Property) parley.Property {
	check, vacuous := p.Check, p.Vacuous
	p.Check = func(h *parley.History) error {
		if _, _, ok := bounds(h); !ok {
			return nil
		}
		return check(h)
	}
	p.Vacuous = func(h *parley.History) string {
		if _, _, ok := bounds(h); !ok {
			return "the initial values of correct processes are not numbers"
		}
		return vacuous(h)
	}
	return p
}

func inRange(h *parley.History) error {
	least, greatest, _ := bounds(h)
	decided := problem.Decisions(h)
	for id := range parley.Everyone(h.N).All() {
		v, done := decided[id]
		if done && (compare(v, least) < 0 || compare(v, greatest) > 0) {
			return fmt.Errorf("%s decided %s, and correct processes started with %s to %s",
				h.Name(id), parley.Printable(v), least, greatest)
		}
	}
	return nil
}

// bounds returns the least and the greatest initial value of correct processes,
// if there are any and all of them are numbers.
func bounds(h *parley.History) (least, greatest []byte, ok bool) {
	var asked parley.Set
	var values [][]byte
	for _, q := range h.Requests {
		if q.Msg.Kind != parley.Propose || !h.Correct(q.At) || !asked.Add(q.At) {
			continue
		}
		if _, is := number(q.Msg.Body); !is {
			return nil, nil, false
		}
		values = append(values, q.Msg.Body)
	}
	if len(values) == 0 {
		return nil, nil, false
	}
	return slices.MinFunc(values, compare), slices.MaxFunc(values, compare), true
}

// promises derives the promises of the decision from those of the vector.
func (r Rule) promises(of func(parley.RunConditions) []parley.Promise) func(parley.RunConditions) []parley.Promise {
	return func(a parley.RunConditions) []parley.Promise {
		var out []parley.Promise
		for _, p := range of(a) {
			switch p.Property {
			case problem.Agreement:
				p.Because = "equal vectors give equal decisions; " + p.Because
				p.Proof = ""
			case problem.Validity:
				out = append(out, r.promise(a, p, problem.Validity, r.unanimous))
				if r.numeric {
					out = append(out, r.promise(a, p, Range, r.inRange))
				}
				continue
			}
			out = append(out, p)
		}
		return parley.Proved(out, proofs)
	}
}

// proofs sketches why the decision has the property.
var proofs = map[string]string{
	problem.Agreement: "Interactive consistency gives all correct processes the same vector of values. The decision is " +
		"a function of the vector only, so all correct processes decide the same.",
}

// promise says whether a property of the rule holds, given that the entries of
// correct processes are their initial values.
func (r Rule) promise(a parley.RunConditions, entries parley.Promise, property string, holds bool) parley.Promise {
	p := parley.Promise{Property: property, Because: r.because}
	switch tooMany := checkMajority(a.N, a.Faulty); {
	case r.because == "":
		p.Because = "nothing is known about the " + r.Name
	case !entries.Holds:
		p.Because = entries.Because
	case a.Faulty == 0:
		p.Holds, p.Because = true, "all entries come from correct processes"
	case holds && tooMany != nil:
		p.Because = tooMany.Error()
	default:
		p.Holds = holds
	}
	return p
}
