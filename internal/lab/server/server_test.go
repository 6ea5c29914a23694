package server_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/internal/lab/engine"
	"parley/internal/lab/server"
)

// The server refuses what it should not answer, says why in one sentence, and answers it if only the reason is absent.
func TestRefusals(t *testing.T) {
	set := func(key, value string) func(*http.Request) {
		return func(q *http.Request) {
			if q.Header.Del(key); value != "" {
				q.Header.Set(key, value)
			}
		}
	}
	to := func(host string) func(*http.Request) { return func(q *http.Request) { q.Host = host } }
	by := func(method string) func(*http.Request) { return func(q *http.Request) { q.Method = method } }
	token := strings.Repeat("A", len(server.NewToken()))
	for _, c := range []struct {
		name, path, body string
		change           func(*http.Request)
		status           int
		want             string
	}{
		{"right question", "/ask", "{}", nil, 200, ""},
		{"other name of the host", "/ask", "{}", func(q *http.Request) {
			q.Host = "LOCALHOST:7411"
			q.Header.Set("Origin", "http://localhost:7411")
		}, 200, ""},
		{"own page", "/ask", "{}", set("Sec-Fetch-Site", "same-origin"), 200, ""},
		{"charset", "/ask", "{}", set("Content-Type", "application/json; charset=utf-8"), 200, ""},
		{"two cookies", "/ask", "{}", func(q *http.Request) {
			q.Header.Set("Cookie", "parley-lab-7411=old; "+q.Header.Get("Cookie"))
		}, 200, ""},
		{"rebound name", "/ask", "{}", to("evil.example:7411"), 403, `not served as "evil.example:7411": open http://127.0.0.1:7411/`},
		{"other port", "/ask", "{}", to("127.0.0.1:80"), 403, "not served as"},
		{"other origin", "/ask", "{}", set("Origin", "http://127.0.0.1:8000"), 403, `of another origin, "http://127.0.0.1:8000"`},
		{"other scheme", "/ask", "{}", set("Origin", "https://127.0.0.1:7411"), 403, "of another origin"},
		{"sandboxed page", "/ask", "{}", set("Origin", "null"), 403, `of another origin, "null"`},
		{"no origin", "/ask", "{}", set("Origin", ""), 403, "does not say which page sent it: set Origin to http://127.0.0.1:7411"},
		{"other site", "/ask", "{}", set("Sec-Fetch-Site", "cross-site"), 403, "of another origin"},
		{"other port of the site", "/ask", "{}", set("Sec-Fetch-Site", "same-site"), 403, "of another origin"},
		{"not posted", "/ask", "", by("GET"), 405, "/ask takes only POST requests"},
		{"put", "/token", "", by("PUT"), 405, "/token takes only POST requests"},
		{"form", "/ask", "{}", set("Content-Type", "application/x-www-form-urlencoded"), 415, "/ask takes only application/json"},
		{"plain text", "/ask", "{}", set("Content-Type", "text/plain"), 415, "takes only application/json"},
		{"no type", "/ask", "{}", set("Content-Type", ""), 415, "takes only application/json"},
		{"no cookie", "/ask", "{}", set("Cookie", ""), 401, "open the address that the command printed"},
		{"wrong cookie", "/ask", "{}", set("Cookie", "parley-lab-7411="+token), 401, "open the address"},
		{"empty cookie", "/ask", "{}", set("Cookie", "parley-lab-7411="), 401, "open the address"},
		{"cookie of another port", "/ask", "{}", func(q *http.Request) {
			q.Header.Set("Cookie", strings.Replace(q.Header.Get("Cookie"), "7411", "7412", 1))
		}, 401, "open the address"},
		{"wrong token", "/token", `{"token":"` + token + `"}`, nil, 403, "the token in the address is wrong"},
		{"no token", "/token", `{}`, nil, 403, "the token in the address is wrong"},
		{"no JSON", "/token", `token`, nil, 403, "the token in the address is wrong"},
		{"long token", "/token", strings.Repeat("x", 1025), nil, 413, "more than 1024 bytes"},
		{"largest question", "/ask", strings.Repeat(" ", engine.MaxQuestion), nil, 200, ""},
		{"larger question", "/ask", strings.Repeat(" ", engine.MaxQuestion+1), nil, 413, "more than 2097152 bytes"},
		{"posted file", "/", "", nil, 405, "a file takes only GET requests"},
		{"unknown file", "/nothing", "", by("GET"), 404, `There is no file "/nothing": the page is at http://127.0.0.1:7411/.`},
		{"folder", "/vendor/", "", by("GET"), 404, "There is no file"},
		{"path", "/../server.go", "", by("GET"), 404, "There is no file"},
		{"file for another site", "/app.js", "", func(q *http.Request) {
			q.Method = "GET"
			q.Header = http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"no-cors"}, "Sec-Fetch-Dest": {"script"}}
		}, 403, "of another origin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, echo, func(r *rig) {
				q := r.request("POST", c.path, c.body)
				if c.change != nil {
					c.change(q)
				}
				got, text := r.do(q)
				if got.StatusCode != c.status {
					t.Fatalf("status %d, want %d: %.200s", got.StatusCode, c.status, text)
				}
				if c.status == 200 {
					return
				}
				if !strings.Contains(text, c.want) || strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, ".\n") {
					t.Errorf("got %q, want one sentence with %q", text, c.want)
				}
				if got := got.Header.Get("Content-Type"); got != "text/plain; charset=utf-8" {
					t.Errorf("the sentence is %q", got)
				}
			})
		})
	}
}

// A page of another site may open the lab in a tab, and may not put it into its frame.
func TestOpenedByAnotherSite(t *testing.T) {
	for dest, status := range map[string]int{"document": 200, "iframe": 403, "object": 403, "": 403} {
		inBubble(t, echo, func(r *rig) {
			q := r.request("GET", "/", "")
			q.Header = http.Header{
				"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}, "Sec-Fetch-Dest": {dest},
			}
			if got, _ := r.do(q); got.StatusCode != status {
				t.Errorf("destination %q: status %d, want %d", dest, got.StatusCode, status)
			}
		})
	}
}

// Every response, also a refusal, has the headers that confine the page.
func TestHeaders(t *testing.T) {
	for _, path := range []string{"/", "/app.js", "/nothing", "/ask", "/token"} {
		inBubble(t, echo, func(r *rig) {
			got, _ := r.do(r.request("GET", path, ""))
			for key, want := range map[string]string{
				"Content-Security-Policy": "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; " +
					"img-src 'self' blob: data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; " +
					"frame-ancestors 'none'",
				"X-Content-Type-Options":       "nosniff",
				"Referrer-Policy":              "no-referrer",
				"Cross-Origin-Opener-Policy":   "same-origin",
				"Cross-Origin-Resource-Policy": "same-origin",
			} {
				if got := got.Header.Get(key); got != want {
					t.Errorf("%s: %s: got %q, want %q", path, key, got, want)
				}
			}
			if got := got.Header.Get("Access-Control-Allow-Origin"); got != "" {
				t.Errorf("%s is open to %s", path, got)
			}
		})
	}
}

// timeless is a recorder whose deadlines never come.
type timeless struct{ *httptest.ResponseRecorder }

func (timeless) SetReadDeadline(time.Time) error  { return nil }
func (timeless) SetWriteDeadline(time.Time) error { return nil }

// The token becomes a cookie that no script and no other site gets, and with the cookie a question is answered.
func TestToken(t *testing.T) {
	for _, secure := range []bool{false, true} {
		inBubble(t, echo, func(r *rig) {
			q := r.request("POST", "/token", `{"token":"`+r.token+`"}`)
			q.Header.Del("Cookie")
			w := httptest.NewRecorder()
			h := server.New(server.Options{
				Answer: echo, Keep: keeping, Page: pageWith(""), Token: r.token, Hosts: []string{host},
			})
			if secure {
				q.TLS = new(tls.ConnectionState)
				q.Header.Set("Origin", "https://"+host)
			}
			h.ServeHTTP(timeless{w}, q)
			if w.Code != http.StatusNoContent {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			set := w.Result().Cookies()
			if len(set) != 1 {
				t.Fatalf("cookies: %v", set)
			}
			c := set[0]
			if c.Name != "parley-lab-7411" || c.Value != r.token || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode ||
				c.Secure != secure || c.Path != "/" || c.Domain != "" || c.MaxAge != 0 || !c.Expires.IsZero() {
				t.Errorf("cookie: %s", c)
			}
			q = r.request("POST", "/ask", "{}")
			q.Header.Set("Cookie", c.Name+"="+c.Value)
			if got, text := r.do(q); got.StatusCode != 200 {
				t.Errorf("with the cookie: status %d: %s", got.StatusCode, text)
			}
		})
	}
}

// New tokens differ, and a handler without its options is none.
func TestOptions(t *testing.T) {
	one, other := server.NewToken(), server.NewToken()
	if one == other || len(one) != 43 {
		t.Errorf("tokens %q and %q", one, other)
	}
	for _, o := range []server.Options{
		{Keep: keeping, Page: pageWith(""), Token: one, Hosts: []string{host}},
		{Answer: echo, Page: pageWith(""), Token: one, Hosts: []string{host}},
		{Answer: echo, Keep: keeping, Token: one, Hosts: []string{host}},
		{Answer: echo, Keep: keeping, Page: pageWith(""), Hosts: []string{host}},
		{Answer: echo, Keep: keeping, Page: pageWith(""), Token: one},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a handler was made of %+v", o)
				}
			}()
			server.New(o)
		}()
	}
}
