package convergence

import (
	"flag"
	"slices"
	"strconv"
	"strings"

	"parley"
)

// number is a numeric field of a Config with a flag, and its largest value.
type number struct {
	name, usage string
	is          *int64
	most        int64
}

func (c *Config) numbers() []number {
	const long, short = int64(maxTicks), int64(maxTicks >> 12)
	return []number{
		{"least", "the shortest delay of a message, in `ticks` (0: 1)", (*int64)(&c.Least), short},
		{"eps", "the largest error of a reading, in `ticks` (0: 899)", (*int64)(&c.Eps), short},
		{"period", "`ticks` from one resynchronization to the next (0: a few that fit)", (*int64)(&c.Period), long},
		{"delta", "`ticks` that correct clocks may be apart (0: what the theorem says)", (*int64)(&c.Delta), long >> 4},
		{"late", "by how many `ticks` a process may be late (0: none)", (*int64)(&c.Late), short},
		{"rho", "the largest drift of a correct clock, in `parts` in a million (0: 100)", &c.Rho, maxPPM},
		{"slew", "how fast a clock is adjusted, in `parts` in a million (0: 50000)", &c.Slew, maxPPM},
	}
}

// Flags declares the flags of the clocks, for use with [parley.Flags].
func Flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	fs.IntVar(&c.N, "n", c.N, "number of `processes`")
	m := fs.String("m", "", "`faults` to tolerate (default: as many as the theorem allows)")
	form := fs.String("form", c.Form.String(), "what the mean is of: `"+strings.Join(forms[:], "|")+"`")
	begin := fs.String("begin", c.Begin.String(), "how clocks come to be: `"+strings.Join(begins[:], "|")+"`")
	fs.IntVar(&c.Resyncs, "resyncs", c.Resyncs, "`number` of resynchronizations (0: no end)")
	fs.IntVar(&c.Readings, "readings", c.Readings, "how `often` a clock is asked for until it is read (0: once)")
	for _, f := range c.numbers() {
		fs.Int64Var(f.is, f.name, *f.is, f.usage)
	}
	return func(c *Config, _ parley.Naming) (err error) {
		c.M = max(0, (c.N-1)/3)
		if *m != "" {
			if c.M, err = strconv.Atoi(*m); err != nil {
				return parley.FlagErrorf("m", "%q: a number was expected", *m)
			}
		}
		if c.Form, err = pick[Form]("form", *form, forms[:]); err != nil {
			return err
		}
		if c.Begin, err = pick[Begin]("begin", *begin, begins[:]); err != nil {
			return err
		}
		_, err = c.Plan()
		return err
	}
}

// pick reads the value of a flag with few allowed values.
func pick[T ~uint8](name, text string, allowed []string) (T, error) {
	i := slices.Index(allowed, text)
	if i < 0 {
		return 0, parley.FlagErrorf(name, "%q: allowed are %s", text, strings.Join(allowed, ", "))
	}
	return T(i), nil
}
