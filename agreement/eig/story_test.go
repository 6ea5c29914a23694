package eig_test

import (
	"testing"

	"parley/internal/golden"
)

// Complete runs as text, from the first message to the verdict.
func TestStories(t *testing.T) {
	// Two lieutenants who lie, and a loyal General.
	golden.Story(t, "testdata/two-traitors.txt",
		"run", "eig", "-n", "7", "-m", "2", "--faulty", "3=flip,6=twofaced")
	// Values are texts; a General who lies to one half, and the default decides.
	golden.Story(t, "testdata/three-values.txt",
		"run", "eig", "-n", "5", "-m", "1", "--source", "2", "--values", "attack",
		"--default", "retreat", "--alphabet", "attack,retreat,wait", "--faulty", "2=twofaced")
}
