package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/catalog"
	"parley/internal/lab/link"
)

// opened is a command that shows its result in the lab.
type opened struct {
	t       *testing.T
	address *url.URL
	end     func() (status int, out string) // interrupts it
}

// open starts a command with --open, and reads the address of the lab.
func open(t *testing.T, line string) *opened {
	t.Helper()
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	errors, to := io.Pipe()
	status := 0
	var work sync.WaitGroup
	work.Go(func() {
		status = runContext(ctx, catalog.All(), strings.Fields(line), &out, to)
		to.Close()
	})
	lines := bufio.NewReader(errors)
	first, err := lines.ReadString('\n')
	second, _ := lines.ReadString('\n')
	work.Go(func() { _, _ = io.Copy(io.Discard, lines) })
	text, found := strings.CutPrefix(strings.TrimSpace(first), "The lab shows it at ")
	o := &opened{t: t, end: func() (int, string) {
		cancel()
		work.Wait()
		return status, out.String()
	}}
	t.Cleanup(func() { o.end() })
	if err != nil || !found || second != "Ctrl-C ends it.\n" {
		t.Fatalf("%s printed %q, %q, %v", line, first, second, err)
	}
	if o.address, err = url.Parse(text); err != nil {
		t.Fatal(err)
	}
	return o
}

// fragment returns what the browser shows when it has the token.
func (o *opened) fragment() string {
	_, rest, _ := strings.Cut(o.address.EscapedFragment(), "/")
	return "#/" + rest
}

// ask answers a question as the page would ask it.
func (o *opened) ask(question string) string {
	o.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		o.t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	token, _, _ := strings.Cut(strings.TrimPrefix(o.address.Fragment, "token="), "/")
	var answer []byte
	for _, one := range [][2]string{{"/token", `{"token":"` + token + `"}`}, {"/ask", question}} {
		q, err := http.NewRequestWithContext(o.t.Context(), "POST", "http://"+o.address.Host+one[0], strings.NewReader(one[1]))
		if err != nil {
			o.t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Origin", "http://"+o.address.Host)
		got, err := client.Do(q)
		if err != nil {
			o.t.Fatal(err)
		}
		answer, err = io.ReadAll(got.Body)
		got.Body.Close()
		if err != nil || got.StatusCode >= 300 {
			o.t.Fatalf("%s: status %d: %s, %v", one[0], got.StatusCode, answer, err)
		}
	}
	return string(answer)
}

// "parley run --open" opens the link of the run that it printed. The exit status stays the same.
func TestOpenRun(t *testing.T) {
	o := open(t, "run eig -n 4 -m 1 --faulty 3=twofaced --values 0 --seed 9 --show verdict --open")
	to, err := link.Read(o.fragment())
	if err != nil {
		t.Fatal(err)
	}
	if f := to.Flags; to.Protocol != "eig" || f["n"] != "4" || f["faulty"] != "3=twofaced" || f["seed"] != "9" || f["show"] != "" {
		t.Errorf("the link is %s", o.fragment())
	}
	status, out := o.end()
	if status != 0 || !strings.Contains(out, "trace "+to.Hash) {
		t.Errorf("status %d, hash %s, report\n%s", status, to.Hash, out)
	}
	o = open(t, "run --scenario ../docs/scenarios/twophase-blocks.yaml --show verdict --open --json")
	if to, err = link.Read(o.fragment()); err != nil || to.Protocol != "twophase" || to.Flags["crashes"] == "" {
		t.Errorf("the link of a scenario is %s, %v", o.fragment(), err)
	}
	if status, out := o.end(); status != 0 || !strings.Contains(out, `"`+to.Hash) || !strings.HasPrefix(out, "{") {
		t.Errorf("status %d, hash %s, report\n%s", status, to.Hash, out)
	}
}

// A trace that no flags repeat is given to the lab, which knows it by its hash and by its file.
func TestOpenTrace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "found.jsonl")
	o := open(t, "explore om -n 3 -m 1 --step round --beyond-bound --property validity --open --trace "+file)
	to, err := link.Read(o.fragment())
	if err != nil || len(to.Trace) != 8 || to.Trace != to.Hash {
		t.Fatalf("the link is %s, %v", o.fragment(), err)
	}
	question := `{"ask":"run","run":{"kept":"` + to.Trace + `"}}`
	got := o.ask(question)
	if !strings.Contains(got, `"trace_hash":"`+to.Trace) || !strings.Contains(got, "parley trace show "+file) {
		t.Errorf("the lab answers %.300s", got)
	}
	for _, short := range []string{"", to.Trace[:7], "00000000"} {
		if got := o.ask(`{"ask":"run","run":{"kept":"` + short + `"}}`); !strings.Contains(got, `"error":{`) {
			t.Errorf("kept %q: the lab answers %.300s", short, got)
		}
	}
	if status, out := o.end(); status != 1 || !strings.Contains(out, "found: validity breaks") {
		t.Errorf("status %d, report\n%s", status, out)
	}
	for _, line := range []string{"trace show " + file + " --open", "run --replay " + file + " --open"} {
		o = open(t, line)
		if again, err := link.Read(o.fragment()); err != nil || again.Trace != to.Trace {
			t.Errorf("%s: the link is %s, %v", line, o.fragment(), err)
		}
		if got := o.ask(question); !strings.Contains(got, `"trace_hash":"`+to.Trace) {
			t.Errorf("%s: the lab answers %.300s", line, got)
		}
	}
}

// A search that finds nothing opens its form, with the flags of the search and without those of the output.
func TestOpenSearch(t *testing.T) {
	o := open(t, "explore om -n 4 -m 1 --step round --property agreement,validity --width 80 --workers 1 --open")
	want := "#/explore?s=om&m=1&n=4&property=agreement,validity&step=round"
	if got := o.fragment(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := o.ask(`{"ask":"model","model":{"protocol":"om","flags":{"m":"1","n":"4","property":"agreement,validity"}}}`); !strings.Contains(got,
		`"error":null`) {
		t.Errorf("the lab answers %.2000s", got)
	}
	if status, out := o.end(); status != 0 || !strings.Contains(out, "exhausted") {
		t.Errorf("status %d, report\n%s", status, out)
	}
}
