package browser_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// longest is how long a browser may take for anything. It only ends a test that hangs.
const longest = 3 * time.Minute

// tab is a tab of a browser that collects what goes wrong in it.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu    sync.Mutex
	wrong []string
}

// open opens an address in a new browser.
func open(t *testing.T, address string) *tab {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	b := &tab{t: t}
	ctx, end := chromedp.NewContext(t.Context(),
		chromedp.WithAllocatorOptions(chromedp.NoSandbox), // the tests may run as root
		chromedp.WithListener(func(event any) { b.hear(at.Scheme+"://"+at.Host+"/", event) }))
	t.Cleanup(end)
	b.ctx = ctx
	b.do(chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
		_, err := cdp.Call(ctx, to, network.Enable, network.EnableParams{})
		if err != nil {
			return err
		}
		_, err = cdp.Call(ctx, to, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: `addEventListener("securitypolicyviolation", e => {
				console.error("policy violated: " + e.violatedDirective + " by " + (e.blockedURI || e.sample));
			});`,
		})
		return err
	}), chromedp.Navigate(address))
	return b
}

// hear collects errors, warnings, and requests to another origin.
func (b *tab) hear(origin string, event any) {
	var what string
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.ConsoleAPICalledTypeLog && e.Type != runtime.ConsoleAPICalledTypeDebug {
			what = "console: "
			for _, a := range e.Args {
				what += string(a.Value) + a.Description + " "
			}
		}
	case *runtime.EventExceptionThrown:
		what = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			what += " " + e.ExceptionDetails.Exception.Description
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			what = "log: " + e.Entry.Text + " " + e.Entry.URL
		}
	case *network.EventRequestWillBeSent:
		to := e.Request.URL
		if !strings.HasPrefix(to, origin) && !strings.HasPrefix(to, "data:") && !strings.HasPrefix(to, "blob:") {
			what = "request to " + to
		}
	}
	if what != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.wrong = append(b.wrong, what)
	}
}

// do performs actions.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	b.check(chromedp.Do(b.ctx, actions...))
}

func (b *tab) check(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("%v\n%s", err, strings.Join(b.heard(), "\n"))
	}
}

func (b *tab) heard() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wrong
}

// evaluate returns the value of an expression, or of the promise that it is.
func evaluate[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	b.check(err)
	return value
}

// says waits until the page shows a text.
func (b *tab) says(text string) {
	b.t.Helper()
	b.until(`document.body.innerText.includes(` + strconv.Quote(text) + `)`)
}

// clean demands that nothing went wrong.
func (b *tab) clean() {
	b.t.Helper()
	for _, what := range b.heard() {
		b.t.Error(what)
	}
}

// A test of the ear: a page in which everything goes wrong.
func TestTabHears(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Security-Policy", "default-src * 'self'; style-src 'self'")
			_, _ = w.Write([]byte(`<!DOCTYPE html><p style="color:red">text</p><script src="page.js"></script><img src="` +
				other.URL + `/x.png"><img src="/missing.png">`))
		case "/page.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte(`console.error("an error"); console.warn("a warning"); console.log("all well"); nothing();`))
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	b := open(t, s.URL)
	b.says("text")
	all := strings.Join(b.heard(), "\n")
	for _, want := range []string{
		"policy violated: style-src-attr", "an error", "a warning", "exception: ", "nothing is not defined",
		"request to " + other.URL + "/x.png", "404",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("it has not heard %q, but\n%s", want, all)
		}
	}
	if strings.Contains(all, "all well") {
		t.Errorf("it has heard too much:\n%s", all)
	}
}

// reload loads the page again.
var reload = chromedp.Reload()
