package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// While a cluster runs, doctor measures all other nodes, both directly and through a node, and proposes round lengths
// with reasons. Its example runs.
func TestDoctor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	_, up := clusterOf(t, "-n", "4", "--dir", dir)
	t.Chdir(filepath.Join(dir, "node1"))
	for _, how := range [][]string{{"--for", "1s"}, {"--client", "admin"}} {
		args := append([]string{"doctor", "--round", "--json"}, how...)
		var got struct {
			Round, Delta string
			M            int
			Reasons      []string
			Peers        []struct {
				Name, Median string
				Samples      int
			}
		}
		out, stderr, status := run(args...)
		if err := json.Unmarshal([]byte(out), &got); err != nil || status > 1 {
			t.Fatalf("%v: status %d, %s, %v", how, status, stderr, err)
		}
		checkJSON(t, args, out)
		round, err := time.ParseDuration(got.Round)
		if err != nil || round < time.Millisecond || got.M != 1 || len(got.Reasons) < 3 || len(got.Peers) != 3 {
			t.Errorf("%v: %+v", how, got)
		}
		for _, p := range got.Peers {
			if p.Samples < 1 || p.Median == "" {
				t.Errorf("%v: of %s nothing is known: %+v", how, p.Name, got)
			}
		}
	}
	line := helpExamples(t, "doctor")[0]
	if out, stderr, status := run(words(line)[1:]...); status > 1 || !strings.Contains(out, "\nproposed:\nround: ") {
		t.Errorf("%s: status %d, %s", line, status, stderr)
	}
	if _, err := os.Stat("node.yaml"); err != nil {
		t.Error(err)
	}
	failover(t, dir, up)
	// The report says why a node was not reached.
	out, _, status := run("doctor", "--round", "--for", "1s")
	if status != 1 || !strings.Contains(out, "node4           not reached: dial tcp ") {
		t.Errorf("status %d: %s", status, out)
	}
}
