package cli_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// called is a command of the README, with its answer if the README gives one.
type called struct{ command, answer string }

// callExamples returns the commands of the section "Build with it": the one that starts the cluster, and the calls.
func callExamples(t *testing.T) (up string, calls []called) {
	t.Helper()
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(b), "\n## Build with it\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for i, block := range strings.Split(section, "```\n") {
		if i%2 == 0 {
			continue
		}
		for line := range strings.Lines(block) {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, "parley "):
				up = line
			case line == ". bank/env":
			case strings.HasPrefix(line, "{"):
				calls[len(calls)-1].answer = line
			default:
				calls = append(calls, called{command: line})
			}
		}
	}
	if up == "" || len(calls) < 3 {
		t.Fatalf("the README calls %d times a cluster started by %q", len(calls), up)
	}
	return up, calls
}

// The README's calls work, both with likeCurl and with curl itself if it is installed.
func TestCallExamples(t *testing.T) {
	up, calls := callExamples(t)
	how := map[string]func(*testing.T, string) (string, error){"go": likeCurl}
	if curl, err := exec.LookPath("curl"); err == nil {
		how[curl] = func(t *testing.T, command string) (string, error) {
			out, err := exec.CommandContext(t.Context(), "sh", "-c", ". bank/env; "+command).CombinedOutput()
			return string(out), err
		}
	}
	for name, call := range how {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			p := begin(t, "Ctrl-C ends it", words(up)[1:]...)
			for _, c := range calls {
				answer, err := call(t, c.command)
				if err != nil || !strings.HasPrefix(answer, "{") || strings.HasPrefix(answer, `{"code"`) {
					t.Errorf("%s: %v: %s", c.command, err, answer)
				}
				if c.answer != "" && compact(answer) != compact(c.answer) {
					t.Errorf("%s: %s: %s was expected", c.command, answer, c.answer)
				}
				if strings.Contains(c.command, "Fetch") && !strings.Contains(answer, "aGVsbG8=") {
					t.Errorf("%s: %s", c.command, answer)
				}
			}
			if status := p.end(os.Interrupt); status != 0 {
				t.Error(status, p.printed())
			}
		})
	}
}

// compact returns JSON without insignificant white space, and any other text unchanged.
func compact(text string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(text)) != nil {
		return text
	}
	return b.String()
}

// likeCurl makes the call that curl makes for a command of the form
//
//	curl -K FILE $VARIABLE/PATH -d BODY
func likeCurl(t *testing.T, command string) (string, error) {
	args := words(command)
	if len(args) != 6 || args[0] != "curl" || args[1] != "-K" || args[4] != "-d" {
		return "", fmt.Errorf("no such command: %q", args)
	}
	env := settings(t, "bank/env", "=")
	url := os.Expand(args[3], func(name string) string { return env[name] })
	config := settings(t, args[2], " = ")
	pair, err := tls.LoadX509KeyPair(config["cert"], config["key"])
	if err != nil {
		return "", err
	}
	ca, err := os.ReadFile(config["cacert"])
	if err != nil {
		return "", err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return "", fmt.Errorf("%s has no certificate", config["cacert"])
	}
	tr := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}},
		ForceAttemptHTTP2: true,
	}
	defer tr.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(args[5]))
	if err != nil {
		return "", err
	}
	name, value, _ := strings.Cut(config["header"], ": ")
	r.Header.Set(name, value)
	answer, err := tr.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	return string(b), err
}

// settings reads the assignments in a file.
func settings(t *testing.T, file, by string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), by); ok {
			out[name] = strings.Trim(value, `"`)
		}
	}
	return out
}
