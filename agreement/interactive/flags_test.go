package interactive_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"parley"
	"parley/agreement/interactive"
	"parley/lockstep"
)

// remake makes the protocol that the flags describe.
func remake(p parley.Protocol, args ...string) (parley.Protocol, error) {
	fs := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	of := p.Flags(fs)
	if err := fs.Parse(args); err != nil {
		return parley.Protocol{}, err
	}
	return of(func(text string) (parley.ID, error) {
		id, err := strconv.ParseUint(text, 10, 8)
		return parley.ID(id), err
	})
}

// The default of m follows from the chosen agreement.
func TestFlags(t *testing.T) {
	p := interactive.New(over(t, "om", instance(4, 1)), lockstep.Simulated)
	for _, test := range []struct {
		args string
		want string
	}{
		{"", "4 1 each by om"},
		{"-n 7", "7 2 each by om"},
		{"-n 7 -over sm", "7 5 each by sm"},
		{"-over phaseking -n 10 -m 2", "10 2 each by phaseking"},
		{"-over eig -n 3", "3 0 each by eig"},
		{"-over nobody", "--over: unknown agreement \"nobody\": allowed are eig, om, sm, phaseking"},
		{"-n 1", "-n: 1 processes: allowed are 2 to 256"},
	} {
		made, err := remake(p, strings.Fields(test.args)...)
		got := fmt.Sprint(err)
		if err == nil {
			_, rest, _ := strings.Cut(made.Title, ", ")
			got = fmt.Sprint(made.N, made.M, " ", rest)
		}
		if got != test.want {
			t.Errorf("%q makes %s, want %s", test.args, got, test.want)
		}
	}
	if _, err := remake(p, "-over", "x"); !errors.As(err, new(*parley.FlagError)) {
		t.Errorf("%v names no flag", err)
	}
}
