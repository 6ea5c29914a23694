package sm

import (
	"errors"
	"flag"
	"fmt"
	"slices"

	"parley"
	"parley/agreement/problem"
)

// Relay says which values a lieutenant keeps and relays.
type Relay uint8

// The rules of relaying.
const (
	// RelayAll is the lecture's rule: a lieutenant keeps and relays every value. A faulty source can make V, and the
	// work, arbitrarily large. Only the size of each value is bounded.
	RelayAll Relay = iota
	// RelayTwo keeps and relays the first two values: with two values the decision is the default, whatever further
	// values arrive. In a run, no process sends more than two chains to another process. A process verifies at most
	// two good chains in a run, and one bad chain from each sender in a round.
	RelayTwo
)

var relays = [...]string{"all", "two"}

func (r Relay) String() string { return relays[r] }

// Choice is the function choice(V) that makes the decision. Any function works, as long
// as it is the same at all processes.
type Choice uint8

// The choices.
const (
	Only    Choice = iota // the only value in V, otherwise the default
	Minimum               // the least value in V, otherwise the default
)

var choices = [...]string{"only", "minimum"}

func (c Choice) String() string { return choices[c] }

// Config configures one instance.
type Config struct {
	problem.Instance
	Relay  Relay
	Choice Choice
	// Session is part of what is signed. It identifies the instance, for example by the cluster, its view, and a
	// number. A signature from one session does not count in another session. Two instances with the same keys must
	// never have the same session and the same source, not even after a crash. Otherwise a correct process would have
	// signed two values in one session.
	Session []byte
}

// Check returns an error if an instance is invalid. Rounds and New do not check, so that
// tests can show what goes wrong.
func (c Config) Check() error {
	if err := c.Instance.Check(); err != nil {
		return err
	}
	switch {
	case int(c.Relay) >= len(relays):
		return parley.FlagErrorf("relay", "there is no rule number %d", c.Relay)
	case int(c.Choice) >= len(choices):
		return parley.FlagErrorf("choice", "there is no choice number %d", c.Choice)
	case c.Relay == RelayTwo && c.Choice != Only:
		return &parley.FlagError{Flag: "relay", Err: errCap}
	}
	return nil
}

var errCap = errors.New("two goes with --choice only: of three values processes need not keep the same two, " +
	"and then the least of those is not the same")

func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	instance := problem.Flags(fs, &c.Instance, func(n int) int { return n - 2 })
	rounds := problem.RoundsFlag(fs, &c.Instance)
	relay := fs.String("relay", c.Relay.String(), "which values a process relays: `all|two`; two means "+
		"that it relays only the first two")
	choice := fs.String("choice", c.Choice.String(), "what a process decides if it has received several "+
		"values: `only|minimum`; \"only\" means the default value, \"minimum\" means the smallest of "+
		"these values")
	return func(c *Config, naming parley.Naming) error {
		var errs [3]error
		errs[0] = instance(&c.Instance, naming)
		c.Relay, errs[1] = pick[Relay]("relay", *relay, relays[:])
		c.Choice, errs[2] = pick[Choice]("choice", *choice, choices[:])
		for _, err := range append(errs[:], rounds(&c.Instance), c.Check()) {
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// pick reads the value of a flag that has two.
func pick[T ~uint8](name, text string, allowed []string) (T, error) {
	i := slices.Index(allowed, text)
	if i < 0 {
		err := fmt.Errorf("%q: allowed are %s and %s", text, allowed[0], allowed[1])
		return 0, &parley.FlagError{Flag: name, Err: err}
	}
	return T(i), nil
}

func promises(c Config) func(parley.RunConditions) []parley.Promise {
	return func(a parley.RunConditions) []parley.Promise {
		out := problem.Promises(a, c.Bounded(problem.SignedBound),
			"with signed messages m+1 rounds suffice for any m (lecture; Lamport, Shostak, Pease 1982, theorem 2)")
		for i := range out {
			if c.Relay == RelayTwo && c.Choice != Only && out[i].Property == problem.Agreement {
				out[i].Holds, out[i].Because = false, errCap.Error()
			}
		}
		return parley.Proved(out, proofs)
	}
}
