package conform

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/clock/convergence"
	"parley/internal/conform/form"
)

// clockCase is one round of interactive convergence. Numbers are integers or fractions such as 15/2.
type clockCase struct {
	head
	N        int                          `json:"n"`
	M        int                          `json:"m"`
	Delta    string                       `json:"delta"`
	Faulty   []string                     `json:"faulty"`
	Readings map[string]map[string]string `json:"readings"` // by correct process, and by the process whose clock it read
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
	delta          *big.Rat
	before, after  []*big.Rat
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

// fraction reads a number such as 15/2 or 7. lowest returns it in lowest terms.
func fraction(what, text string) *big.Rat {
	over, under, isFraction := strings.Cut(text, "/")
	if !isFraction {
		under = "1"
	}
	num, err := strconv.ParseInt(over, 10, 64)
	den, err2 := strconv.ParseInt(under, 10, 64)
	if err != nil || err2 != nil || den <= 0 {
		check(what, fmt.Errorf("%q: a whole number or a fraction such as 15/2 was expected", text))
	}
	if num <= -large || max(num, den) >= large {
		check(what, fmt.Errorf("%s: %w", text, errLarge))
	}
	return big.NewRat(num, den)
}

func lowest(what, text string) string { return fraction(what, text).RatString() }

// Numbers below large leave room for a sum in a Tick.
const large = 1 << 61

var errLarge = errors.New("the numbers are too large to be exact")

// distances compares the distances of the clocks, and their bounds.
func (r *clocks) distances(c clockCase, want clockExpect, report reporter) {
	before := spreadOf(r.before)
	if said := c.Holds == nil || *c.Holds; said != (before.Cmp(r.delta) <= 0) {
		fail("preconditions_hold: %t: correct clocks are %s apart, and delta is %s",
			said, before.RatString(), r.delta.RatString())
	}
	distance := func(key string, want *string, got *big.Rat) {
		if want != nil {
			report(key, lowest("expect: "+key, *want), got.RatString())
		}
	}
	distance("skew_before", want.SkewBefore, before)
	distance("skew_after", want.SkewAfter, spreadOf(r.after))
	// The bound on the distance, after one round with exact readings, of clocks that are delta apart.
	distance("bound", want.Bound, new(big.Rat).Mul(r.delta, big.NewRat(int64(3*c.M), int64(c.N))))
}

// spreadOf returns the distance of the two clocks furthest apart, or 0 if there are none.
func spreadOf(clocks []*big.Rat) *big.Rat {
	if len(clocks) == 0 {
		return new(big.Rat)
	}
	return new(big.Rat).Sub(slices.MaxFunc(clocks, (*big.Rat).Cmp), slices.MinFunc(clocks, (*big.Rat).Cmp))
}

// run makes every correct process compute its correction from its readings.
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
	if r.delta = fraction("delta", c.Delta); r.delta.Sign() < 0 {
		fail("delta: %s is negative", r.delta.RatString())
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

// read computes the correction of one process: it takes the mean in both forms of the lecture.
func (r *clocks) read(self parley.ID, readings map[string]string) {
	values, read := make([]*big.Rat, len(r.names)), parley.Set{}
	for i := range values {
		values[i] = new(big.Rat) // values that are not read do not count
	}
	for _, name := range form.Keys(readings) {
		id := r.id("", name)
		values[id] = fraction(name, readings[name])
		read.Add(id)
	}
	if !read.Has(self) {
		fail("a process reads its own clock")
	}
	ticks, scale := scaled(append(values, r.delta))
	mean := func(f convergence.Form) *big.Rat {
		whole, rest := convergence.Exact(f, self, ticks[:len(values)], read, ticks[len(values)])
		n := big.NewRat(1, int64(len(values)))
		sum := new(big.Rat).Add(big.NewRat(int64(whole), 1), n.Mul(n, big.NewRat(int64(rest), 1)))
		return sum.Quo(sum, new(big.Rat).SetInt(scale))
	}
	name, value := r.names[self], mean(convergence.Values)
	r.new[name], r.increment[name] = value.RatString(), mean(convergence.Differences).RatString()
	r.before, r.after = append(r.before, values[self]), append(r.after, value)
}

// scaled returns numbers in units so small that all of them are integers.
func scaled(all []*big.Rat) (ticks []parley.Tick, scale *big.Int) {
	scale = big.NewInt(1)
	for _, x := range all {
		common := new(big.Int).GCD(nil, nil, scale, x.Denom())
		scale.Mul(scale, new(big.Int).Quo(x.Denom(), common))
	}
	for _, x := range all {
		whole := new(big.Rat).Mul(x, new(big.Rat).SetInt(scale)).Num()
		if whole.CmpAbs(big.NewInt(large)) >= 0 {
			check("", errLarge)
		}
		ticks = append(ticks, parley.Tick(whole.Int64()))
	}
	return ticks, scale
}
