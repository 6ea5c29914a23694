package sm_test

import (
	"testing"

	"parley/internal/golden"
)

// Complete runs as text, from the first message to the verdict.
func TestStories(t *testing.T) {
	// A source that signs two values, and a faulty lieutenant that relays as it likes.
	golden.Story(t, "testdata/two-faced-source.txt",
		"run", "sm", "-n", "4", "-m", "2", "--names", "lecture", "--faulty", "0=twofaced,1=random")
}
