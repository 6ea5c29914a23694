package main

import (
	"bytes"
	"testing"
)

func TestSweep(t *testing.T) {
	var out bytes.Buffer
	if err := sweep(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	want := `four processes: 5000 runs, validity held in 5000
three processes: seed 1 breaks validity: process 1 decided 0, but the correct source sent 1
the smallest such run has 38 events and 1 liar
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
