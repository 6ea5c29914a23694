package consensus_test

import (
	"testing"

	"parley/internal/golden"
)

// Complete runs as text, from the first message to the verdict.
func TestStories(t *testing.T) {
	// Four sensors, one of them broken.
	golden.Story(t, "testdata/median.txt",
		"run", "consensus", "--rule", "median", "--values", "20,21,22,99", "--faulty", "4=random", "--alphabet", "0,21,99")
	// Byzantine agreement from consensus, with a source that lies.
	golden.Story(t, "testdata/agreement.txt",
		"run", "agreement", "--faulty", "1=twofaced")
}
