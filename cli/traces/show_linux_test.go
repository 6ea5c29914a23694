package traces

import "testing"

// Whether a file is the trace of a node is known after a limited part of it, also if it has no end.
func TestEndlessFile(t *testing.T) {
	if ofNode("/dev/zero") {
		t.Error("it is the trace of a node")
	}
}
