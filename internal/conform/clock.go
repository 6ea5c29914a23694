package conform

import (
	"errors"
	"math/big"
	"slices"

	"parley"
	"parley/clock/convergence"
	"parley/internal/conform/form"
)

// clockCase is one round of interactive convergence. Numbers are whole or fractions,
// such as 15/2.
type clockCase struct {
	head
	N        int                          `json:"n"`
	M        int                          `json:"m"`
	Delta    string                       `json:"delta"`
	Faulty   []string                     `json:"faulty"`
	Readings map[string]map[string]string `json:"readings"` // by correct process, and whose clock it read
	Holds    *bool                        `json:"preconditions_hold"`
}

type clockExpect struct {
	New        map[string]string `json:"new"`
	Increment  map[string]string `json:"increment"`
	SkewBefore *string           `json:"skew_before"`
	SkewAfter  *string           `json:"skew_after"`
	Bound      *string           `json:"bound"`
}

// clocks are the clocks of the correct processes.
type clocks struct {
	cast
	delta          convergence.Fraction
	before, after  []convergence.Fraction
	new, increment map[string]string
}

func synchronize(c clockCase, want clockExpect, report reporter) {
	r := c.run()
	r.compare(report, "new", want.New, r.new)
	r.compare(report, "increment", want.Increment, r.increment)
	r.distances(c, want, report)
}

// compare compares numbers of correct processes.
func (r *clocks) compare(report reporter, key string, want, got map[string]string) {
	r.asCorrect(key, form.Keys(want), parley.All)
	if want == nil {
		return
	}
	numbers := make(map[string]string)
	for _, name := range form.Keys(want) {
		numbers[name] = lowest("expect: "+key+": "+name, want[name])
	}
	report(key, numbers, among(numbers, got))
}

// fraction reads a number, and lowest returns it as it is shown.
func fraction(what, text string) convergence.Fraction {
	f, err := convergence.ParseFraction(text)
	check(what, err)
	return f
}

func lowest(what, text string) string { return fraction(what, text).String() }

// distances compares how far apart the clocks are, and may be.
func (r *clocks) distances(c clockCase, want clockExpect, report reporter) {
	before, err := convergence.Spread(r.before)
	after, err2 := convergence.Spread(r.after)
	bound, err3 := convergence.RoundBound(c.N, c.M, r.delta)
	check("", errors.Join(err, err2, err3))
	near := new(big.Rat).SetFrac64(before.Num, before.Den).Cmp(new(big.Rat).SetFrac64(r.delta.Num, r.delta.Den)) <= 0
	if said := c.Holds == nil || *c.Holds; said != near {
		fail("preconditions_hold: %t: correct clocks are %s apart, and delta is %s", said, before, r.delta)
	}
	distance := func(key string, want *string, got convergence.Fraction) {
		if want != nil {
			report(key, lowest("expect: "+key, *want), got.String())
		}
	}
	distance("skew_before", want.SkewBefore, before)
	distance("skew_after", want.SkewAfter, after)
	distance("bound", want.Bound, bound)
}

// run lets every correct process make something of what it read.
func (c clockCase) run() *clocks {
	names := slices.Concat(c.Faulty, form.Keys(c.Readings))
	for _, name := range form.Keys(c.Readings) {
		names = append(names, form.Keys(c.Readings[name])...)
	}
	slices.Sort(names)
	r := &clocks{
		cast: newCast(c.N, slices.Compact(names), c.Faulty),
		new:  make(map[string]string), increment: make(map[string]string),
	}
	if c.M < 0 || c.M >= c.N {
		fail("m: allowed are 0 to n-1")
	}
	if r.delta = fraction("delta", c.Delta); r.delta.Num < 0 {
		fail("delta: %s is negative", r.delta)
	}
	for _, id := range r.correct(parley.All) {
		within("readings: "+r.names[id], func() { r.read(id, c.Readings[r.names[id]]) })
	}
	for _, name := range form.Keys(c.Readings) {
		if r.bad(r.id("", name)) {
			fail("readings: %q is faulty: it makes what it likes of them", name)
		}
	}
	return r
}

// read is one process: it takes the mean in both forms of the lecture.
func (r *clocks) read(self parley.ID, readings map[string]string) {
	values, read := make([]convergence.Fraction, len(r.names)), parley.Set{}
	for i := range values {
		values[i] = convergence.Fraction{Den: 1} // of those that are not read nothing counts
	}
	for _, name := range form.Keys(readings) {
		id := r.id("", name)
		values[id] = fraction(name, readings[name])
		read.Add(id)
	}
	if !read.Has(self) {
		fail("a process reads its own clock")
	}
	value, err := convergence.Exact(convergence.Values, self, values, read, r.delta)
	increment, err2 := convergence.Exact(convergence.Differences, self, values, read, r.delta)
	check("", errors.Join(err, err2))
	name := r.names[self]
	r.new[name], r.increment[name] = value.String(), increment.String()
	r.before, r.after = append(r.before, values[self]), append(r.after, value)
}
