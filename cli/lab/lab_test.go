package lab_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/catalog"
	"parley/cli/console"
	"parley/cli/lab"
	"parley/cluster/cert"
)

// running is a lab that serves.
type running struct {
	t       *testing.T
	address *url.URL
	notices *bytes.Buffer // on the standard error; read it after end
	cancel  context.CancelFunc
	ended   sync.WaitGroup
	err     error
}

// begin starts a lab and reads its address.
func begin(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{t: t, notices: new(bytes.Buffer), cancel: cancel}
	out, to := io.Pipe()
	cmd := lab.Command(&console.App{Protocols: catalog.All(), Out: to, Err: r.notices}, "v1.2.3")
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	r.ended.Go(func() {
		r.err = cmd.ExecuteContext(ctx)
		to.CloseWithError(cmp(r.err))
	})
	t.Cleanup(func() { r.end() })
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	text, found := strings.CutPrefix(line, "The lab is at ")
	if err != nil || !found {
		t.Fatalf("%v printed %q, %v", args, line, err)
	}
	if r.address, err = url.Parse(strings.TrimSpace(text)); err != nil {
		t.Fatal(err)
	}
	if line, err := lines.ReadString('\n'); line != "Ctrl-C ends it.\n" {
		t.Errorf("then it printed %q, %v", line, err)
	}
	return r
}

// cmp returns err, or the end of the output.
func cmp(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}

// end interrupts the lab and waits for it.
func (r *running) end() error {
	r.cancel()
	r.ended.Wait()
	return r.err
}

// about enters with the token of the address and asks about the program.
func (r *running) about(transport http.RoundTripper) string {
	r.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	client := &http.Client{Transport: transport, Jar: jar}
	token, found := strings.CutPrefix(r.address.Fragment, "token=")
	if !found {
		r.t.Fatalf("the address has no token: %s", r.address)
	}
	post := func(path, body string) string {
		q, err := http.NewRequestWithContext(r.t.Context(), "POST", r.address.ResolveReference(&url.URL{Path: path}).String(),
			strings.NewReader(body))
		if err != nil {
			r.t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Origin", r.address.Scheme+"://"+r.address.Host)
		got, err := client.Do(q)
		if err != nil {
			r.t.Fatal(err)
		}
		defer got.Body.Close()
		b, err := io.ReadAll(got.Body)
		if err != nil || got.StatusCode >= 300 {
			r.t.Fatalf("%s: status %d: %s, %v", path, got.StatusCode, b, err)
		}
		return string(b)
	}
	post("/token", `{"token":"`+token+`"}`)
	return post("/ask", `{"ask":"about"}`)
}

// The lab prints an address at which it answers, until it is interrupted.
func TestLab(t *testing.T) {
	r := begin(t, "--no-open", "--listen", "127.0.0.1:0")
	if r.address.Scheme != "http" || r.address.Hostname() != "127.0.0.1" || r.address.Path != "/" {
		t.Errorf("address: %s", r.address)
	}
	if got := r.about(nil); !strings.HasPrefix(got, `{"answer":{`) || !strings.Contains(got, "v1.2.3") {
		t.Errorf("about: %s", got)
	}
	if err := r.end(); err != nil {
		t.Errorf("it ended by %v", err)
	}
	if r.notices.Len() != 0 {
		t.Errorf("notices: %s", r.notices)
	}
}

// If the usual address is in use, the lab takes another port and says so; if the user has chosen it, it does not.
func TestLabInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	usual := l.Addr().String()
	lab.SetUsual(t, usual)
	r := begin(t, "--no-open")
	if r.address.Host == usual || !strings.Contains(r.about(nil), "answer") {
		t.Errorf("address: %s", r.address)
	}
	if err := r.end(); err != nil {
		t.Errorf("it ended by %v", err)
	}
	want := "parley lab: " + usual + " is in use, by another lab perhaps: this one takes a free port\n"
	if r.notices.String() != want {
		t.Errorf("notices: %q, want %q", r.notices, want)
	}
	want = "--listen: " + usual + " is in use: choose another port, or 0 for any free one"
	if err := refused(t, "--no-open", "--listen", usual); err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

// ending ends a lab that prints its address.
type ending context.CancelFunc

func (e ending) Write(b []byte) (int, error) {
	e()
	return len(b), nil
}

// refused runs a lab that must not begin.
func refused(t *testing.T, args ...string) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := lab.Command(&console.App{Protocols: catalog.All(), Out: ending(cancel), Err: io.Discard}, "v1.2.3")
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		t.Fatalf("%v was not refused", args)
	}
	return err
}

// Other computers do not reach the page without TLS.
func TestLabIsNotPublic(t *testing.T) {
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[::ffff:192.0.2.1]:0"} {
		err := refused(t, "--no-open", "--listen", address)
		if want := "--listen: other computers reach " + address + ": give --certificate"; !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

// issue creates an authority and a node's certificate for hosts.
func issue(t *testing.T, hosts ...string) (flags []string, trusted *x509.CertPool) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "certs")
	if _, err := cert.Create(dir, "shops", 2*time.Hour); err != nil {
		t.Fatal(err)
	}
	err := cert.Update(dir, func(by *cert.Authority) error {
		made, err := by.IssueNode("a", hosts, time.Hour)
		return errors.Join(err, made.Save(dir, false))
	})
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	trusted = x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(pem) {
		t.Fatal("the authority is no certificate")
	}
	certificate, key := cert.Files(dir, cert.Node, "a")
	return []string{"--no-open", "--certificate", certificate, "--key", key}, trusted
}

// With a certificate the lab serves other computers, by the names in the certificate.
func TestLabForOthers(t *testing.T) {
	flags, trusted := issue(t, "localhost", "127.0.0.1", "lab.example.org")
	r := begin(t, append(flags, "--listen", "0.0.0.0:0")...)
	if r.address.Scheme != "https" || r.address.Hostname() != "lab.example.org" {
		t.Errorf("address: %s", r.address)
	}
	port := r.address.Port()
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: trusted},
		ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) { // in place of a name server
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
		},
	}
	defer transport.CloseIdleConnections()
	if got := r.about(transport); !strings.Contains(got, "answer") {
		t.Errorf("about: %s", got)
	}
	q, err := http.NewRequestWithContext(t.Context(), "GET", "https://localhost:"+port+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := transport.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	if got.StatusCode != 200 || got.ProtoMajor != 2 {
		t.Errorf("%v by its other name: %s", q.URL, got.Status)
	}
	if err := r.end(); err != nil {
		t.Errorf("it ended by %v", err)
	}
	r = begin(t, append(flags, "--listen", "127.0.0.1:0")...)
	if r.address.Scheme != "https" || r.address.Hostname() != "127.0.0.1" {
		t.Errorf("address: %s", r.address)
	}
}

// A certificate by which no browser reaches the address is refused.
func TestLabCertificates(t *testing.T) {
	for _, c := range []struct {
		hosts        []string
		listen, want string
	}{
		{[]string{"localhost", "::1"}, "0.0.0.0:0", "--certificate: the certificate is for localhost, ::1, by which other " +
			"computers do not reach this one: issue one with --hosts and the name of this computer"},
		{[]string{"localhost"}, "192.0.2.7:0", "the certificate is for localhost, by which"},
		{[]string{"lab.example.org"}, "127.0.0.1:0", "--certificate: the certificate is for lab.example.org, and not for " +
			"127.0.0.1: issue one with --hosts 127.0.0.1"},
		{[]string{"192.0.2.7"}, "192.0.2.7:0", "--listen: 192.0.2.7:0: this computer does not allow to listen there: "},
		{nil, "127.0.0.1:0", "names no host, so no browser accepts it: issue one with --hosts"},
	} {
		flags, _ := issue(t, c.hosts...)
		if err := refused(t, append(flags, "--listen", c.listen)...); !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v at %s: got %q, want %q", c.hosts, c.listen, err, c.want)
		}
	}
}
