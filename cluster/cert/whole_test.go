package cert_test

import (
	"bytes"
	"testing"
	"time"

	"parley/cluster/cert"
)

// A cluster that is created at once has all of its parts, and is created only once.
func TestWhole(t *testing.T) {
	dir := t.TempDir()
	w := cert.Whole{Cluster: "lab", Nodes: []string{"a", "b"}, Clients: []string{"admin"}, Hosts: []string{"127.0.0.1"}, Valid: time.Hour}
	signers, err := w.Create(dir)
	if err != nil || len(signers) != 2 || bytes.Equal(signers[0], signers[1]) {
		t.Fatal(signers, err)
	}
	for i, name := range w.Nodes {
		if _, signer, err := cert.LoadNode(dir, name); err != nil || !signers[i].Equal(signer.Public()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := cert.LoadClient(dir, "admin"); err != nil {
		t.Error(err)
	}
	if _, err := w.Create(dir); err == nil {
		t.Error("made twice in one folder")
	}
	if _, err := (cert.Whole{Cluster: "lab", Nodes: []string{"a", ""}, Valid: time.Hour}).Create(t.TempDir()); err == nil {
		t.Error("made with a node without a name")
	}
}
