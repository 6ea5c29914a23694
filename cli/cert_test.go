package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The examples of the help texts run, one command after another, in an empty folder.
func TestCertExamples(t *testing.T) {
	for _, commands := range []string{"cert", "cert init,cert issue,cert client,cert show,cert revoke"} {
		t.Chdir(t.TempDir())
		for command := range strings.SplitSeq(commands, ",") {
			for _, line := range helpExamples(t, command) {
				if out, stderr, status := run(words(line)[1:]...); status != 0 || out == "" {
					t.Errorf("%s: status %d, %s", line, status, stderr)
				}
			}
		}
	}
}

// The JSON output has what a program needs: the file names and the values to pin.
func TestCertJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	into := func(to any, want int, args ...string) {
		t.Helper()
		out, stderr, status := run(append(args, "--json")...)
		if status != want || stderr != "" {
			t.Fatalf("%v: status %d, %s", args, status, stderr)
		}
		if err := json.Unmarshal([]byte(out), to); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	var made struct{ Cluster, Dir, Serial, Until string }
	into(&made, 0, "cert", "init", "--cluster", "bank", "--dir", "x")
	if made.Cluster != "bank" || made.Dir != "x" || len(made.Serial) != 32 || made.Until == "" {
		t.Errorf("%+v", made)
	}
	var issued struct {
		Certificates []struct{ Kind, Name, Serial, Certificate, Key, Signer string }
	}
	into(&issued, 0, "cert", "issue", "b", "a", "--dir", "x")
	nodes := issued.Certificates
	if len(nodes) != 2 || nodes[0].Name != "b" || nodes[0].Kind != "node" || nodes[1].Key != filepath.Join("x", "node-a.key") {
		t.Errorf("%+v", nodes)
	}
	pinned, err := os.ReadFile(filepath.Join("x", "signer-b.pub"))
	if err != nil || strings.TrimSpace(string(pinned)) != nodes[0].Signer {
		t.Errorf("%q, %v; it is %q", pinned, err, nodes[0].Signer)
	}
	var gone struct {
		Certificates []struct{ Kind, Name, Serial, Revoked string }
	}
	into(&gone, 0, "cert", "revoke", "a", "--dir", "x")
	revoked := gone.Certificates
	if len(revoked) != 1 || revoked[0].Serial != nodes[1].Serial || revoked[0].Revoked == "" {
		t.Errorf("%+v", revoked)
	}
	var list struct {
		Certificates []struct{ Kind, Name, State, Rights string }
	}
	into(&list, 0, "cert", "show", "--dir", "x")
	listed := list.Certificates
	if len(listed) != 2 || listed[0].State != "valid" || listed[1].State != "revoked" {
		t.Errorf("%+v", listed)
	}
	var files struct {
		Found []struct{ File, What, Name, Problem string }
	}
	into(&files, 1, "cert", "show", nodes[0].Certificate, nodes[1].Certificate)
	shown := files.Found
	if len(shown) != 2 || shown[0].Problem != "" || shown[1].Name != "parley://bank/node/a" ||
		!strings.HasPrefix(shown[1].Problem, "revoked: ") {
		t.Errorf("%+v", shown)
	}
}
