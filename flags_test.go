package parley_test

import (
	"errors"
	"flag"
	"fmt"
	"testing"

	"parley"
)

// Flags builds from the given values and the defaults. Building twice completes twice, from
// the same start, and returns the error of complete.
func TestFlags(t *testing.T) {
	type config struct{ N, M int }
	flags := parley.Flags(config{N: 4, M: 1}, func(fs *flag.FlagSet, c *config) func(*config, parley.Naming) error {
		fs.IntVar(&c.N, "n", c.N, "")
		fs.IntVar(&c.M, "m", -1, "")
		return func(c *config, _ parley.Naming) error {
			if c.M < 0 {
				c.M = c.N / 3
			}
			return parley.CheckN(c.N, 2)
		}
	}, func(c config) parley.Protocol { return parley.Protocol{N: c.N, M: c.M} })
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	build := flags(fs)
	for _, c := range []struct {
		n, want string
	}{
		{"4", "4 1 <nil>"}, {"9", "9 3 <nil>"}, {"7", "7 2 <nil>"},
		{"1", "0 0 -n: 1 processes: allowed are 2 to 256"},
	} {
		if err := fs.Set("n", c.n); err != nil {
			t.Fatal(err)
		}
		p, err := build(nil)
		if got := fmt.Sprint(p.N, p.M, err); got != c.want {
			t.Errorf("n = %s: got %s, want %s", c.n, got, c.want)
		}
	}
	if p, err := flags(flag.NewFlagSet("", flag.ContinueOnError))(nil); err != nil || p.N != 4 {
		t.Errorf("got n = %d, %v, want 4 again", p.N, err)
	}
	var wrong *parley.FlagError
	if err := parley.FlagErrorf("rounds", "%d: too many", 9); !errors.As(err, &wrong) ||
		err.Error() != "--rounds: 9: too many" || wrong.Flag != "rounds" {
		t.Errorf("got %v", err)
	}
}
