package nodefile_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"parley/cluster"
	"parley/cluster/cert"
	"parley/cluster/disk"
	"parley/cluster/nodefile"
	"parley/cluster/store"
	"parley/internal/golden"
)

// must fails the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rest are the required keys.
var rest = []struct{ key, text string }{
	{"cluster", "cluster: bank\n"},
	{"name", "name: a\n"},
	{"certificates", "certificates: certs\n"},
	{"members", `members:
  - {name: a, address: "10.0.0.1:7000", signer: "ed25519:22C7dfq1RCE1fUZCjijEtsO4KPGB/1T9dVo0q2tSET8="}
  - {name: b, address: "10.0.0.2:7000", signer: "ed25519:Yyjqc02MvswhckvgDJuIxJVJyjLsBHTQC2vK6avUUKo="}
  - {name: c, address: "10.0.0.3:7000", signer: "ed25519:KqhlWdiSOUAoSDmRhl2HCTEvU0p7mgv4lQGDcXkjOIE="}
  - {name: d, address: "10.0.0.4:7000", signer: "ed25519:Ih7ZN5cRdqp/oEsAu/Bl081QNlocnGOyys1XVt7hM5w="}
`},
}

// complete replaces a last line "..." by the missing required keys.
func complete(text string) string {
	own, short := strings.CutSuffix(text, "...\n")
	if !short {
		return text
	}
	out := own
	for _, r := range rest {
		if !strings.Contains("\n"+own, "\n"+r.key+":") {
			out += r.text
		}
	}
	return out
}

// An error names the file, the line, and the key, and says what was found and what is allowed.
func TestMalformed(t *testing.T) {
	const file = "testdata/malformed.txtar"
	a, err := txtar.ParseFile(file)
	must(t, err)
	if len(a.Files) < 50 {
		t.Errorf("only %d files", len(a.Files))
	}
	for i, c := range a.Files {
		text, _, _ := strings.Cut(string(c.Data), "=> ")
		f, err := nodefile.Parse("node.yaml", []byte(complete(text)))
		var placed *nodefile.Error
		switch {
		case err == nil:
			t.Errorf("%s: it is taken: %+v", c.Name, f)
		case !errors.As(err, &placed) || placed.Line < 1 || placed.File != "node.yaml":
			t.Errorf("%s: an error without a place: %v", c.Name, err)
		case strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: more than one line: %q", c.Name, err)
		}
		a.Files[i].Data = fmt.Appendf(nil, "%s=> %v\n", text, err)
	}
	golden.Compare(t, file, txtar.Format(a))
}

// Limits of the whole file: its size, its depth.
func TestTooMuch(t *testing.T) {
	var members, groups, tables strings.Builder
	for i := range 65 {
		key := make(ed25519.PublicKey, ed25519.PublicKeySize)
		key[0] = byte(i)
		fmt.Fprintf(&members, "- {name: n%d, address: \"h%d:1\", signer: %q}\n", i, i, cert.FormatSigner(key))
	}
	for i := range 1025 {
		fmt.Fprintf(&groups, "- {name: g%d, level: total}\n", i)
		fmt.Fprintf(&tables, "- {name: t%d, state: bank}\n", i)
	}
	for text, want := range map[string]string{
		"members:\n" + members.String():      ":66: members: more than 64 members: allowed are 1 to 64",
		"groups:\n" + groups.String():        ":1010: groups: more than 1008 groups: allowed are 0 to 1008",
		"tables:\n" + tables.String():        ":1026: tables: more than 1024 tables: allowed are 0 to 1024",
		"name: " + strings.Repeat("a", 64):   ":1: name: \"" + strings.Repeat("a", 64) + "\" is no name: allowed are 1 to 63 of",
		"name: " + strings.Repeat("[", 2000): ":",
		strings.Repeat("a: {", 1000):         ":",
	} {
		_, err := nodefile.Parse("f", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "f"+want) {
			t.Errorf("%.40s: %.200v; it is %s", text, err, want)
		}
	}
	file := filepath.Join(t.TempDir(), "long.yaml")
	must(t, os.WriteFile(file, make([]byte, 1<<18+1), 0o600))
	if _, err := nodefile.Read(file); err == nil || err.Error() != file+": more than 262144 bytes: no configuration is so long" {
		t.Error(err)
	}
}

// No input crashes the parser, and an accepted file is consistent.
func FuzzParse(f *testing.F) {
	f.Add(nodefile.Example)
	a, err := txtar.ParseFile("testdata/malformed.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range a.Files {
		text, _, _ := strings.Cut(string(c.Data), "=> ")
		f.Add(complete(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := nodefile.Parse("f", []byte(text))
		if err == nil && (len(file.Members) == 0 || file.Listen == "" || file.Cluster == "" || file.Certificates == "") {
			t.Errorf("%+v", file)
		}
	})
}

// The example is a valid file, and shows every key.
func TestExample(t *testing.T) {
	f, err := nodefile.Parse("dir/node.yaml", []byte(nodefile.Example))
	must(t, err)
	if f.Cluster != "bank" || f.Name != "a" || f.Listen != "0.0.0.0:7001" || f.API != "0.0.0.0:7101" ||
		f.Metrics != "127.0.0.1:7201" || f.Certificates != "certs" || f.Data != "data" || !f.Durable || f.M != 1 ||
		f.Round != 100*time.Millisecond || f.LogJSON || f.LogLevel != 0 || f.Lab != nil {
		t.Errorf("%+v", f)
	}
	if want := new(cluster.Times).WithDefaults(); f.Times != want {
		t.Errorf("its times are %v: it says that they are the defaults, %v", f.Times, want)
	}
	if len(f.Members) != 4 || f.Members[3].Address != "[2001:db8::4]:7001" || len(f.Members[3].Signer) != 32 ||
		len(f.Groups) != 2 || f.Groups[0].Keep != 1<<16 || f.Groups[0].KeepBytes != 64<<20 || f.Groups[1].Keep != 0 ||
		f.Groups[0].Level != cluster.Total || f.Groups[1].Level != cluster.Byzantine ||
		len(f.Tables) != 2 || f.Tables[0].New != nil || f.Tables[1].New == nil ||
		f.Tables[0].Level != cluster.Total || f.Tables[1].Level != cluster.Byzantine {
		t.Errorf("%+v", f)
	}
	_, err = nodefile.Parse("f", []byte("x: 1"))
	_, list, _ := strings.Cut(err.Error(), "allowed are ")
	keys := strings.Split(list, ", ")
	if len(keys) < 17 {
		t.Errorf("only %d keys: %v", len(keys), err)
	}
	for _, key := range keys {
		if !strings.Contains(nodefile.Example, "\n"+key+":") && !strings.Contains(nodefile.Example, "\n# "+key+":") {
			t.Errorf("the example lacks %s", key)
		}
	}
	lab := strings.NewReplacer("\n# lab:", "\nlab:", "\n# traitor:", "\ntraitor:", "\n# skew:", "\nskew:").Replace(nodefile.Example)
	if f, err = nodefile.Parse("f", []byte(lab)); err != nil || f.Lab == nil || f.Lab.Traitor.Name != "twofaced" ||
		f.Offset != 1500*time.Millisecond || f.Drift != 200 {
		t.Errorf("with a traitor: %+v, %v", f, err)
	}
}

// A participant is called if the file names one. The node can be checked without it.
func TestParticipant(t *testing.T) {
	for text, has := range map[string]bool{"": false, "participant: http://127.0.0.1:1\n": true, "participant: unix:/x\n": true} {
		f, err := nodefile.Read(made(t, "cluster: bank\nname: b\n"+text))
		must(t, err)
		c, err := f.Config()
		if _, remote := c.Participant.(cluster.RemoteParticipant); err != nil || remote != has || (c.Participant != nil) != has {
			t.Errorf("%q: %v, %v", text, c.Participant, err)
		}
		said := false
		for _, found := range f.Check(t.Context()) {
			said = said || found.Key == "participant" && !found.Problem && strings.Contains(found.Text, " does not answer, and until it does the node votes no: ")
		}
		if said != has {
			t.Errorf("%q: that nobody is there is said: %v", text, said)
		}
	}
}

// made writes the folder of a node a, with a file that contains the members and more.
func made(t *testing.T, more string) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := cert.Create(filepath.Join(dir, "certs"), "bank", 2*time.Hour); err != nil {
		t.Fatal(err)
	}
	text := "certificates: certs\n" + more + "members:\n"
	err := cert.Update(filepath.Join(dir, "certs"), func(by *cert.Authority) error {
		for i, name := range []string{"a", "b"} {
			issued, err := by.IssueNode(name, nil, time.Hour)
			if err == nil {
				err = issued.Save(filepath.Join(dir, "certs"), false)
			}
			if err != nil {
				return err
			}
			text += fmt.Sprintf("  - {name: %s, address: \"127.0.0.%d:7000\", signer: %q}\n",
				name, i+1, cert.FormatSigner(issued.SignerKey()))
		}
		return nil
	})
	must(t, err)
	file := filepath.Join(dir, "node.yaml")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// A file, with its certificates, yields the configuration of a node.
func TestConfig(t *testing.T) {
	file := made(t, "cluster: bank\nname: b\ndata: data\nround: 50ms\ngroups: [{name: g, level: total}]\n")
	f, err := nodefile.Read(file)
	must(t, err)
	if f.Listen != "127.0.0.2:7000" {
		t.Errorf("it listens on %s", f.Listen)
	}
	c, err := f.Config()
	must(t, err)
	if c.Name != "b" || c.Dir != filepath.Join(filepath.Dir(file), "data") || c.Durable || c.Round != 50*time.Millisecond ||
		len(c.Members) != 2 || len(c.Groups) != 1 || c.Self.Identity().String() != "parley://bank/node/b" ||
		c.Trust.Cluster() != "bank" || !c.Members[1].Signer.Equal(c.SignerKey.Public()) {
		t.Errorf("%+v", c)
	}
}

// Transactions use the protocol and the times of the file.
func TestCommitProtocol(t *testing.T) {
	for text, want := range map[string]cluster.CommitConfig{
		"": {}, "commit: {protocol: two-phase}\n": {}, "commit: {protocol: majority}\n": {Protocol: cluster.Majority},
		"commit: {protocol: agreed, votes: 2s, delay: 20ms}\n": {
			Protocol: cluster.Agreed, Votes: 2 * time.Second, Delay: 20 * time.Millisecond,
		},
	} {
		file := made(t, "cluster: bank\nname: a\n"+text)
		f, err := nodefile.Read(file)
		if want.Protocol == cluster.Agreed { // it needs more than two members
			if err == nil || !strings.HasSuffix(err.Error(), "commit: protocol agreed among 2 members: allowed are 4 to 13") {
				t.Error(err)
			}
			f, err = nodefile.Parse(file, []byte(complete("name: a\n"+text+"...\n")))
			if err != nil || f.Commit != want {
				t.Errorf("%+v, %v", f, err)
			}
			continue
		}
		must(t, err)
		if c, err := f.Config(); err != nil || c.Commit != want {
			t.Errorf("%q: %+v, %v", text, c.Commit, err)
		}
		said := strings.Contains(f.Check(t.Context())[0].Text, "; transactions by majority")
		if said != (want.Protocol == cluster.Majority) {
			t.Errorf("%q: that it is by majority is said: %v", text, said)
		}
	}
}

// Certificates that are invalid for the node are errors on the line of their key.
func TestConfigRefuses(t *testing.T) {
	certs := func(file string) string { return filepath.Join(filepath.Dir(file), "certs") }
	edit := func(file, old, text string) {
		b, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, []byte(strings.Replace(string(b), old, text, 1)), 0o600)
		}
		must(t, err)
	}
	for name, c := range map[string]struct {
		spoil func(file string)
		want  string
	}{
		"no folder":    {func(file string) { edit(file, "certs", "keys") }, ":1: certificates: open .*keys/ca.pem: no such file"},
		"no node":      {func(file string) { _ = os.Remove(filepath.Join(certs(file), "node-a.pem")) }, ":1: certificates: open .*/node-a.pem: no such"},
		"another name": {func(file string) { edit(file, "bank", "post") }, `:2: cluster: "post": the authority in .* belongs to cluster bank`},
		"revoked":      {func(file string) { revoke(t, certs(file)) }, ":1: certificates: revoked: "},
		"another key":  {func(file string) { swap(t, certs(file), "node-a.key", "node-b.key") }, ":1: certificates: .*node-a.key: the key does not belong"},
		"another owner": {func(file string) {
			swap(t, certs(file), "node-a.pem", "node-b.pem")
			swap(t, certs(file), "node-a.key", "node-b.key")
		}, ":1: certificates: .*: one of node a was expected"},
		"another signer": {func(file string) { swap(t, certs(file), "signer-a.key", "signer-b.key") },
			":5: members: signer: ed25519:.* is not the one that .*signer-a.key has, which is ed25519:"},
	} {
		t.Run(name, func(t *testing.T) {
			file := made(t, "cluster: bank\nname: a\n")
			c.spoil(file)
			f, err := nodefile.Read(file)
			must(t, err)
			_, err = f.Config()
			if err == nil || !regexp.MustCompile("^"+regexp.QuoteMeta(file)+c.want).MatchString(err.Error()) {
				t.Errorf("%v; it is %s", err, c.want)
			}
			if found := f.Check(t.Context())[1]; !found.Problem {
				t.Errorf("the check says that %+v", found)
			}
		})
	}
}

func revoke(t *testing.T, dir string) {
	t.Helper()
	err := cert.Update(dir, func(by *cert.Authority) error {
		_, err := by.Revoke("a")
		return err
	})
	must(t, err)
}

func swap(t *testing.T, dir, a, b string) {
	t.Helper()
	for _, names := range [][2]string{{a, "x"}, {b, a}, {"x", b}} {
		must(t, os.Rename(filepath.Join(dir, names[0]), filepath.Join(dir, names[1])))
	}
}

// The check describes its findings, good and bad.
func TestCheck(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	taken := l.Addr().String()
	file := made(t, "cluster: bank\nname: a\nlisten: "+taken+"\napi: 192.0.2.1:7\ndata: certs/ca.pem\n"+
		"groups: [{name: g, level: total}]\ntables: [{name: s, state: bank}, {name: t, state: keyvalue}]\nlinks: calls\n"+
		"traces: certs/ca.pem\n")
	f, err := nodefile.Read(file)
	must(t, err)
	f.Members[1].Address = "no.such.host.invalid:7000"
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	want := []struct {
		key, text string
		problem   bool
	}{
		{"members", "2 members, of which 0 may lie; groups g; tables s, t; linked by calls", false},
		{"certificates", "node a of cluster bank, valid for 1h0m0s, until 20", false},
		{"listen", taken + " is in use by another process: stop it, or change listen", true},
		{"api", "listen tcp 192.0.2.1:7: bind: ", true},
		{"members", "b: lookup no.such.host.invalid", true},
		{"data", filepath.Join(filepath.Dir(file), "certs", "ca.pem") + " is not a folder", true},
		{"traces", filepath.Join(filepath.Dir(file), "certs", "ca.pem") + " is not a folder", true},
	}
	found := f.Check(ctx)
	if len(found) != len(want) {
		t.Fatalf("%+v", found)
	}
	for i, w := range want {
		if got := found[i]; got.Key != w.key || got.Problem != w.problem || !strings.HasPrefix(got.Text, w.text) {
			t.Errorf("%+v; it is %+v", got, w)
		}
	}
}

// The check tells a node that is running from another process at its address by the lock on the data folder.
func TestCheckWhileRunning(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	taken := l.Addr().String()
	file := made(t, "cluster: bank\nname: a\nlisten: "+taken+"\ndata: data\n")
	f, err := nodefile.Read(file)
	must(t, err)
	listens := func(problem bool, want string) {
		t.Helper()
		if got := f.Check(t.Context())[2]; got.Key != "listen" || got.Problem != problem || got.Text != taken+want {
			t.Errorf("got %+v, want %v and %q", got, problem, want)
		}
	}
	const another = " is in use by another process: stop it, or change listen"
	listens(true, another)
	records := filepath.Join(filepath.Dir(file), "data", "records")
	must(t, os.MkdirAll(records, 0o700))
	lock, err := disk.System{}.Lock(filepath.Join(records, store.LockName))
	must(t, err)
	listens(false, " is in use by this node, which is running")
	must(t, lock.Close())
	listens(true, another)
	f.Data = ""
	listens(false, " is in use: by this node if it is running, which without data nothing shows")
}
