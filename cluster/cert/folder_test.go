package cert_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/cluster/cert"
)

// newFolder creates the folder of an authority with node a and client alice.
func newFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "certs")
	_, err := cert.Create(dir, "bank", 10*year)
	fatal(t, err)
	update(t, dir, func(a *cert.Authority) error {
		node, err := a.IssueNode("a", []string{"localhost"}, 24*time.Hour)
		fatal(t, err)
		fatal(t, node.Save(dir, false))
		client, err := a.IssueClient("alice", cert.Write, 24*time.Hour)
		fatal(t, err)
		return client.Save(dir, false)
	})
	return dir
}

func update(t *testing.T, dir string, do func(*cert.Authority) error) {
	t.Helper()
	fatal(t, cert.Update(dir, do))
}

func read(t *testing.T, parts ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(parts...))
	fatal(t, err)
	return b
}

// Processes that load files written by another process recognize each other.
func TestFolder(t *testing.T) {
	dir := newFolder(t)
	trust, err := cert.LoadTrust(dir, nil)
	fatal(t, err)
	a, signer, err := cert.LoadNode(dir, "a")
	fatal(t, err)
	alice, err := cert.LoadClient(dir, "alice")
	fatal(t, err)
	p := connect(t, trust.Accept(a, cert.Client), trust.Dial(alice, a.Identity()))
	defer p.close()
	accepted(t, p)
	if want := (cert.Identity{Cluster: "bank", Kind: cert.Client, Name: "alice", Rights: cert.Write}); alice.Identity() != want {
		t.Errorf("%v; it is %v", alice.Identity(), want)
	}
	public, err := cert.ParseSigner(strings.TrimSpace(string(read(t, dir, "signer-a.pub"))))
	fatal(t, err)
	if !ed25519.Verify(public, []byte("x"), ed25519.Sign(signer, []byte("x"))) {
		t.Error("the two halves of the signer do not fit")
	}
	// Keys are readable by their owner only; public files are text.
	entries, err := os.ReadDir(dir)
	fatal(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
		info, err := e.Info()
		fatal(t, err)
		want := fs.FileMode(0o644)
		if filepath.Ext(e.Name()) == ".key" {
			want = 0o600
		}
		if info.Mode().Perm()&^want != 0 {
			t.Errorf("%s has mode %o", e.Name(), info.Mode().Perm())
		}
	}
	const want = "ca.key ca.pem client-alice.key client-alice.pem crl.pem index.json node-a.key node-a.pem signer-a.key signer-a.pub"
	if got := strings.Join(all, " "); got != want {
		t.Errorf("%s; there are %s", got, want)
	}
	var records []cert.Record
	fatal(t, json.Unmarshal(read(t, dir, "index.json"), &records))
	if len(records) != 2 || records[0].Name != "a" || records[1].Rights != cert.Write || records[0].Serial != cert.Serial(a.Certificate()) {
		t.Errorf("%+v", records)
	}
	// The signer is not the key of the certificate.
	if bytes.Contains(read(t, dir, "signer-a.key"), read(t, dir, "node-a.key")) || signer.Public() == a.Certificate().PublicKey {
		t.Error("one key for both")
	}
}

// Nothing is overwritten: neither an authority, nor a certificate unless it is renewed, nor a signer ever.
func TestNothingIsOverwritten(t *testing.T) {
	dir := newFolder(t)
	files := make(map[string][]byte)
	for _, f := range []string{"ca.key", "ca.pem", "node-a.key", "node-a.pem", "signer-a.key", "signer-a.pub"} {
		files[f] = read(t, dir, f)
	}
	if _, err := cert.Create(dir, "bank", year); err == nil || !strings.Contains(err.Error(), "ca.key is there already") {
		t.Errorf("a second authority: %v", err)
	}
	fatal(t, os.Rename(filepath.Join(dir, "ca.key"), filepath.Join(dir, "away")))
	if _, err := cert.Create(dir, "bank", year); err == nil || !strings.Contains(err.Error(), "ca.pem is there already") {
		t.Errorf("an authority without its key: %v", err)
	}
	fatal(t, os.Rename(filepath.Join(dir, "away"), filepath.Join(dir, "ca.key")))
	update(t, dir, func(a *cert.Authority) error {
		again, err := a.IssueNode("a", nil, time.Hour)
		fatal(t, err)
		if err := again.Save(dir, false); err == nil || !strings.Contains(err.Error(), "is there already") {
			t.Errorf("a second certificate: %v", err)
		}
		for f, b := range files {
			if !bytes.Equal(read(t, dir, f), b) {
				t.Errorf("%s was overwritten", f)
			}
		}
		return again.Save(dir, true)
	})
	for f, b := range files {
		if same, want := bytes.Equal(read(t, dir, f), b), !strings.HasPrefix(f, "node"); same != want {
			t.Errorf("after the renewal %s is the same: %t", f, same)
		}
	}
}

// A running node adopts its renewed certificate and the authority's new list.
func TestReload(t *testing.T) {
	dir := newFolder(t)
	trust, err := cert.LoadTrust(dir, nil)
	fatal(t, err)
	a, _, err := cert.LoadNode(dir, "a")
	fatal(t, err)
	old := a.Certificate()
	accept := trust.Accept(a, cert.Client)
	update(t, dir, func(by *cert.Authority) error {
		renewed, err := by.IssueNode("a", nil, time.Hour)
		fatal(t, err)
		return renewed.Save(dir, true)
	})
	fatal(t, a.Reload())
	if a.Certificate().Equal(old) {
		t.Error("the certificate is the old one")
	}
	update(t, dir, func(by *cert.Authority) error {
		_, err := by.Revoke("alice")
		return err
	})
	alice, err := cert.LoadClient(dir, "alice")
	fatal(t, err)
	p := connect(t, accept, trust.Dial(alice, a.Identity()))
	p.close()
	accepted(t, p)
	fatal(t, trust.Reload())
	p = connect(t, accept, trust.Dial(alice, a.Identity()))
	p.close()
	refused(t, "accepting", p.acceptError, cert.Revoked)

	// A certificate without its new key, and a lost list, change nothing.
	held := a.Certificate()
	fatal(t, os.WriteFile(filepath.Join(dir, "node-a.pem"), read(t, dir, "client-alice.pem"), 0o600))
	if err := a.Reload(); err == nil || !strings.Contains(err.Error(), "the key does not belong to the certificate") || a.Certificate() != held {
		t.Errorf("a certificate without its key: %v", err)
	}
	fatal(t, os.Remove(filepath.Join(dir, "crl.pem")))
	if err := trust.Reload(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a list that is lost: %v", err)
	}
	_, err = trust.Check(p.accepted.ConnectionState())
	refused(t, "checking", err, cert.Revoked)
	// Without files there is no reload.
	w := newWorld(t, "bank")
	if w.trust.Reload() == nil || w.node("b").Self().Reload() == nil {
		t.Error("read again what comes from no file")
	}
}

// Every invalid file is an error with its name.
func TestBadFiles(t *testing.T) {
	other := newFolder(t)
	for name, c := range map[string]struct {
		file, text string // empty: that of another authority
		want       string
	}{
		"no authority":             {"ca.pem", "-", "ca.pem: block 1: a PEM block \"CERTIFICATE\" was expected"},
		"text after the authority": {"ca.pem", "+x", "ca.pem: block 2: a PEM block"},
		"an authority in bits":     {"ca.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "ca.pem: block 1: "},
		"another list":             {"crl.pem", "", "none of the authorities in use has signed"},
		"another key":              {"ca.key", "", "ca.key: the key does not belong to ca.pem"},
		"no key":                   {"ca.key", "-", "ca.key: block 1: a PEM block \"PRIVATE KEY\" was expected"},
		"no index":                 {"index.json", "-", "index.json: invalid character"},
		"an odd index":             {"index.json", `[{"serial":"1","kind":"node","name":"a"}]`, `index.json: "1" "a": the serial`},
		"two authorities":          {"ca.pem", "+", "one authority and one list were expected in the folder of an authority"},
	} {
		dir := newFolder(t)
		text := []byte(c.text)
		switch {
		case c.text == "":
			text = read(t, other, c.file)
		case c.text == "+":
			text = append(read(t, dir, c.file), read(t, other, c.file)...)
		case c.text[0] == '+':
			text = append(read(t, dir, c.file), c.text[1:]...)
		}
		fatal(t, os.WriteFile(filepath.Join(dir, c.file), text, 0o600))
		err := cert.Update(dir, func(*cert.Authority) error { return nil })
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v; it is %q", name, err, c.want)
		}
	}
}

// The certificate of another owner under a node's name is an error, and so is an invalid signer.
func TestLoadNodeRefuses(t *testing.T) {
	dir := newFolder(t)
	copied := func(from, to string) {
		fatal(t, os.WriteFile(filepath.Join(dir, to), read(t, dir, from), 0o600))
	}
	copied("node-a.pem", "node-b.pem")
	copied("node-a.key", "node-b.key")
	const want = "node-b.pem: the certificate belongs to parley://bank/node/a: one of node b was expected"
	if _, _, err := cert.LoadNode(dir, "b"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("node a as node b: %v", err)
	}
	copied("node-a.key", "signer-a.key")
	if _, _, err := cert.LoadNode(dir, "a"); err == nil || !strings.Contains(err.Error(), "signer-a.key: a key of another kind: one of Ed25519 was expected") {
		t.Errorf("a TLS key as signer: %v", err)
	}
	if _, _, err := cert.LoadNode(dir, "../a"); err == nil || !strings.Contains(err.Error(), "is no name") {
		t.Errorf("a path as a name: %v", err)
	}
	for _, text := range []string{
		"", "ed25519:", "ed25519:AAAA", "x", "ed25519:" + strings.Repeat("A", 44), "ed25519:" + strings.Repeat("A", 42) + "B=",
		"ed25519:" + strings.Repeat("A", 43) + "=\n", strings.Repeat("A", 43) + "=",
	} {
		if key, err := cert.ParseSigner(text); err == nil {
			t.Errorf("%q is signer %x", text, key)
		}
	}
}

// A folder in which another command writes, or was killed, is not changed.
func TestLock(t *testing.T) {
	dir := newFolder(t)
	update(t, dir, func(*cert.Authority) error {
		err := cert.Update(dir, func(*cert.Authority) error { t.Error("two at a time"); return nil })
		if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "lock")+" is there") {
			t.Errorf("the second command: %v", err)
		}
		return nil
	})
	failed := errors.New("no")
	before := read(t, dir, "crl.pem")
	err := cert.Update(dir, func(a *cert.Authority) error {
		if _, err := a.Revoke("a"); err != nil {
			t.Error(err)
		}
		return failed
	})
	if !errors.Is(err, failed) || !bytes.Equal(before, read(t, dir, "crl.pem")) {
		t.Errorf("%v: what failed is written", err)
	}
	update(t, dir, func(*cert.Authority) error { return nil })
}

func TestRevoke(t *testing.T) {
	w := newWorld(t, "bank")
	first, second := w.node("a"), w.node("a")
	w.client("a", cert.Read)
	alice := w.client("alice", cert.Read)
	for what, want := range map[string]string{
		"a":                              "a is both a node and a client: allowed are node/a and client/a",
		"b":                              `no certificate of "b" was issued: a NAME, node/NAME, client/NAME or a serial was expected`,
		"node/alice":                     `no certificate of "node/alice" was issued`,
		strings.ToUpper(alice.Serial):    "was issued",
		alice.Serial[1:]:                 "was issued",
		"-" + strings.Repeat("1", 31):    "was issued",
		strings.Repeat("0", 32):          "was issued",
		"node/" + strings.Repeat("a", 9): "was issued",
	} {
		if found, err := w.authority.Revoke(what); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; it is %q", what, found, err, want)
		}
	}
	revoke := func(what string, want int) {
		t.Helper()
		found, err := w.authority.Revoke(what)
		if err != nil || len(found) != want || found[0].Revoked.IsZero() {
			t.Errorf("%s: %+v, %v; there are %d", what, found, err, want)
		}
		if _, err := w.authority.Revoke(what); err == nil || !strings.Contains(err.Error(), "revoked already") {
			t.Errorf("%s once more: %v", what, err)
		}
	}
	revoke(first.Serial, 1)
	revoke("node/a", 1) // the second certificate
	revoke("a", 1)      // only the client still has that name
	revoke("alice", 1)
	revoke("7"+strings.Repeat("0", 31), 1) // not in the records
	fatal(t, w.trust.Set(w.authority.Anchors()))
	for _, c := range []*x509.Certificate{first.TLS.Leaf, second.TLS.Leaf, alice.TLS.Leaf} {
		_, err := w.trust.Verify(c)
		refused(t, c.URIs[0].String(), err, cert.Revoked)
	}
	if got := w.authority.Anchors().Lists[0].Number.Int64(); got != 6 {
		t.Errorf("the list has number %d; it is 6", got)
	}
}

func TestIssueRefuses(t *testing.T) {
	w := newWorld(t, "bank")
	for name, c := range map[string]struct {
		do   func() (*cert.Issued, error)
		want string
	}{
		"a name":      {func() (*cert.Issued, error) { return w.authority.IssueNode("../a", nil, time.Hour) }, "is no name: allowed are"},
		"a host":      {func() (*cert.Issued, error) { return w.authority.IssueNode("a", []string{"a b"}, time.Hour) }, `"a b" is neither a host name nor`},
		"any host":    {func() (*cert.Issued, error) { return w.authority.IssueNode("a", []string{"*.org"}, time.Hour) }, "neither a host name"},
		"too short":   {func() (*cert.Issued, error) { return w.authority.IssueNode("a", nil, time.Second) }, "allowed are 1 minute to 100 years"},
		"too long":    {func() (*cert.Issued, error) { return w.authority.IssueNode("a", nil, 11*year) }, "the authority itself is valid until 2040-04-28"},
		"no rights":   {func() (*cert.Issued, error) { return w.authority.IssueClient("a", 0, time.Hour) }, "rights 0: allowed are read, write, admin"},
		"more rights": {func() (*cert.Issued, error) { return w.authority.IssueClient("a", 8, time.Hour) }, "rights 8: allowed are"},
	} {
		if got, err := c.do(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; it is %q", name, got, err, c.want)
		}
	}
	if _, err := cert.NewAuthority("Bank", year, nil); err == nil {
		t.Error("a cluster with a capital letter")
	}
	if len(w.authority.Records()) != 0 {
		t.Errorf("%v", w.authority.Records())
	}
}
