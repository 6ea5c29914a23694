package host

import (
	"testing"
	"unsafe"
)

// A letter counts with its memory, and a flood of letters leaves no unused memory behind.
func TestInboxAfterAFlood(t *testing.T) {
	if size := unsafe.Sizeof(letter{}); size > letterCost {
		t.Errorf("a letter takes %d bytes and counts for %d", size, letterCost)
	}
	var in inbox
	in.letters = make([]letter, 10*mostSpare)
	if letters, _ := in.take(); len(letters) != 10*mostSpare {
		t.Errorf("%d letters", len(letters))
	}
	in.take()
	if kept := max(cap(in.letters), cap(in.spare)); kept > mostSpare {
		t.Errorf("room for %d letters is kept", kept)
	}
}
