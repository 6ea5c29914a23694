package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cli/local"
)

// guideExits are the exit statuses of the commands of docs/cluster.md that do not exit with 0: the Byzantine node's
// clock is out of step.
var guideExits = map[string]int{"parley clock --dir bank": 1, "parley status --dir bank": 1}

// The commands in docs/cluster.md run in the order of the page.
func TestClusterGuide(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "cluster.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	var up *process
	commands := 0
	for line := range strings.Lines(string(b)) {
		if !strings.HasPrefix(line, "parley ") {
			continue
		}
		commands++
		line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
		line, file, _ := strings.Cut(line, " > ")
		args := words(line)[1:]
		switch {
		case line == "parley demo": // it has tests of its own
			continue
		case strings.HasPrefix(line, "parley cluster up "):
			if line != "parley cluster up -n 4 -m 1 --traitor 3=twofaced --dir bank" {
				t.Fatalf("the test makes another cluster than %s", line)
			}
			patient(t, local.Plan{N: 4, M: 1, Traitors: map[string]string{"3": "twofaced"}}, "bank")
			up, _ = clusterOf(t, args[2:]...)
			eventually(t, "the clocks are not in step", func() bool {
				_, _, status := run("clock", "--wait", "1m", "--at", "node1,node2,node4", "--dir", "bank")
				return status == 0
			})
			continue
		case line == "parley node --config node.yaml": // like the one before, and it does not end
			continue
		case strings.HasPrefix(line, "parley node --config "): // a node of the running cluster
			t.Chdir(filepath.Join(dir, "bank", "node1"))
		}
		out, stderr, status := run(args...)
		if status != guideExits[line] || out == "" {
			t.Errorf("%s: status %d, %s", line, status, stderr)
		}
		if file != "" {
			if err := os.WriteFile(strings.TrimSpace(file), []byte(out), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if commands < 15 {
		t.Errorf("only %d commands", commands)
	}
	if up == nil || up.status() != 0 {
		t.Error("the cluster did not end well")
	}
}

// Every command that the text of docs/cluster.md names, such as "parley cert", exists.
func TestClusterGuideNames(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "cluster.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range strings.Split(string(b), "`") {
		if i%2 == 0 || !strings.HasPrefix(part, "parley ") {
			continue
		}
		var args []string
		for _, word := range strings.Fields(part)[1:] {
			if word[0] == '-' {
				break
			}
			if strings.ToUpper(word) != word { // not a placeholder
				args = append(args, strings.TrimSuffix(word, ","))
			}
		}
		if out, stderr, status := run(append(args, "--help")...); status != 0 || !strings.Contains(out, strings.Join(args, " ")) {
			t.Errorf("%s: status %d, %s", part, status, stderr)
		}
	}
}
