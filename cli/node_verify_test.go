package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley"
	"parley/cluster"
	"parley/cluster/store"
)

// The records of a stopped node are checked: whole, in use, damaged, or not there.
func TestNodeVerify(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(filepath.Join(dir, "records"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, _, _, err := s.Open("group orders")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(b.Append(parley.Record{Body: []byte("what was acknowledged")})); err != nil {
		t.Fatal(err)
	}
	verify := func(args ...string) (stdout, stderr string, status int) {
		return run(append([]string{"node", "verify", "--dir"}, args...)...)
	}
	if _, stderr, status := verify(dir); status != 2 || !strings.Contains(stderr, "stop the node first") {
		t.Errorf("a node that runs: status %d, %s", status, stderr)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, status := verify(dir); status != 0 || !strings.HasPrefix(stdout, "whole: up to record 1 of store ") {
		t.Errorf("whole: status %d, %s%s", status, stdout, stderr)
	}
	if _, stderr, status := verify(t.TempDir()); status != 2 || !strings.Contains(stderr, "has no records") {
		t.Errorf("nothing: status %d, %s", status, stderr)
	}
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, cluster.MarkName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if stdout, _, status := verify(empty); status != 1 || !strings.Contains(stdout, "all records are missing") ||
		!strings.Contains(stdout, "--rejoin") {
		t.Errorf("records removed: status %d, %s", status, stdout)
	}
	log := filepath.Join(dir, "records", "log-00000001")
	bytes, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	bytes[len(bytes)-1] ^= 1
	if err := os.WriteFile(log, bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, _, status := verify(dir)
	if status != 1 || !strings.HasPrefix(stdout, "DAMAGED: "+log+", byte 64: ") || !strings.Contains(stdout, "--rejoin") {
		t.Errorf("damaged: status %d, %s", status, stdout)
	}
	var found struct {
		Damage struct {
			File   string
			Offset int64
		}
	}
	stdout, _, status = verify(dir, "--json")
	checkJSON(t, []string{"node", "verify"}, stdout)
	if err := json.Unmarshal([]byte(stdout), &found); err != nil || status != 1 || found.Damage.File != log || found.Damage.Offset != 64 {
		t.Errorf("damaged: status %d, %s", status, stdout)
	}
}
