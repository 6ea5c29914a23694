package om_test

import (
	"testing"

	"parley/internal/golden"
)

// Complete runs as text, from the first message to the verdict.
func TestStories(t *testing.T) {
	// Lecture, OM(m), An Example: p2 lies to p3.
	golden.Story(t, "testdata/lecture-faulty-lieutenant.txt",
		"run", "om", "-n", "4", "-m", "1", "--names", "lecture", "--faulty", "2=twofaced")
	// Lecture, Impossibility Results, case one: three processes, and p2 lies.
	golden.Story(t, "testdata/impossible.txt",
		"run", "om", "-n", "3", "-m", "1", "--names", "lecture", "--beyond-bound", "--faulty", "2=flip")
}
