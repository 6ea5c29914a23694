package convergence

import (
	"flag"
	"slices"
	"strconv"
	"strings"

	"parley"
)

// flags declares the flags of the protocol; c is what they say if they are not
// given.
func flags(c Config) func(*flag.FlagSet) func(parley.Naming) (parley.Protocol, error) {
	return func(fs *flag.FlagSet) func(parley.Naming) (parley.Protocol, error) {
		c := c // what this set of flags says
		n := fs.Int("n", c.N, "number of `processes`")
		m := fs.String("m", "", "`faults` to tolerate (default: as many as the theorem allows)")
		form := fs.String("form", c.Form.String(), "what the mean is of: `"+strings.Join(forms[:], "|")+"`")
		begin := fs.String("begin", c.Begin.String(), "how clocks come to be: `"+strings.Join(begins[:], "|")+"`")
		fs.IntVar(&c.Resyncs, "resyncs", c.Resyncs, "`number` of resynchronizations (0: no end)")
		fs.IntVar(&c.Readings, "readings", c.Readings, "how `often` a clock is asked for until it is read (0: once)")
		for _, f := range []struct {
			name  string
			is    *int64
			usage string
		}{
			{"least", (*int64)(&c.Least), "the shortest delay of a message, in `ticks` (0: 1)"},
			{"eps", (*int64)(&c.Eps), "the largest error of a reading, in `ticks` (0: 899)"},
			{"period", (*int64)(&c.Period), "`ticks` from one resynchronization to the next (0: a few that fit)"},
			{"delta", (*int64)(&c.Delta), "`ticks` that correct clocks may be apart (0: what the theorem says)"},
			{"late", (*int64)(&c.Late), "by how many `ticks` a process may be late (0: none)"},
			{"rho", &c.Rho, "the largest drift of a correct clock, in `parts` in a million (0: 100)"},
			{"slew", &c.Slew, "how fast a clock is adjusted, in `parts` in a million (0: 50000)"},
		} {
			fs.Int64Var(f.is, f.name, *f.is, f.usage)
		}
		return func(parley.Naming) (parley.Protocol, error) {
			var err error
			c.N, c.M = *n, max(0, (*n-1)/3)
			if *m != "" {
				if c.M, err = strconv.Atoi(*m); err != nil {
					return parley.Protocol{}, wrong("m", "%q: a number was expected", *m)
				}
			}
			if c.Form, err = pick[Form]("form", *form, forms[:]); err != nil {
				return parley.Protocol{}, err
			}
			if c.Begin, err = pick[Begin]("begin", *begin, begins[:]); err != nil {
				return parley.Protocol{}, err
			}
			if _, err = c.Plan(); err != nil {
				return parley.Protocol{}, err
			}
			return New(c), nil
		}
	}
}

// pick reads the value of a flag that has few.
func pick[T ~uint8](name, text string, allowed []string) (T, error) {
	i := slices.Index(allowed, text)
	if i < 0 {
		return 0, wrong(name, "%q: allowed are %s", text, strings.Join(allowed, ", "))
	}
	return T(i), nil
}
