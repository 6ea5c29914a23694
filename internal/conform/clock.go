package conform

import (
	"errors"
	"fmt"
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

func synchronize(raw []byte, report reporter) error {
	var c clockCase
	var want clockExpect
	if err := read(raw, &c, &want); err != nil {
		return err
	}
	r, err := c.run()
	if err != nil {
		return err
	}
	for _, x := range []struct {
		key       string
		want, got map[string]string
	}{{"new", want.New, r.new}, {"increment", want.Increment, r.increment}} {
		if x.want == nil {
			continue
		}
		if _, err := r.asCorrect(x.key, form.Keys(x.want), parley.All); err != nil {
			return err
		}
		numbers := make(map[string]string)
		for _, name := range form.Keys(x.want) {
			if numbers[name], err = lowest(x.want[name]); err != nil {
				return fmt.Errorf("expect: %s: %s: %w", x.key, name, err)
			}
		}
		report(x.key, numbers, among(numbers, x.got))
	}
	return r.distances(c, want, report)
}

// lowest is a number as it is shown.
func lowest(text string) (string, error) {
	f, err := convergence.ParseFraction(text)
	return f.String(), err
}

// distances compares how far apart the clocks are, and may be.
func (r clocks) distances(c clockCase, want clockExpect, report reporter) error {
	before, err := convergence.Spread(r.before)
	after, err2 := convergence.Spread(r.after)
	bound, err3 := convergence.RoundBound(c.N, c.M, r.delta)
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	near := new(big.Rat).SetFrac64(before.Num, before.Den).Cmp(new(big.Rat).SetFrac64(r.delta.Num, r.delta.Den)) <= 0
	if said := c.Holds == nil || *c.Holds; said != near {
		return fmt.Errorf("preconditions_hold: %t: correct clocks are %s apart, and delta is %s", said, before, r.delta)
	}
	for _, x := range []struct {
		key  string
		want *string
		got  convergence.Fraction
	}{{"skew_before", want.SkewBefore, before}, {"skew_after", want.SkewAfter, after}, {"bound", want.Bound, bound}} {
		if x.want == nil {
			continue
		}
		number, err := lowest(*x.want)
		if err != nil {
			return fmt.Errorf("expect: %s: %w", x.key, err)
		}
		report(x.key, number, x.got.String())
	}
	return nil
}

// run lets every correct process make something of what it read.
func (c clockCase) run() (r clocks, err error) {
	names := slices.Concat(c.Faulty, form.Keys(c.Readings))
	for _, name := range form.Keys(c.Readings) {
		names = append(names, form.Keys(c.Readings[name])...)
	}
	slices.Sort(names)
	if r.cast, err = newCast(c.N, slices.Compact(names), c.Faulty); err != nil {
		return r, err
	}
	if c.M < 0 || c.M >= c.N {
		return r, errors.New("m: allowed are 0 to n-1")
	}
	if r.delta, err = convergence.ParseFraction(c.Delta); err != nil {
		return r, fmt.Errorf("delta: %w", err)
	}
	if r.delta.Num < 0 {
		return r, fmt.Errorf("delta: %s is negative", r.delta)
	}
	r.new, r.increment = make(map[string]string), make(map[string]string)
	for _, id := range r.correct(parley.All) {
		if err := r.read(id, c.Readings[r.names[id]]); err != nil {
			return r, fmt.Errorf("readings: %s: %w", r.names[id], err)
		}
	}
	for _, name := range form.Keys(c.Readings) {
		id, _ := r.id(name)
		if _, bad := r.faulty[id]; bad {
			return r, fmt.Errorf("readings: %q is faulty: it makes what it likes of them", name)
		}
	}
	return r, nil
}

// read is one process: it takes the mean in both forms of the lecture.
func (r *clocks) read(self parley.ID, readings map[string]string) error {
	values, read := make([]convergence.Fraction, len(r.names)), parley.Set{}
	for i := range values {
		values[i] = convergence.Fraction{Den: 1} // of those that are not read nothing counts
	}
	for _, name := range form.Keys(readings) {
		id, _ := r.id(name)
		f, err := convergence.ParseFraction(readings[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		values[id] = f
		read.Add(id)
	}
	if !read.Has(self) {
		return errors.New("a process reads its own clock")
	}
	value, err := convergence.Exact(convergence.Values, self, values, read, r.delta)
	increment, err2 := convergence.Exact(convergence.Differences, self, values, read, r.delta)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	name := r.names[self]
	r.new[name], r.increment[name] = value.String(), increment.String()
	r.before, r.after = append(r.before, values[self]), append(r.after, value)
	return nil
}
