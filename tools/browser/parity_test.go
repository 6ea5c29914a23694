package browser_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/catalog"
	"parley/docs/scenarios"
	"parley/internal/lab/engine"
	"parley/internal/lab/traitor"
)

// engines are the same engine twice: compiled for this computer, and as WebAssembly in a worker of a page.
type engines struct {
	tab    *tab
	native *engine.Engine
	kinds  map[string]int // the questions asked, by kind
}

// newEngines starts the engines.
func newEngines(t *testing.T) *engines {
	t.Helper()
	b := open(t, static(t, "/", nil))
	evaluate[bool](b, `(() => {
		const worker = new Worker("`+worker(t)+`", {type: "module"}), open = new Map();
		worker.onmessage = ({data}) => {
			if (data.failed) throw new Error(data.failed);
			if (data.answer === undefined) return;
			open.get(data.id)(data.answer);
			open.delete(data.id);
		};
		worker.postMessage({});
		let last = 0;
		globalThis.askEngine = question => new Promise(done => {
			open.set(++last, done);
			worker.postMessage({id: last, question});
		});
		globalThis.digestsOf = async questions => {
			const out = [];
			for (const question of questions) {
				const sum = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(await askEngine(question)));
				out.push(Array.from(new Uint8Array(sum), b => b.toString(16).padStart(2, "0")).join(""));
			}
			return out;
		};
		return true;
	})()`)
	about := evaluate[string](b, `askEngine('{"ask":"about"}')`)
	var a engine.About
	if err := json.Unmarshal([]byte(about), &a); err != nil || !strings.HasPrefix(a.Version, "commit ") {
		t.Fatalf("version %q, %v", a.Version, err)
	}
	return &engines{b, engine.New(catalog.All(), scenarios.Files, a.Version), make(map[string]int)}
}

// worker returns the name of the static page's worker.
func worker(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(built.site, "worker-*.js"))
	if err != nil || len(found) != 1 {
		t.Fatalf("workers: %q, %v", found, err)
	}
	return filepath.Base(found[0])
}

// question makes a question about a run.
func question(kind string, run map[string]any, more ...any) string {
	q := map[string]any{"ask": kind}
	if run != nil {
		q["run"] = run
	}
	for pair := range slices.Chunk(more, 2) {
		q[pair[0].(string)] = pair[1]
	}
	return literal(q)
}

func literal(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a text
	}
	return string(b)
}

// ask returns the answer of the native engine.
func ask[A any](t *testing.T, e *engines, question string) (a A) {
	t.Helper()
	out := e.native.Answer(context.Background(), []byte(question), nil)
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatalf("%.200s: %v in %.200s", question, err, out)
	}
	return a
}

// compare demands that both engines give the same answers, none of which is an error.
func (e *engines) compare(t *testing.T, questions ...string) {
	t.Helper()
	for some := range slices.Chunk(questions, 20) {
		for i, got := range evaluate[[]string](e.tab, "digestsOf("+literal(some)+")") {
			var asked struct{ Ask string }
			if err := json.Unmarshal([]byte(some[i]), &asked); err != nil {
				t.Fatal(err)
			}
			e.kinds[asked.Ask]++
			want := e.native.Answer(context.Background(), []byte(some[i]), nil)
			if strings.HasPrefix(string(want), `{"error":{`) {
				t.Errorf("%.200s: %.300s", some[i], want)
			}
			if sum := sha256.Sum256(want); got != hex.EncodeToString(sum[:]) {
				t.Errorf("%.300s: the answers differ: %s", some[i],
					parting(evaluate[string](e.tab, "askEngine("+literal(some[i])+")"), string(want)))
			}
		}
	}
}

// measured are the parts of the answer of a search that differ from one search to the next, because they are measured
// or depend on which of several threads is first at a state.
var measured = regexp.MustCompile(`"(?:wall_seconds|bytes|runs)":[0-9.e+-]+|in [0-9.]+ m?s|[0-9.]+ [KMG]iB`)

// compareSearches is compare for a search that measures itself.
func (e *engines) compareSearches(t *testing.T, question string) {
	t.Helper()
	var asked struct{ Ask string }
	if err := json.Unmarshal([]byte(question), &asked); err != nil {
		t.Fatal(err)
	}
	e.kinds[asked.Ask]++
	got := evaluate[string](e.tab, "askEngine("+literal(question)+")")
	want := string(e.native.Answer(context.Background(), []byte(question), nil))
	if strings.HasPrefix(want, `{"error":{`) {
		t.Errorf("%.200s: %.300s", question, want)
	}
	if got, want = measured.ReplaceAllString(got, "…"), measured.ReplaceAllString(want, "…"); got != want {
		t.Errorf("%.300s: the answers differ: %s", question, parting(got, want))
	}
}

// parting shows where two texts part.
func parting(got, want string) string {
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	from := max(at-80, 0)
	return fmt.Sprintf("at byte %d: %.200q, want %.200q", at, got[from:], want[from:])
}

// node is the reference of a node of an information tree.
var node = regexp.MustCompile(`data-ref="(P\d+/[^"]+)"`)

// The engine in the browser answers every question about every scenario with the same bytes as the native one. Several
// pairs of engines share the questions.
func TestParity(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := make(map[string]bool) // kinds of questions
	t.Run("engines", func(t *testing.T) {
		for name, some := range map[string]func(*testing.T, *engines){
			"scenarios, even": func(t *testing.T, e *engines) { compareScenarios(t, e, 0) },
			"scenarios, odd":  func(t *testing.T, e *engines) { compareScenarios(t, e, 1) },
			"protocols":       compareProtocols, "levels": compareLevels, "models": compareModels,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				e := newEngines(t)
				some(t, e)
				e.tab.clean()
				mu.Lock()
				defer mu.Unlock()
				for kind := range e.kinds { // order: a set
					asked[kind] = true
				}
			})
		}
	})
	source, err := os.ReadFile("../../internal/lab/engine/engine.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := regexp.MustCompile(`(?m)^\t"([a-z]+)": +\S`).FindAllSubmatch(source, -1)
	if len(kinds) < 14 {
		t.Fatalf("engine.go has %d kinds of questions", len(kinds))
	}
	for _, kind := range kinds {
		if !asked[string(kind[1])] {
			t.Errorf("no question of the kind %s was asked", kind[1])
		}
	}
}

// compareScenarios compares answers about every second scenario of the gallery.
func compareScenarios(t *testing.T, e *engines, from int) {
	for i, card := range ask[engine.About](t, e, `{"ask":"about"}`).Gallery {
		if i%2 != from {
			continue
		}
		t.Run(card.Name, func(t *testing.T) {
			e.compare(t, questionsAbout(t, e, map[string]any{"scenario": card.Text})...)
		})
	}
}

// compareProtocols compares answers about runs of each protocol, and about the protocols together.
func compareProtocols(t *testing.T, e *engines) {
	e.compare(t, `{"ask":"about"}`, `{"ask":"guide"}`)
	for _, quantity := range []string{"messages", "bits", "rounds", "signatures"} {
		e.compare(t, question("cost", nil, "m", 2, "most", 12, "quantity", quantity))
	}
	for _, p := range catalog.All() {
		t.Run(p.Name, func(t *testing.T) {
			for seed := range 3 {
				of := map[string]any{"protocol": p.Name, "flags": map[string]string{"seed": fmt.Sprint(seed)}}
				e.compare(t, question("run", of), question("export", of, "form", "trace"))
			}
		})
	}
}

// compareLevels compares answers about the levels of the traitor.
func compareLevels(t *testing.T, e *engines) {
	e.compare(t, `{"ask":"levels"}`)
	for _, l := range traitor.Levels {
		t.Run("level "+l.ID, func(t *testing.T) {
			flags := maps.Clone(l.Flags)
			var seats []string
			for _, name := range l.Seats {
				seats = append(seats, strings.TrimPrefix(name, "P")+"=moves:")
			}
			if len(seats) > 0 {
				flags["faulty"] = strings.Join(seats, ",")
			}
			of := map[string]any{"protocol": l.Protocol, "flags": flags}
			for _, name := range l.Seats {
				e.compare(t, question("seat", of, "of", name))
			}
			if l.Proof == traitor.Searched {
				e.compare(t, question("search", of, "free", l.Seats, "property", l.Property, "seconds", 600,
					"split", l.Split))
			}
			if l.Proof == traitor.Sampled {
				e.compare(t, question("trials", nil, "level", l.ID, "seconds", 600))
			}
		})
	}
}

// compareModels compares searches and walks.
func compareModels(t *testing.T, e *engines) {
	for _, m := range []struct {
		protocol string
		flags    map[string]string
	}{
		{"om", map[string]string{"n": "4", "m": "1", "step": "round", "for": "10m"}},
		{"om", map[string]string{"n": "3", "m": "1", "step": "round", "for": "10m", "beyond-bound": "true"}},
		{"diffusion", map[string]string{"n": "3", "crashes": "1", "for": "10m"}},
	} {
		model := map[string]any{"protocol": m.protocol, "flags": m.flags}
		e.compare(t, literal(map[string]any{"ask": "model", "model": model}))
		e.compareSearches(t, literal(map[string]any{"ask": "explore", "model": model}))
		for moves := []string{}; len(moves) < 6; {
			step := literal(map[string]any{"ask": "walk", "model": model, "moves": moves})
			e.compare(t, step, literal(map[string]any{"ask": "samples", "model": model, "moves": moves, "count": 2, "seed": 1}))
			next := ask[engine.WalkAnswer](t, e, step).Next
			if len(next) == 0 {
				break
			}
			moves = append(moves, next[len(moves)%len(next)].Name)
		}
	}
	model := map[string]any{"protocol": "eig", "flags": map[string]string{"n": "3", "m": "1", "beyond-bound": "true", "for": "10m"}}
	e.compareSearches(t, literal(map[string]any{"ask": "pairs", "model": model}))
	e.compare(t, `{"ask":"presets"}`)
	for _, p := range ask[engine.PresetsAnswer](t, e, `{"ask":"presets"}`).Presets {
		t.Run(p.Title, func(t *testing.T) {
			e.compare(t, question("model", nil, "model", p.Model))
			if p.Pairs {
				e.compare(t, question("pairs", nil, "model", p.Model))
			}
		})
	}
}

// questionsAbout returns questions of every kind about a run.
func questionsAbout(t *testing.T, e *engines, of map[string]any) []string {
	t.Helper()
	all := []string{question("run", of), question("form", of), question("tables", of), question("waiting", of)}
	run := ask[engine.RunAnswer](t, e, all[0])
	for _, name := range run.Pictures {
		all = append(all, question("picture", of, "name", name))
	}
	for _, owner := range run.Owners {
		tree := question("picture", of, "name", "tree", "of", owner)
		all = append(all, tree)
		found := node.FindAllStringSubmatch(ask[engine.PictureAnswer](t, e, tree).SVG, 8)
		for _, ref := range found {
			all = append(all, question("vote", of, "ref", ref[1]))
		}
	}
	events := run.Report.Events
	all = append(all, question("story", of, "from", 1, "count", 500))
	for _, at := range []uint64{1, events/3 + 1, events} {
		all = append(all, question("event", of, "event", at), question("cone", of, "event", at),
			question("state", of, "at", at))
	}
	variables := make(map[string]bool) // the history of a variable is that at all processes
	for _, p := range ask[engine.StateAnswer](t, e, question("state", of, "at", events)).Processes {
		for _, v := range p.Variables[:min(len(p.Variables), 2)] {
			if !variables[v.Name] {
				variables[v.Name] = true
				all = append(all, question("history", of, "variable", v.Name))
			}
		}
	}
	for _, form := range []string{"svg", "trace", "scenario"} {
		all = append(all, question("export", of, "form", form))
	}
	recorded := map[string]any{"trace": ask[engine.ExportAnswer](t, e, question("export", of, "form", "trace")).Text}
	for _, p := range run.Processes {
		if p.Behavior == "" {
			all = append(all, question("knowledge", of, "of", p.Name, "at", events/2))
			break
		}
	}
	all = append(all, literal(map[string]any{"ask": "compare", "a": of, "b": recorded}))
	return append(all, question("run", recorded), question("state", recorded, "at", events))
}

// A search in the browser reports its progress, and ends early if it is stopped; meanwhile the worker answers other
// questions.
func TestStop(t *testing.T) {
	t.Parallel()
	b := open(t, static(t, "/", nil))
	run := map[string]any{"protocol": "eig", "flags": map[string]string{"n": "7", "m": "2", "faulty": "2=moves:,3=moves:"}}
	search := question("search", run, "free", []string{"P2", "P3"}, "property", "agreement", "seconds", 600)
	// The search takes minutes.
	got := evaluate[[]string](b, `new Promise(done => {
		const worker = new Worker("`+worker(t)+`", {type: "module"}), heard = [];
		worker.onmessage = ({data}) => {
			if (data.failed) done(["failed: " + data.failed]);
			if (data.id === 1 && data.progress && heard.length === 0) {
				heard.push("progress");
				worker.postMessage({id: 2, question: '{"ask":"levels"}'});
			}
			if (data.id === 2) {
				heard.push("levels");
				worker.postMessage({stop: 1});
			}
			if (data.id === 1 && data.answer) done([...heard, JSON.parse(data.answer).outcome ?? data.answer]);
		};
		worker.postMessage({});
		worker.postMessage({id: 1, question: `+literal(search)+`});
	})`)
	if want := []string{"progress", "levels", "interrupted"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	b.clean()
}
