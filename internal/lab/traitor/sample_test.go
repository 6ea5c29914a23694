package traitor_test

import (
	"strconv"
	"testing"

	"github.com/spf13/pflag"

	"parley/catalog"
	"parley/internal/form"
	"parley/internal/input"
	"parley/internal/lab/traitor"
)

// P2 broadcasts while the command of P1 is on its way, or after it has arrived: that depends on the seed. The flags that
// are returned make the run that breaks the property.
func TestSampleFindsRunsThatBreak(t *testing.T) {
	l := traitor.Level{
		Protocol: "bank-causal", Property: "replica consistency", Seeds: 200,
		Flags: map[string]string{"n": "2"},
		Dials: []traitor.Dial{{
			Flag:    "requests",
			Form:    "[{at: 1, when: 10, broadcast: deposit 1}, {at: 1, when: 2000, broadcast: deposit 2}, {at: 2, when: %, broadcast: interest 8}]",
			Choices: []traitor.Mark{{Value: "2850"}},
		}},
	}
	setup := func(flags map[string]string) (form.Setup, error) {
		p, err := input.Protocol(catalog.All(), l.Protocol)
		if err != nil {
			return form.Setup{}, err
		}
		f := form.New(p, pflag.NewFlagSet(p.Name, pflag.ContinueOnError))
		for name, value := range flags {
			if err := f.Set().Set(name, value); err != nil {
				return form.Setup{}, err
			}
		}
		return f.Setup()
	}
	got, err := traitor.Sample(t.Context(), l, 60, setup, nil)
	if err != nil || got.Outcome != traitor.Found || got.Runs < 2 || got.Flags["seed"] != strconv.FormatUint(got.Runs, 10) {
		t.Fatalf("%+v, %v", got, err)
	}
	made, err := setup(got.Flags)
	if err != nil {
		t.Fatal(err)
	}
	done, err := made.Simulate()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range done.Judge() {
		if v.Property.Name == l.Property && v.Broken == nil {
			t.Errorf("%v breaks nothing", got.Flags)
		}
	}
	l.Dials[0].Choices[0].Value = "5000"
	if got, err := traitor.Sample(t.Context(), l, 60, setup, nil); err != nil || got.Outcome != traitor.NotFound || got.Runs != 200 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := traitor.Sample(t.Context(), l, 0, setup, nil); err == nil {
		t.Error("a search of no seconds is allowed")
	}
}
