package phaseking_test

import (
	"testing"

	"parley/internal/golden"
)

// Complete runs as text, from the first message to the verdict.
func TestStories(t *testing.T) {
	// The first king lies, and the second one repairs it.
	golden.Story(t, "testdata/lying-king.txt",
		"run", "phaseking", "-n", "4", "-m", "1", "--values", "0,0,1,1", "--faulty", "1=twofaced")
}
