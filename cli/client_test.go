package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// clientCommands are those that call a cluster, in an order in which their examples work:
// what one reads, one before it has written.
var clientCommands = []string{
	"agree", "cast", "listen", "log put", "log get", "log add", "log delete", "log do", "log query",
	"clock", "commit", "status", "cluster expel", "cluster drain", "cluster leave",
}

// The examples of the commands that call a cluster work on one of real processes, of which
// one lies.
func TestClientExamples(t *testing.T) {
	t.Chdir(t.TempDir())
	p, up := clusterOf(t, "-n", "4", "--traitor", "4=twofaced", "--dir", "bank")
	eventually(t, "the clocks are not in step", func() bool {
		_, _, status := run("clock", "--at", "node1,node2,node3", "--dir", "bank")
		return status == 0
	})
	for _, command := range clientCommands {
		help, _, status := run(append(strings.Fields(command), "--help")...)
		_, after, _ := strings.Cut(help, "Examples:\n")
		lines := slices.Collect(strings.Lines(after))
		if status != 0 || len(lines) == 0 || !strings.HasPrefix(lines[0], "  parley "+command) {
			t.Errorf("%s --help: status %d, examples %q", command, status, lines)
		}
		for _, line := range lines {
			if !strings.HasPrefix(line, "  parley ") {
				break
			}
			line = strings.TrimSpace(line)
			if command == "cluster drain" || command == "cluster leave" { // node3 is out already
				line = strings.ReplaceAll(line, "node3", map[string]string{"cluster drain": "node2", "cluster leave": "node1"}[command])
			}
			out, stderr, status := run(words(line)[1:]...)
			if want := clientExits[line]; status != want || out == "" {
				t.Errorf("%s: status %d, not %d\n%s%s", line, status, want, out, stderr)
			}
			if text := clientPrints[line]; !strings.Contains(out, text) {
				t.Errorf("%s: %q has no %q", line, out, text)
			}
			if strings.Contains(line, "--json") && !json.Valid([]byte(strings.SplitN(out, "\n", 2)[0])) {
				t.Errorf("%s: no JSON: %s", line, out)
			}
		}
	}
	for _, n := range up.Nodes[:2] {
		eventually(t, n.Name+" has not ended", func() bool { return !listens(n.Address) })
	}
	p.end(os.Interrupt) // it has told of nodes that ended, so that its status is 1
}

// clientPrints is what examples print, among other things.
var clientPrints = map[string]string{
	"parley agree attack --dir bank": `decides "attack"`,
	"parley agree --name temperature --rule median node1=20 node2=21 node4=99 --dir bank": `node2  node1 "20", node2 "21"`,
	"parley listen total --from 1 --count 1 --dir bank":                                   "node1  first, and the same everywhere\n",
	"parley log get table greeting --dir bank":                                            "hello\n",
	"parley log add table visits 1 --dir bank":                                            "1\n",
	"parley log query bank balance --dir bank":                                            "1150\n",
	"parley cluster expel node3 --dir bank":                                               "node1 has expelled node3\n",
	"parley status --dir bank":                                                            "cluster local, m = 1\n",
}

// clientExits are the statuses of examples that are not 0.
var clientExits = map[string]int{
	"parley clock --dir bank":        1, // the one that lies is not in step
	"parley clock --json --dir bank": 1,
	"parley status --dir bank":       1,
	// Nodes without a participant vote no.
	"parley commit transfer-1 'node1=withdraw 100' 'node2=deposit 100' --dir bank": 1,
}

// What a client is told that asks for what can not be.
func TestClientErrors(t *testing.T) {
	t.Setenv("PARLEY_DIR", "")
	empty := t.TempDir()
	for line, want := range map[string]string{
		"agree x":                              "--dir: which cluster is meant?",
		"agree x --dir " + empty:               "the folder of a cluster was expected",
		"agree x --at a":                       `--at: "a": HOST:PORT was expected`,
		"agree x --at a:1":                     "--certificates: with --at and without --dir it has to be given",
		"agree x --at a:1 --certificates none": "--as: ",
		"agree x --algorithm quick":            `--algorithm: "quick": allowed are eig, om, sm and phaseking`,
		"agree x --rule median":                "--rule: it is for --name",
		"agree x y --dir " + empty:             "one VALUE was expected, and 2 are given",
		"agree x --name n --rule mean":         `--rule: "mean": allowed are majority, median, minimum and maximum`,
		"cast g x --level best":                `--level: "best": allowed are`,
		"log put t k":                          "TABLE and KEY and VALUE were expected, and 2 are given",
		"log":                                  "nothing was given: allowed are add, delete, do, get, put, query",
		"status --timeout 0s --dir " + empty:   "--timeout: 0s: a time above 0 was expected",
		"commit t node1":                       "NODE=WHAT was expected, each node once",
		"cluster leave a --at b":               "--at: a is asked itself",
	} {
		_, stderr, status := run(words("parley " + line)[1:]...)
		if status != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %q, want %q", line, status, stderr, want)
		}
	}
	if _, err := os.Stat(filepath.Join(empty, "node1")); err == nil {
		t.Error("something was made in the folder")
	}
}
