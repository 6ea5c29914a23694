package browser_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// shown is a text of the page that comes from the engine.
const shown = "eig"

// The page works in all its forms, without an error, a violation of its policy, or a request to another origin.
func TestPage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		address func(*testing.T) string
	}{
		{"served", served},
		{"static", func(t *testing.T) string { return static(t, "/", nil) }},
		{"static in a folder", func(t *testing.T) string { return static(t, "/some/where/", nil) }},
		{"static with an encoding", func(t *testing.T) string { return static(t, "/", encoded) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := open(t, c.address(t))
			b.says(shown)
			if hash := evaluate[string](b, "location.hash"); strings.Contains(hash, "token") {
				t.Errorf("the token remains in the address: %s", hash)
			}
			if cookie := evaluate[string](b, "document.cookie"); cookie != "" {
				t.Errorf("a script reads the cookie %s", cookie)
			}
			b.clean()
		})
	}
}

// Without the compressed program the static page loads the other one.
func TestPageUnpacked(t *testing.T) {
	t.Parallel()
	b := open(t, static(t, "/", unpacked))
	b.says(shown)
	for _, what := range b.heard() {
		if !strings.Contains(what, "404") {
			t.Error(what)
		}
	}
}

// Without the token nothing is answered, and the page of another origin gets nothing at all.
func TestStrangers(t *testing.T) {
	t.Parallel()
	address, _, _ := strings.Cut(served(t), "#")
	const ask = `fetch("ADDRESSask", {method: "POST", headers: {"Content-Type": "application/json"},
		body: '{"ask":"about"}', credentials: "include"}).then(r => r.status, err => 0)`
	b := open(t, address)
	if status := evaluate[int](b, strings.ReplaceAll(ask, "ADDRESS", address)); status != 401 {
		t.Errorf("without the token: status %d", status)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	b = open(t, other.URL)
	if status := evaluate[int](b, strings.ReplaceAll(ask, "ADDRESS", address)); status != 0 {
		t.Errorf("from another origin: status %d", status)
	}
}

// A file on the disk leads the browser to the page, as "parley lab" opens it.
func TestOpenedByFile(t *testing.T) {
	t.Parallel()
	address := served(t)
	file := filepath.Join(t.TempDir(), "lab.html")
	text := `<!DOCTYPE html><meta http-equiv="refresh" content="0; url=` + address + `"><a href="` + address + `">Open</a>`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b := open(t, "about:blank")
	loads, pages := chromedp.Events(b.ctx, page.LoadEventFired), 0
	b.do(chromedp.Navigate("file://" + file))
	for _, err := range loads {
		b.check(err)
		if pages++; pages == 2 { // the file, and then the page
			break
		}
	}
	b.says(shown)
	if at := evaluate[string](b, "location.origin"); !strings.HasPrefix(address, at+"/") {
		t.Errorf("it is at %s, want %s", at, address)
	}
}

// lecture serves a page of another site that shows an address in a frame, with what docs/how-to/publish-the-lab.md says
// about a sandbox.
func lecture(t *testing.T, address string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			w.WriteHeader(http.StatusNoContent) // the icon
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<!DOCTYPE html><title>Lecture</title><iframe src="` + address +
			`" sandbox="allow-scripts allow-same-origin allow-downloads"></iframe>`))
	}))
	t.Cleanup(s.Close)
	return strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
}

// A lecture may show the static page in a frame, and not the served one.
func TestFrame(t *testing.T) {
	t.Parallel()
	site := static(t, "/lab/", nil)
	b := open(t, lecture(t, site))
	frames, err := chromedp.Targets(b.ctx)
	b.check(err)
	i := slices.IndexFunc(frames, func(f *target.Info) bool { return f.Type == "iframe" && f.URL == site })
	if i < 0 {
		t.Fatal("the lecture has no frame with the static page")
	}
	ctx, end := chromedp.NewContext(b.ctx, chromedp.WithTargetID(frames[i].TargetID))
	defer end()
	(&tab{t: t, ctx: ctx}).says(shown)

	b = open(t, lecture(t, served(t)))
	if !slices.ContainsFunc(b.heard(), func(what string) bool { return strings.Contains(what, "frame-ancestors") }) {
		t.Errorf("the browser does not say why it shows no frame: %q", b.heard())
	}
}

// The static page states the policy of the served one, without the part that a page cannot state.
func TestPolicy(t *testing.T) {
	html, err := os.ReadFile(filepath.Join(built.site, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	stated := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="([^"]+)">`).FindSubmatch(html)
	if stated == nil {
		t.Fatal("the static page has no policy")
	}
	address, _, _ := strings.Cut(served(t), "#")
	got, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	if want := string(stated[1]) + "; frame-ancestors 'none'"; got.Header.Get("Content-Security-Policy") != want {
		t.Errorf("served with %q, want %q", got.Header.Get("Content-Security-Policy"), want)
	}
}
