package main

import (
	"bytes"
	"testing"

	"parley/parleytest"
)

// The suite runs the checks for every protocol: crashes, restarts, invalid messages.
func TestSuite(t *testing.T) { parleytest.Suite(t, flood(4, 1, 2)) }

func TestSearch(t *testing.T) {
	var out bytes.Buffer
	if err := search(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	want := `rounds: 1; states: 7901; found
  agreement is broken after 18 steps: process 1 decided 1 and process 2 decided ""
rounds: 2; states: 16185; exhausted
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
