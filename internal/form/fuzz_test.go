package form_test

import (
	"testing"

	"github.com/spf13/pflag"

	"parley/agreement/eig"
	"parley/internal/form"
	"parley/lockstep"
)

// No scenario file panics, and applying one only sets flags.
func FuzzScenario(f *testing.F) {
	for _, text := range []string{
		"protocol: eig\nn: 7\nm: 2\nvalues: [0]\nfaulty: {1: twofaced, 5: flip}\n",
		"protocol: eig\nfaulty:\n  3: flip\n  6: crash@r1:2\nnames: lecture\nbeyond-bound: true\n",
		"protocol: eig\nshow: [messages, tree]\ndefault: null\nsource: P1\n",
		"- 1\n", "n: &a 1\nm: *a\n", "a: {b: {c: d}}\n", "? x\n: y\n", "n: 1\nn: 2\n", "---\nn: 1\n---\nm: 1\n", "\xff", "",
	} {
		f.Add(text)
	}
	p := eig.New(eig.Config{N: 4, M: 1, Default: []byte("0")}, lockstep.Simulated)
	f.Fuzz(func(_ *testing.T, text string) {
		s, err := form.ParseScenario("fuzz.yaml", []byte(text))
		if err != nil {
			return
		}
		flags := form.New(p, pflag.NewFlagSet("eig", pflag.ContinueOnError))
		if s.Apply(flags) == nil {
			_, _ = flags.Setup()
		}
	})
}
