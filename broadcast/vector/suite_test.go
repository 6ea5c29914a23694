package vector_test

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/vector"
	"parley/membership/group"
	"parley/parleytest"
	"parley/sim"
)

var levels = []vector.Level{vector.Reliable, vector.Uniform, vector.FIFO, vector.Causal}

func TestSuite(t *testing.T) {
	for _, level := range levels {
		t.Run(level.String(), func(t *testing.T) {
			for _, n := range []int{3, 5} {
				c := vector.Config{Config: group.Config{N: n}, Level: level}
				parleytest.Suite(t, vector.New(c), parleytest.Options{
					Sim: sim.Options{FIFO: true, Until: 40_000}, Seeds: 25, Beyond: beyond(level),
				})
			}
		})
	}
}

// beyond is a crash of half of the members: no majority is left to change the view, and the rest does not
// receive what one of the others has.
func beyond(level vector.Level) []parleytest.Beyond {
	return []parleytest.Beyond{{Protocol: vector.New(vector.Config{Config: group.Config{N: 4}, Level: level}), Faulty: 2}}
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, vector.New(vector.Config{Config: group.Config{N: 3}}), parleytest.Options{
		Sim: sim.Options{FIFO: true},
	})
}

// Which flags and configurations are valid, and which flag the error names if they are not.
func TestConfig(t *testing.T) {
	p := vector.New(vector.Config{Config: group.Config{N: 3}})
	for line, wrong := range map[string]string{
		"": "", "-level fifo -window 3 -hold 7": "", "-level total": "level", "-window 0": "window", "-hold -1": "hold", "-n 0": "n",
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
		if what := fmt.Sprint(recover(), vector.Level(9)); what != "vector: --level: there is no level 9Level(9)" {
			t.Errorf("it panics with %s", what)
		}
	}()
	vector.New(vector.Config{Level: 9})
}
