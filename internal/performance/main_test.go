package main

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// The page has a row with a time and a memory for each system, and no other.
func TestPageIsCurrent(t *testing.T) {
	text, err := part.Read("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range systems {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(s[0]+" | `"+s[1]) + "` \\| [0-9.]+ m?s \\| [0-9.]+ MiB \\|$")
		if !row.MatchString(text) {
			t.Errorf("%s has no row %s: run make performance", page, s)
		}
	}
	if rows := strings.Count(text, "| `parley"); rows != len(systems) {
		t.Errorf("got %d rows, want %d: run make performance", rows, len(systems))
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		850 * time.Microsecond: "0.85 ms", 28300 * time.Microsecond: "28.3 ms", 1210 * time.Millisecond: "1.21 s",
		494 * time.Millisecond: "494 ms",
	} {
		if got := short(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}
