package timestamp_test

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/timestamp"
	"parley/membership/group"
	"parley/parleytest"
	"parley/sim"
)

func TestSuite(t *testing.T) {
	for _, n := range []int{3, 4, 5} {
		t.Run("", func(t *testing.T) {
			c := timestamp.Config{Config: group.Config{N: n}}
			parleytest.Suite(t, timestamp.New(c), parleytest.Options{
				Sim: sim.Options{FIFO: true, Until: 40_000}, Seeds: 60,
			})
		})
	}
}

// Which flags and configurations are valid, and which flag the error names if they are not.
func TestConfig(t *testing.T) {
	p := timestamp.New(timestamp.Config{Config: group.Config{N: 3}})
	for line, wrong := range map[string]string{
		"": "", "-window 3 -hold 7": "", "-window -1": "window", "-hold -1": "hold", "-n 0": "n",
	} {
		fs := flag.NewFlagSet("", flag.PanicOnError)
		remake := p.Flags(fs)
		_ = fs.Parse(strings.Fields(line))
		_, err := remake(nil)
		if why, _ := errors.AsType[*parley.FlagError](err); (err == nil) != (wrong == "") || err != nil && why.Flag != wrong {
			t.Errorf("%s: %v", line, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a system without processes is made")
		}
	}()
	timestamp.New(timestamp.Config{})
}
