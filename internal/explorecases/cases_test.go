package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const list = "../../explore/testdata/cases.txt"

// TestShort searches the short cases of the list and compares the results with the list.
func TestShort(t *testing.T) {
	cases, err := read(list)
	if err != nil {
		t.Fatal(err)
	}
	c := choice{short: true, workers: 2}
	var progress bytes.Buffer
	if err := c.run(context.Background(), cases, io.Discard, &progress); err != nil {
		t.Errorf("%v:\n%s", err, &progress)
	}
}

// TestList reads the whole list: every case can be searched and has its numbers, and the folders whose seeded bugs it
// tries exist.
func TestList(t *testing.T) {
	cases, err := read(list)
	if err != nil {
		t.Fatal(err)
	}
	states := uint64(0)
	for i := range cases {
		x := &cases[i]
		if _, err := x.options(); err != nil {
			t.Error(err)
		}
		if (x.want.states == 0) == (x.want.property == "") {
			t.Errorf("%s: either something breaks or there is a number of states", x.name)
		}
		for _, folder := range x.of {
			if _, err := os.Stat(filepath.Join("..", "..", folder, "testdata", "mutants.txt")); err != nil {
				t.Errorf("%s: %v", x.name, err)
			}
		}
		states += x.want.states
	}
	if states < 3_000_000 {
		t.Errorf("the cases have %d states", states)
	}
}

// TestDocument compares the tables of the document with the lists.
func TestDocument(t *testing.T) {
	written, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "explored.md"))
	if err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(t.TempDir(), "explored.md")
	if err := os.WriteFile(made, written, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(made, list); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(made); err != nil || !bytes.Equal(again, written) {
		t.Errorf("%v: go run ./internal/explorecases -document docs/reference/explored.md makes another one of the lists", err)
	}
}

// TestDiffers checks that a wrong list is detected and corrected.
func TestDiffers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cases.txt")
	text := "case wrong\nprotocol diffusion\nask P1 cast a\nstates 7\nends 1\nshort\n\n" +
		"case found\nprotocol threephase\nask P1 propose yes\nask P2 propose yes\nask P3 propose yes\n" +
		"model losses=3 in-time\nonly atomicity\nbeyond\n\ncase other\nprotocol diffusion\nask P1 cast a\nstates 1\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	try := func(only string) ([]exploredCase, error) {
		cases, err := read(path)
		if err != nil {
			t.Fatal(err)
		}
		c := choice{only: only, workers: 1}
		return cases, c.run(context.Background(), cases, io.Discard, io.Discard)
	}
	for _, only := range []string{"wrong", "found"} {
		cases, err := try(only)
		if !errors.Is(err, errDiffers) {
			t.Fatalf("%s: %v", only, err)
		}
		if err := rewrite(path, cases); err != nil {
			t.Fatal(err)
		}
		if _, err := try(only); err != nil {
			t.Errorf("%s, written anew: %v", only, err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(got), "breaks atomicity in 15\n") ||
		!strings.HasSuffix(string(got), "states 1\n") {
		t.Errorf("%s, %v", got, err)
	}
}

// TestUnreadable tries invalid lists.
func TestUnreadable(t *testing.T) {
	for text, want := range map[string]string{
		"protocol eig":                     ":1: a line that belongs to no case",
		"case a\n\ncase a":                 ":3: there is a case a already",
		"case a\nprotokol eig":             ":2: protokol eig: no such word",
		"case a\nask P0 cast a":            `"P0" is no process`,
		"case a\nask P1 sing a":            "nobody can be asked to sing",
		"case a\nliars 1 loud":             "behavior \"loud\"",
		"case a\nliars P0 any":             `liars P0 any: "P0" is no process`,
		"case a\ndepth deep":               "invalid syntax",
		"case a\nprotocol eig n=4 fast":    "settings of another protocol",
		"case a\nprotocol eig\nonly peace": `eig has no property "peace"`,
		"case a\nprotocol ring":            "no such protocol",
		"case a\nprotocol eig\nmodel rain": `"rain" is no part of a model`,
		"case a\nprotocol eig\nnever ever": "column 1: a process",
	} {
		path := filepath.Join(t.TempDir(), "cases.txt")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cases, err := read(path)
		for i := range cases {
			if err == nil {
				_, err = cases[i].options()
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, and %q is expected", text, err, want)
		}
	}
}

// The page's last run had all cases.
func TestPageIsCurrent(t *testing.T) {
	text, err := part.Read("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := read("../../" + own)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%d cases, ", len(cases)); !strings.Contains(text, want) {
		t.Errorf("%s has no %q: run make explore", page, want)
	}
}
