// Package server serves the lab (the web page of "parley lab") by HTTP. It serves the files of the page and
// scene.css, the style sheet of the pictures. It also passes the questions of the page to the engine
// (internal/lab/engine), and returns the answers. First the page posts {"token":...} to /token. Then it posts each
// question to /ask, and gets lines of JSON: any number of lines {"progress":...}, and {"answer":...} as the last
// line. For the view "Live" (internal/lab/live), it posts requests to /live/do, and one to /live/watch, and gets lines
// {"state":...} until it closes that request.
//
// # Decisions
//
// The server refuses a request if its header Host names an address that the server does not serve, or if a page of
// another origin made the request. There is one exception: another page may open the lab in a tab of its own, so
// that links to the lab work. Motive: all web pages in the user's browser, and all users of the computer, can reach
// a loopback address. Cost: [Options].Hosts must list every address of the server.
//
// The server refuses a request to /ask that has no token. The page gets the token in the fragment of its address,
// which browsers do not send to servers. It exchanges the token for a cookie that scripts cannot read. Motive: a
// token in the rest of the address would remain in the history and in copied links. Cost: cookies do not
// distinguish ports. If the user opens a page of another server on the same host, that server gets the cookie.
//
// The engine answers at most [Answers] questions at the same time. At most [Waiting] further questions wait, and
// the server refuses all others. Motive: each answer may use as much memory as the engine allows for one answer, so
// the number of answers must be limited. Cost: the server may refuse a question although the computer is idle. A trace
// file is received before it waits for its answer, and at most [Uploads] are received at the same time: a client that
// stalls delays no question.
package server

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// Options say what a handler serves. All fields but Live are necessary.
type Options struct {
	// Answer answers a question. It may call progress with JSON objects until it returns, from one goroutine at a time.
	Answer func(ctx context.Context, question []byte, progress func([]byte)) []byte
	// Live is the cluster of the view of that name. If it is nil, there is none.
	Live Live
	// Keep keeps the run of a trace file, and answers.
	Keep func(from io.Reader) []byte
	// Page has the files of the page.
	Page fs.FS
	// Token is a secret of NewToken.
	Token string
	// Hosts are the values of the header Host that lead to this server: "127.0.0.1:7411".
	Hosts []string
}

// Policy is the content security policy of the page in the form that a page can state itself.
const Policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; " +
	"img-src 'self' blob: data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'"

// server is the handler.
type server struct {
	Options
	files files
	queue queue
	desk  desk
}

// New returns a handler. It reads the files of the page once, and panics if an option is missing.
func New(o Options) http.Handler {
	if o.Answer == nil || o.Keep == nil || o.Page == nil || len(o.Token) < len(NewToken()) || len(o.Hosts) == 0 {
		panic("server: an option is missing")
	}
	return &server{o, newFiles(o.Page), newQueue(), desk{o.Live, make(chan struct{}, Acts)}}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	impatient(w)
	h := w.Header()
	h.Set("Content-Security-Policy", Policy+"; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	err := s.foreign(r)
	if err == nil {
		switch path := r.URL.Path; {
		case path == "/ask":
			err = s.acting("application/json", s.ask)(w, r)
		case path == "/trace":
			err = s.acting("application/jsonl", s.keep)(w, r)
		case path == "/live/do" && s.Live != nil:
			err = s.acting("application/json", s.desk.act)(w, r)
		case path == "/live/watch" && s.Live != nil:
			err = s.acting("application/json", s.desk.watch)(w, r)
		case path == "/token":
			err = s.posting("application/json", s.exchange)(w, r)
		default:
			err = s.files.serve(w, r)
		}
	}
	if err != nil {
		err.write(w)
	}
}

// refusal is why a request was refused, in a sentence for the user.
type refusal struct {
	status int
	text   string
}

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

func (r *refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(r.status)
	fmt.Fprintln(w, r.text) // fails only if the client has gone
}

// handler answers a request, or refuses it and has then written nothing.
type handler func(http.ResponseWriter, *http.Request) *refusal

// foreign refuses requests for another host and of another origin.
func (s *server) foreign(r *http.Request) *refusal {
	if !slices.ContainsFunc(s.Hosts, func(host string) bool { return strings.EqualFold(host, r.Host) }) {
		return refuse(http.StatusForbidden, "Refused: the lab is not served as %.100q: open %s.", r.Host,
			scheme(r)+"://"+s.Hosts[0]+"/")
	}
	origin, from := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	switch {
	case origin != "" && !strings.EqualFold(origin, scheme(r)+"://"+r.Host):
		return refuse(http.StatusForbidden, "Refused: the request comes from the page of another origin, %.100q.", origin)
	case from != "" && from != "same-origin" && from != "none" && !opens(r):
		return refuse(http.StatusForbidden, "Refused: the request comes from the page of another origin.")
	}
	return nil
}

// opens reports whether a browser opens the page in a tab.
func opens(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == "/" &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// posting demands a POST request, with a body of a type, that the page itself has sent. A page of another origin cannot
// send such a type without being asked for its origin first.
func (s *server) posting(kind string, h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) *refusal {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			return refuse(http.StatusMethodNotAllowed, "Refused: %s takes only POST requests.", r.URL.Path)
		}
		if r.Header.Get("Origin") == "" {
			return refuse(http.StatusForbidden, "Refused: the request does not say which page sent it: set Origin to %s.",
				scheme(r)+"://"+r.Host)
		}
		if sent, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || sent != kind {
			return refuse(http.StatusUnsupportedMediaType, "Refused: %s takes only %s.", r.URL.Path, kind)
		}
		return h(w, r)
	}
}

// acting is posting for requests that act: it demands the token too.
func (s *server) acting(kind string, h handler) handler {
	return s.posting(kind, func(w http.ResponseWriter, r *http.Request) *refusal {
		if err := s.stranger(r); err != nil {
			return err
		}
		return h(w, r)
	})
}
