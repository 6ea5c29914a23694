package browser_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"parley/catalog"
	"parley/docs/scenarios"
	"parley/internal/lab/engine"
)

// storedIn returns the stored answers of the static form by their questions, for each file.
func storedIn(t *testing.T) map[string]map[string]json.RawMessage {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(built.site, "answers-*", "*.json"))
	if err != nil || len(found) < 2 {
		t.Fatalf("%d files of answers, %v", len(found), err)
	}
	all := make(map[string]map[string]json.RawMessage)
	for _, file := range found {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var answers map[string]json.RawMessage
		if err := json.Unmarshal(b, &answers); err != nil || len(answers) == 0 {
			t.Fatalf("%s: %d answers, %v", file, len(answers), err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = answers
	}
	return all
}

// Every stored answer has the bytes that the engine in the browser answers.
func TestStoredAnswersAreOfTheEngine(t *testing.T) {
	e := newEngines(t)
	for name, answers := range storedIn(t) {
		var questions, want []string
		for question, answer := range answers {
			sum := sha256.Sum256(answer)
			questions, want = append(questions, question), append(want, hex.EncodeToString(sum[:]))
		}
		for i, got := range evaluate[[]string](e.tab, "digestsOf("+literal(questions)+")") {
			if got != want[i] {
				t.Errorf("%s: %.300s: the answers differ: %s", name, questions[i], parting(string(answers[questions[i]]),
					evaluate[string](e.tab, "askEngine("+literal(questions[i])+")")))
			}
		}
	}
	e.tab.clean()
}

// held keeps the engine from the browser until the test says so.
func held(until <-chan struct{}) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, ".wasm") {
				select {
				case <-until:
				case <-r.Context().Done():
				}
			}
			h.ServeHTTP(w, r)
		})
	}
}

// listening opens the static form, and has the page note the questions that its worker gets in globalThis.asked.
func listening(t *testing.T, path, fragment string, around func(http.Handler) http.Handler) *tab {
	t.Helper()
	b := open(t, "about:blank")
	b.do(chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
		_, err := cdp.Call(ctx, to, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: `{
				const post = Worker.prototype.postMessage;
				globalThis.asked = [];
				Worker.prototype.postMessage = function (message, ...more) {
					if (message.question) asked.push(message.question);
					return post.call(this, message, ...more);
				};
			}`,
		})
		return err
	}), chromedp.Navigate(static(t, path, around)+fragment))
	return b
}

// The page shows every run of the gallery without the engine, wherever its folder is.
func TestGalleryWithoutEngine(t *testing.T) {
	never := make(chan struct{})
	b := listening(t, "/some/where/", "#/gallery", held(never))
	b.until(`document.querySelector(".thumb svg")`)
	native := engine.New(catalog.All(), scenarios.Files, "")
	for _, card := range ask[engine.About](t, &engines{native: native}, `{"ask":"about"}`).Gallery {
		b.follow("#/run?g=" + card.Name)
		b.until(`document.querySelector("h1")?.textContent.toLowerCase() === ` + literal(strings.ToLower(card.Shows)) + ` && ` +
			`document.querySelector(".story .line.now") && document.querySelector(".state") && ` +
			`[...document.querySelectorAll(".picture")].every(picture => picture.querySelector(".pan svg"))`)
		if questions := evaluate[[]string](b, "asked"); len(questions) > 0 {
			t.Fatalf("%s: %d questions without a stored answer, such as %.300s", card.Name, len(questions),
				questions[len(questions)-1])
		}
	}
	if errs := slices.DeleteFunc(b.heard(), func(what string) bool { return strings.HasPrefix(what, "request to http") }); len(errs) > 0 {
		t.Error(errs)
	}
}

// The engine answers what no stored answer answers, and once it is ready, everything.
func TestEngineTakesOver(t *testing.T) {
	ready := make(chan struct{})
	b := listening(t, "/", "#/run?g=article", held(ready))
	b.until(sceneIsThere)
	b.follow("#/run?g=article&seed=5")
	b.until(`asked.some(text => text.includes('"ask":"run"') && text.includes('"seed":"5"'))`)
	if questions := evaluate[[]string](b, "asked"); len(questions) != 1 {
		t.Errorf("the engine was asked %d questions: %.300q", len(questions), questions)
	}
	close(ready)
	b.until(`document.querySelector(".title")?.textContent.includes("seed 5")`)
	b.follow("#/run?g=article")
	b.until(`asked.some(text => text.includes('"ask":"run"') && text.includes('"flags":{}'))`)
}

// Without the stored answers the page waits for the engine.
func TestNoStoredAnswers(t *testing.T) {
	b := open(t, static(t, "/", func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/answers-") {
				http.NotFound(w, r)
				return
			}
			h.ServeHTTP(w, r)
		})
	})+"#/run?g=article")
	b.until(sceneIsThere)
	for _, what := range b.heard() {
		if !strings.Contains(what, "404") {
			t.Error(what)
		}
	}
}
