package sm_test

import (
	"testing"

	"parley/internal/golden"
)

// Runs told from the first message to the verdict.
func TestStories(t *testing.T) {
	// A source that signs two values, and a fellow who passes on what it likes.
	golden.Story(t, "testdata/two-faced-source.txt",
		"run", "sm", "-n", "4", "-m", "2", "--names", "lecture", "--faulty", "0=twofaced,1=random")
}
