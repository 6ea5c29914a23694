package engine_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/catalog"
	"parley/docs/scenarios"
	"parley/internal/lab/engine"
	"parley/internal/merged"
	"parley/trace"
)

// nodeFiles returns the names and the contents of the traces of four nodes, of a group and of a stream of agreements.
func nodeFiles(t *testing.T) (names []string, texts map[string]string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("..", "..", "..", "testdata", "traces", "*.jsonl"))
	if err != nil || len(found) != 8 {
		t.Fatal(found, err)
	}
	texts = make(map[string]string)
	for _, file := range found {
		names = append(names, filepath.Base(file))
		texts[filepath.Base(file)] = string(must(os.ReadFile(file)))
	}
	return names, texts
}

func newNodesEngine() *engine.Engine {
	return engine.NewWithNodes(catalog.All(), scenarios.Files, "test")
}

// The engine of the browser says that it does not merge.
func TestWithoutNodes(t *testing.T) {
	names, texts := nodeFiles(t)
	for _, text := range []string{bundleOf(names, texts), texts[names[0]]} {
		if got := string(newEngine().KeepFile(strings.NewReader(text))); !strings.HasPrefix(got, `{"error":{"message":"these are traces of nodes`) {
			t.Errorf("got %s", got)
		}
	}
}

// bundleOf writes several files as the page sends them.
func bundleOf(names []string, texts map[string]string) string {
	type file struct {
		Name string `json:"name"`
		Size int    `json:"size"`
	}
	var head struct {
		Files []file `json:"files"`
	}
	all := ""
	for _, name := range names {
		head.Files = append(head.Files, file{name, len(texts[name])})
		all += texts[name]
	}
	return string(must(json.Marshal(head))) + "\n" + all
}

// Traces of nodes answer every question of a run, as text and as a kept file. Flags choose what is shown. What cannot be
// asked of nodes is refused.
func TestNodes(t *testing.T) {
	e := newNodesEngine()
	names, texts := nodeFiles(t)
	bundle := bundleOf(names, texts)
	var kept engine.KeepAnswer
	if err := json.Unmarshal(e.KeepFile(strings.NewReader(bundle)), &kept); err != nil || len(kept.Hash) != 32 {
		t.Fatal(kept, err)
	}
	slices.Reverse(names)
	var again engine.KeepAnswer
	if err := json.Unmarshal(e.KeepFile(strings.NewReader(bundleOf(names, texts))), &again); err != nil || again != kept {
		t.Errorf("another order of the files: got %v, want %v", again, kept)
	}
	for _, flags := range []map[string]string{nil, {"machine": "agree/eig/1/1", "slot": "2"}, {"machine": "group/order"}} {
		for _, q := range []map[string]any{
			{"ask": "run"}, {"ask": "tables"}, {"ask": "story", "from": 1, "count": 50}, {"ask": "event", "event": 5},
			{"ask": "cone", "event": 5}, {"ask": "state", "at": 30}, {"ask": "waiting"}, {"ask": "picture", "name": "rounds"},
			{"ask": "export", "form": "svg"}, {"ask": "export", "form": "trace"},
		} {
			ask := func(run map[string]any) string {
				if run["flags"] = flags; flags == nil {
					delete(run, "flags")
				}
				q["run"] = run
				return string(e.Answer(t.Context(), must(json.Marshal(q)), nil))
			}
			got, want := ask(map[string]any{"kept": kept.Hash[:8]}), ask(map[string]any{"trace": bundle})
			if got != want || strings.HasPrefix(got, `{"error"`) {
				t.Errorf("%s of %v: got %.300s, want %.300s", q["ask"], flags, got, want)
			}
		}
		a := answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": map[string]any{"kept": kept.Hash, "flags": flags}})
		if n := a.Nodes; n == nil || n.Hash != kept.Hash || len(n.Machines) != 2 || len(a.Report.Verdicts) == 0 || len(n.Nodes) != 4 ||
			n.Nodes[1] != (merged.NodeOf{Process: "P2", Node: "node2"}) || !strings.Contains(a.Command, "--machine "+n.Machine) ||
			flags["machine"] != "" && n.Machine != flags["machine"] {
			t.Errorf("%v: %+v, %s", flags, n, a.Command)
		}
		file := answers[engine.ExportAnswer](t, e, map[string]any{"ask": "export", "form": "trace", "run": map[string]any{"kept": kept.Hash, "flags": flags}})
		back := answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": map[string]any{"trace": file.Text, "flags": flags}})
		if back.Report.Trace != a.Report.Trace {
			t.Errorf("%v: the exported traces make the run %s, want %s", flags, back.Report.Trace, a.Report.Trace)
		}
	}
	for flag, value := range map[string]string{"machine": "group/none", "slot": "two", "n": "5"} {
		q := map[string]any{"ask": "run", "run": map[string]any{"kept": kept.Hash, "flags": map[string]string{flag: value}}}
		if got := string(e.Answer(t.Context(), must(json.Marshal(q)), nil)); !strings.Contains(got, `"flag":"`+flag+`"`) {
			t.Errorf("%s %s: %s", flag, value, got)
		}
	}
	for _, q := range []string{`{"ask":"seat","of":"P2",`, `{"ask":"export","form":"scenario",`} {
		if got := string(e.Answer(t.Context(), []byte(q+`"run":{"kept":"`+kept.Hash+`"}}`), nil)); !strings.HasPrefix(got, `{"error"`) {
			t.Errorf("%s: %.300s", q, got)
		}
	}
}

// A bundle that cannot be opened says in which file and at which line. A trace without its end is no mistake.
func TestBadBundles(t *testing.T) {
	names, texts := nodeFiles(t)
	refuses := func(what, want string, change func() []string) {
		t.Helper()
		before := texts
		texts = make(map[string]string)
		for name, text := range before {
			texts[name] = text
		}
		files := change()
		got := string(newNodesEngine().KeepFile(strings.NewReader(bundleOf(files, texts))))
		if want == "" && strings.HasPrefix(got, `{"hash"`) || want != "" && strings.HasPrefix(got, `{"error"`) && strings.Contains(got, want) {
			texts = before
			return
		}
		t.Errorf("%s: got %s, want %s", what, got, want)
		texts = before
	}
	const one, two = "agree-eig-1-1.node1.jsonl", "agree-eig-1-1.node2.jsonl"
	refuses("a broken line", two+", line 3: not an event", func() []string {
		lines := strings.SplitAfter(texts[two], "\n")
		lines[2] = "{\"id\":2,\n"
		texts[two] = strings.Join(lines, "")
		return names
	})
	refuses("a file twice", one+":1 and "+one+":1 are of the same life of node1", func() []string { return append(slices.Clone(names), one) })
	refuses("no file", "", func() []string { return names })
	refuses("two clusters", "group/order of cluster", func() []string {
		texts["group-order.node1.jsonl"] = edited(t, texts["group-order.node1.jsonl"], func(h *trace.Header) { h.Node.Cluster = "other" })
		return []string{"group-order.node1.jsonl", "group-order.node2.jsonl"}
	})
	refuses("a scenario", two+", line 1: not the header of a trace", func() []string {
		texts[two] = "protocol: om\n"
		return names
	})
	refuses("an empty file", two+", line 1: the trace is empty", func() []string {
		texts[two] = ""
		return names
	})
	refuses("a trace without its end", "", func() []string {
		texts[two] = texts[two][:len(texts[two])/2]
		return names
	})
}

// edited changes the header of a trace.
func edited(t *testing.T, text string, change func(*trace.Header)) string {
	t.Helper()
	all, err := trace.ReadAll("", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	change(&all[0].Header)
	var b bytes.Buffer
	if err := trace.Write(&b, all[0].Header, all[0].Log); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A trace of a run that cannot be repeated says so, and why.
func TestUnrepeatable(t *testing.T) {
	e := newEngine()
	text := answers[engine.ExportAnswer](t, e, map[string]any{
		"ask": "export", "form": "trace", "run": map[string]any{"protocol": "om"},
	}).Text
	for want, text := range map[bool]string{
		false: text, true: edited(t, text, func(h *trace.Header) { h.Facts.Unrepeatable = true }),
	} {
		a := answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": map[string]any{"trace": text}})
		if got := strings.HasPrefix(a.Unrepeatable, "This run cannot be repeated exactly: "); got != want {
			t.Errorf("got %q, want it: %t", a.Unrepeatable, want)
		}
	}
}
