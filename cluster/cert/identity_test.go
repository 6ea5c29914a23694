package cert_test

import (
	"crypto/x509"
	"net/url"
	"strings"
	"testing"

	"parley/cluster/cert"
)

func TestParse(t *testing.T) {
	for name, want := range map[string]cert.Identity{
		"parley://bank/node/a":                  {Cluster: "bank", Kind: cert.Node, Name: "a"},
		"parley://b-2/node/0":                   {Cluster: "b-2", Kind: cert.Node, Name: "0"},
		"parley://bank/client/al?rights=read":   {Cluster: "bank", Kind: cert.Client, Name: "al", Rights: cert.Read},
		"parley://x/client/y?rights=admin":      {Cluster: "x", Kind: cert.Client, Name: "y", Rights: cert.Admin},
		"parley://x/client/y?rights=write":      {Cluster: "x", Kind: cert.Client, Name: "y", Rights: cert.Write},
		"parley://x/client/y?rights=read,admin": {Cluster: "x", Kind: cert.Client, Name: "y", Rights: cert.Read | cert.Admin},
		"parley://x/client/y?rights=read,write,admin": {
			Cluster: "x", Kind: cert.Client, Name: "y", Rights: cert.Read | cert.Write | cert.Admin,
		},
		"parley://bank/node/" + strings.Repeat("a", 63): {Cluster: "bank", Kind: cert.Node, Name: strings.Repeat("a", 63)},
	} {
		got, err := cert.Parse(&x509.Certificate{URIs: uris(name)})
		if got != want || err != nil || got.String() != name {
			t.Errorf("%s: %v, %v; it is %v", name, got, err, want)
		}
	}
}

// A name has a single spelling. Every other one is refused.
func TestParseRefuses(t *testing.T) {
	for _, name := range []string{
		"", "parley:", "parley://", "parley:bank/node/a", "/node/a", "//bank/node/a", "http://bank/node/a", "spiffe://bank/node/a",
		"PARLEY://bank/node/a?x", "parley://Bank/node/a", "parley://bank/Node/a", "parley://bank/node/A",
		"parley://bank/node", "parley://bank/node/", "parley://bank//node/a", "parley://bank/node//a", "parley://bank/node/a/",
		"parley://bank/node/a/b", "parley://bank/node/../a", "parley://bank/node/%61", "parley://bank/node/a%2Fb", "parley://bank/node/a%00",
		"parley:///node/a", "parley://bank:1/node/a", "parley://me@bank/node/a", "parley://bank/node/a#b", "parley://bank/node/a?",
		"parley://bank/node/a?rights=read", "parley://bank/node/a?rights=", "parley://bank/node/é", "parley://bank/node/a b",
		"parley://bank./node/a", "parley://-bank/node/a", "parley://bank/node/-a", "parley://bank/node/a-", "parley://bank/node/*",
		"parley://bank/node/" + strings.Repeat("a", 64), "parley://bank/authority", "parley://bank/authority/a", "parley://bank/kind 1/a",
		"parley://bank/client/a", "parley://bank/client/a?rights=", "parley://bank/client/a?rights=root", "parley://bank/client/a?rights=write,read",
		"parley://bank/client/a?rights=read,read", "parley://bank/client/a?rights=read&rights=admin", "parley://bank/client/a?admin=1&rights=read",
		"parley://bank/client/a?rights=read%2Cwrite", "parley://bank/client/a?rights=read,", "parley://bank/client/a?Rights=read",
	} {
		u, err := url.Parse(name)
		if err != nil {
			continue // x509 would not parse it, either
		}
		got, err := cert.Parse(&x509.Certificate{URIs: []*url.URL{u}})
		refused(t, name, err, cert.BadName, "one URI name was expected, parley://CLUSTER/node/NAME or parley://CLUSTER/client/NAME")
		if got != (cert.Identity{}) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Text of a stranger neither breaks a line of the log nor fills it.
func TestRefusalsQuote(t *testing.T) {
	c := &x509.Certificate{}
	c.Subject.CommonName = "x\nrefused: b\x1b[2J" + strings.Repeat("y", 10000)
	_, err := cert.Parse(c)
	refused(t, "common name", err, cert.CommonName, `"x\nrefused: b\x1b[2Jyyy`)
	if text := err.Error(); len(text) > 400 || strings.ContainsAny(text, "\n\x1b") {
		t.Errorf("%q", text)
	}
}

func TestRights(t *testing.T) {
	for text, want := range map[string]cert.Rights{
		"read": cert.Read, "admin,read": cert.Read | cert.Admin, "write,write": cert.Write, "read,write,admin": 7,
	} {
		if got, err := cert.ParseRights(text); got != want || err != nil {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "root", "read,", " read", "Read", "read write"} {
		if got, err := cert.ParseRights(text); err == nil || !strings.Contains(err.Error(), "allowed are read, write, admin") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if r := cert.Read | cert.Admin; !r.Has(cert.Read) || r.Has(cert.Write) || r.Has(cert.Read|cert.Write) || !r.Has(0) {
		t.Error("rights include what they do not have")
	}
	if cert.Admin.Has(cert.Read) {
		t.Error("admin includes read")
	}
}

// FuzzParse: every valid name has one spelling, and can be used in file names.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"parley://bank/node/a", "parley://bank/client/a?rights=read,admin", "parley://bank/node/%61", "http://x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		u, err := url.Parse(name)
		if err != nil {
			return
		}
		id, err := cert.Parse(&x509.Certificate{URIs: []*url.URL{u}})
		if err != nil {
			if id != (cert.Identity{}) || len(err.Error()) > 1000 {
				t.Errorf("%q: %v, %v", name, id, err)
			}
			return
		}
		if id.String() != u.String() || cert.CheckName(id.Name) != nil || cert.CheckName(id.Cluster) != nil ||
			(id.Kind == cert.Client) != (id.Rights != 0) {
			t.Errorf("%q is %v", name, id)
		}
	})
}
