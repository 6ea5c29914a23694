package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/golden"
)

// explore finds and prints the lecture's impossibility proof, with the lecture's names, and with the article's names
// for the article's protocol.
func TestLecturesProof(t *testing.T) {
	var out strings.Builder
	for _, args := range [][]string{
		{"om", "--names", "lecture"},
		{"eig"},
	} {
		args = append([]string{"explore", args[0], "-n", "3", "-m", "1", "--beyond-bound", "--indistinguishable", "--width", "90"}, args[1:]...)
		stdout, stderr, status := run(args...)
		if status != 1 || stderr != "" {
			t.Fatalf("%q: status %d, %s", args, status, stderr)
		}
		out.WriteString("$ parley " + strings.Join(args, " ") + "\n" + stdout + "\n")
	}
	golden.Compare(t, "testdata/indistinguishable.txt", []byte(out.String()))
}

// With m rounds instead of m+1 there is an indistinguishability argument for oral and for signed messages, and a
// longer one with two liars. Within the bound there is none, and the exit status says so.
func TestIndistinguishable(t *testing.T) {
	for _, c := range []struct {
		args   string
		cases  int
		says   string // the last line of the output
		status int
	}{
		{"sm -n 3 -m 0 --liars 1 --beyond-bound", 3, "agreement in case two", 1},
		{"om -n 4 -m 0 --liars 1 --beyond-bound", 3, "agreement in case two", 1},
		{"sm -n 4 -m 1 --liars 2 --beyond-bound", 5, "agreement in one of the cases two to four", 1},
		{"om -n 7 -m 1 --liars 2 --beyond-bound", 4, "agreement in case two or three", 1},
		{"consensus -n 3 -m 1 --beyond-bound", 3, "agreement in case two", 1},
		{"eig -n 4 -m 1", 0, "exhausted: there is no such argument", 0},
		{"sm -n 3 -m 1", 0, "exhausted: there is no such argument", 0},
		{"eig -n 3 -m 1 --beyond-bound --states 9", 0, "out of views", 3},
	} {
		file := filepath.Join(t.TempDir(), "pairs.svg")
		args := append([]string{"explore"}, strings.Fields(c.args)...)
		stdout, stderr, status := run(append(args, "--indistinguishable", "--json", "--svg", file)...)
		if status != c.status {
			t.Fatalf("%s: status %d, %s", c.args, status, stderr)
		}
		var o struct {
			Outcome, Verdict string
			Cases            []struct {
				Title, About     string
				Faulty, Messages []string
				Decides          map[string]string
			}
			Pairs []struct {
				Cases, Must [2]string
				Sees        []string
			}
		}
		if err := json.Unmarshal([]byte(stdout), &o); err != nil {
			t.Fatalf("%s: %v", c.args, err)
		}
		if !strings.Contains(o.Verdict, c.says) || len(o.Cases) != c.cases || len(o.Pairs) != max(c.cases-1, 0) {
			t.Errorf("%s: %s, %d cases and %d pairs, %s", c.args, o.Outcome, len(o.Cases), len(o.Pairs), o.Verdict)
		}
		for i, one := range o.Pairs {
			if one.Cases != [2]string{o.Cases[i].Title, o.Cases[i+1].Title} || len(one.Sees) == 0 || slices.Contains(one.Must[:], "") {
				t.Errorf("%s, pair %d: %+v", c.args, i, one)
			}
		}
		if picture, err := os.ReadFile(file); (err == nil) != (c.cases > 0) || err == nil && !strings.Contains(string(picture), "</svg>") {
			t.Errorf("%s: a picture of %d bytes, %v", c.args, len(picture), err)
		}
	}
}
