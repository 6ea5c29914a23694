package server_test

import (
	"io/fs"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/internal/draw/svg"
	"parley/internal/lab/page"
	"parley/internal/lab/server"
)

// Each file has its type, and a tag that changes only with its contents.
func TestFiles(t *testing.T) {
	inBubble(t, echo, func(r *rig) {
		for path, want := range map[string]struct{ kind, body string }{
			"/":            {"text/html; charset=utf-8", "<p>hello"},
			"/index.html":  {"text/html; charset=utf-8", "<p>hello"},
			"/app.js":      {"text/javascript; charset=utf-8", "import './vendor/x.js'"},
			"/app.css":     {"text/css; charset=utf-8", "p{}"},
			"/vendor/x.js": {"text/javascript; charset=utf-8", "export default 1"},
			"/scene.css":   {"text/css; charset=utf-8", string(svg.Sheet())},
		} {
			got, body := r.do(r.request("GET", path, ""))
			if got.StatusCode != 200 || body != want.body {
				t.Errorf("%s: status %d, %.100q", path, got.StatusCode, body)
			}
			if kind := got.Header.Get("Content-Type"); kind != want.kind {
				t.Errorf("%s: type %q, want %q", path, kind, want.kind)
			}
			if cached := got.Header.Get("Cache-Control"); cached != "no-cache" {
				t.Errorf("%s: Cache-Control %q", path, cached)
			}
			q := r.request("GET", path, "")
			q.Header.Set("If-None-Match", got.Header.Get("ETag"))
			if again, body := r.do(q); again.StatusCode != 304 || body != "" {
				t.Errorf("%s with its tag %s: status %d", path, got.Header.Get("ETag"), again.StatusCode)
			}
			q.Header.Set("If-None-Match", `"another"`)
			if again, _ := r.do(q); again.StatusCode != 200 {
				t.Errorf("%s with another tag: status %d", path, again.StatusCode)
			}
			if head, body := r.do(r.request("HEAD", path, "")); head.StatusCode != 200 || body != "" ||
				head.Header.Get("ETag") != got.Header.Get("ETag") {
				t.Errorf("%s: head: status %d, %q", path, head.StatusCode, body)
			}
		}
	})
	tag := func(text string) string {
		w := httptest.NewRecorder()
		server.New(server.Options{
			Answer: echo, Keep: keeping, Page: pageWith(text), Token: server.NewToken(), Hosts: []string{host},
		}).
			ServeHTTP(timeless{w}, httptest.NewRequest("GET", origin+"/", nil))
		return w.Header().Get("ETag")
	}
	one, again, two := tag("one"), tag("one"), tag("two")
	if one != again || one == two {
		t.Errorf("tags: %s, %s, %s", one, again, two)
	}
}

// Every file of the real page has a type.
func TestPageHasTypes(t *testing.T) {
	h := server.New(server.Options{Answer: echo, Keep: keeping, Page: page.Files, Token: server.NewToken(), Hosts: []string{host}})
	err := fs.WalkDir(page.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(timeless{w}, httptest.NewRequest("GET", origin+"/"+name, nil))
		if kind := w.Header().Get("Content-Type"); w.Code != 200 || strings.Contains(kind, "octet-stream") {
			t.Errorf("%s: status %d, type %q", name, w.Code, kind)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
