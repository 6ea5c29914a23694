package interactive_test

import (
	"testing"

	"parley/internal/golden"
)

// Complete runs as text, from the first message to the verdict.
func TestStories(t *testing.T) {
	// The vector of all, over OM(1), with one faulty process.
	golden.Story(t, "testdata/vector.txt",
		"run", "interactive", "--over", "om", "--values", "1,0,1,1", "--faulty", "4=twofaced")
}
