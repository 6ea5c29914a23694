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
		{"least", "minimum delay of a message, in `ticks` (0 means 1)", (*int64)(&c.Least), short},
		{"eps", "maximum error of reading another clock, in `ticks` (0 means 899)", (*int64)(&c.Eps), short},
		{"period", "time between resynchronizations, in `ticks` (0: derived from the other flags)",
			(*int64)(&c.Period), long},
		{"delta", "maximum difference of correct clocks, in `ticks` (0: the bound that the theorem guarantees)",
			(*int64)(&c.Delta), long >> 4},
		{"late", "maximum lateness of a process, in `ticks` (0 means none)", (*int64)(&c.Late), short},
		{"rho", "maximum drift of a correct clock, in `parts` per million (0 means 100)", &c.Rho, maxPPM},
		{"slew", "how fast a process adjusts its clock, in `parts` per million (0 means 50000)", &c.Slew, maxPPM},
	}
}

// Flags declares the flags of the clocks, for use with [parley.Flags].
func Flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	fs.IntVar(&c.N, "n", c.N, "number of `processes`")
	m := fs.String("m", "", "`faults` to tolerate (default: as many as the theorem allows)")
	form := fs.String("form", c.Form.String(), "which `terms` a process averages: "+strings.Join(forms[:], "|")+
		"; with \"differences\", it adjusts its clock by the mean of the differences between clocks; "+
		"with \"values\", it adjusts its clock to the mean of the clock values")
	begin := fs.String("begin", c.Begin.String(), "`start` of the clocks: "+strings.Join(begins[:], "|")+"; together: "+
		"all clocks begin at the same time; cold: the clocks may show anything; joining: the other clocks are running; "+
		"either: cold or joining, whichever works first")
	fs.IntVar(&c.Resyncs, "resyncs", c.Resyncs, "`number` of resynchronizations, 0 for no end")
	fs.IntVar(&c.Readings, "readings", c.Readings, "maximum `number` of attempts to read each clock in a "+
		"resynchronization (0 means 1)")
	for _, f := range c.numbers() {
		fs.Int64Var(f.is, f.name, *f.is, f.usage)
	}
	return func(c *Config, _ parley.Naming) (err error) {
		c.M = max(0, (c.N-1)/3)
		if *m != "" {
			if c.M, err = strconv.Atoi(*m); err != nil {
				return parley.FlagErrorf("m", "%q: a whole number was expected", *m)
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
