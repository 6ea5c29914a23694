package traitor_test

import (
	"testing"

	"github.com/spf13/pflag"

	"parley/catalog"
	"parley/internal/form"
	"parley/internal/input"
	"parley/internal/lab/traitor"
)

// Noting what a faulty process would honestly send does not change the run, whatever its behavior.
func TestHonestIsTheSameRun(t *testing.T) {
	for _, faulty := range []string{"random", "twofaced", "omit-send", "omit-receive", "twin", "silent", "crash@r1:2", "moves:1-3-0-1"} {
		p, err := input.Protocol(catalog.All(), "eig")
		if err != nil {
			t.Fatal(err)
		}
		fs := pflag.NewFlagSet("eig", pflag.ContinueOnError)
		f := form.New(p, fs)
		if err := fs.Parse([]string{"-n=7", "-m=2", "--faulty=1=" + faulty + ",5=random"}); err != nil {
			t.Fatal(err)
		}
		s, err := f.Setup()
		if err != nil {
			t.Fatal(err)
		}
		made, err := s.Simulate()
		if err != nil {
			t.Fatal(err)
		}
		rows, hash := traitor.Honest(s.Run)
		if hash != made.Log.Hash() {
			t.Errorf("%s: trace %s, want %s", faulty, hash, made.Log.Hash())
		}
		if got := rows[traitor.Sending{Round: 1, From: 4, To: 1}]; len(got) != 1 {
			t.Errorf("%s: P5 would send %q to P2", faulty, got)
		}
	}
}
