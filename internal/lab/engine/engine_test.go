package engine_test

import (
	"encoding/csv"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/catalog"
	"parley/docs/scenarios"
	"parley/internal/costs"
	"parley/internal/lab/cost"
	"parley/internal/lab/engine"
)

// answers asks an engine and returns the answer. It fails the test if there is none.
func answers[A any](t *testing.T, e *engine.Engine, question map[string]any) (a A) {
	t.Helper()
	b, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	var fails struct{ Error *engine.Failure }
	out := e.Answer(t.Context(), b, nil)
	if err := json.Unmarshal(out, &fails); err != nil {
		t.Fatalf("%s: %v in %s", b, err, out)
	}
	if fails.Error != nil {
		t.Fatalf("%.300s: %+v", b, *fails.Error)
	}
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func newEngine() *engine.Engine { return engine.New(catalog.All(), scenarios.Files, "test") }

// Every scenario of the gallery runs, and every question about its run has an answer.
func TestGallery(t *testing.T) {
	e := newEngine()
	about := answers[engine.About](t, e, map[string]any{"ask": "about"})
	gallery := about.Gallery
	if len(gallery) < 60 {
		t.Fatalf("%d scenarios", len(gallery))
	}
	for _, c := range gallery {
		if !slices.ContainsFunc(about.Lessons, func(l engine.Lesson) bool {
			return l.Number == c.Lesson && l.Title != "" && l.Question != ""
		}) {
			t.Errorf("%s: no lesson %q in %+v", c.Name, c.Lesson, about.Lessons)
		}
	}
	for _, c := range gallery {
		t.Run(c.Name, func(t *testing.T) {
			if c.Words == "" || c.Protocol == "" || c.Shows == "" {
				t.Errorf("%+v", c)
			}
			of := map[string]any{"scenario": c.Text}
			ask := func(kind string, more ...any) map[string]any {
				q := map[string]any{"ask": kind, "run": of}
				for pair := range slices.Chunk(more, 2) {
					q[pair[0].(string)] = pair[1]
				}
				return q
			}
			run := answers[engine.RunAnswer](t, e, ask("run"))
			events := run.Report.Events
			if len(run.Pictures) == 0 {
				t.Error("no picture")
			}
			for _, name := range run.Pictures {
				svg := answers[engine.PictureAnswer](t, e, ask("picture", "name", name)).SVG
				if !strings.HasPrefix(svg, "<svg") || strings.Contains(svg, "style=") {
					t.Errorf("%s: %.100s", name, svg)
				}
			}
			for _, owner := range run.Owners {
				answers[engine.PictureAnswer](t, e, ask("picture", "name", "tree", "of", owner))
			}
			tables := answers[engine.TablesAnswer](t, e, ask("tables")).Tables
			if len(run.Rounds) > 0 && len(tables) == 0 {
				t.Error("rounds without a table")
			}
			for _, table := range tables {
				for i, row := range table.Cells {
					for j, c := range row {
						lies := c.Lie && slices.Equal(c.Rows, c.Honest) && c.Total <= 12
						if lies || c.Honest != nil && (!c.Lie || !table.Senders[j].Faulty) {
							t.Errorf("%s to %s: %+v", table.Senders[j].Name, table.Receivers[i].Name, c)
						}
					}
				}
			}
			story := answers[engine.StoryAnswer](t, e, ask("story", "from", 1, "count", 500)).Lines
			if len(story) != min(int(events), 500) {
				t.Errorf("%d lines of %d events", len(story), events)
			}
			for _, at := range []uint64{0, events / 2, events} {
				state := answers[engine.StateAnswer](t, e, ask("state", "at", at)).Processes
				if len(state) != run.Report.N {
					t.Errorf("%d states of %d processes", len(state), run.Report.N)
				}
			}
			answers[engine.EventAnswer](t, e, ask("event", "event", events))
			// The exported scenario is the same run.
			text := answers[engine.ExportAnswer](t, e, ask("export", "form", "scenario")).Text
			again := answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": map[string]any{"scenario": text}})
			if again.Report.Trace != run.Report.Trace {
				t.Errorf("exported as\n%s\ngot trace %s, want %s", text, again.Report.Trace, run.Report.Trace)
			}
			// The trace of the run is the same run, with the same states.
			recorded := map[string]any{"trace": answers[engine.ExportAnswer](t, e, ask("export", "form", "trace")).Text}
			traced := answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": recorded})
			if traced.Report.Trace != run.Report.Trace {
				t.Errorf("read from its trace: got %s, want %s", traced.Report.Trace, run.Report.Trace)
			}
			for _, at := range []uint64{events / 3, events} {
				got := e.Answer(t.Context(), must(json.Marshal(map[string]any{"ask": "state", "at": at, "run": recorded})), nil)
				want := e.Answer(t.Context(), must(json.Marshal(ask("state", "at", at))), nil)
				if string(got) != string(want) {
					t.Errorf("states after %d events differ:\n%.2000s\n%.2000s", at, got, want)
				}
			}
			form := answers[engine.FormAnswer](t, e, ask("form"))
			if form.Error != nil || len(form.Names) != run.Report.N {
				t.Errorf("%+v", form)
			}
		})
	}
}

// A wrong question gets a sentence that says where the fault is.
func TestWrongQuestions(t *testing.T) {
	e := newEngine()
	for _, c := range []struct{ question, flag, says string }{
		{`{"ask":"nonsense"}`, "", "load the page again"},
		{`[`, "", "not understood"},
		{`{"ask":"run","run":{"protocol":"eig"},"more":1}`, "", "not understood"},
		{`{"ask":"run","run":{"protocol":"egi"}}`, "protocol", "unknown protocol"},
		{`{"ask":"run","run":{"protocol":"eig","flags":{"n":"x"}}}`, "n", "whole number"},
		{`{"ask":"run","run":{"protocol":"eig","flags":{"n":"6","m":"2"}}}`, "m", "n > 3m"},
		{`{"ask":"run","run":{"protocol":"eig","flags":{"svg":"/etc/passwd"}}}`, "svg", "no such setting"},
		{`{"ask":"run","run":{"protocol":"eig","flags":{"host":"cluster"}}}`, "host", "simulates"},
		{`{"ask":"run","run":{"scenario":"protocol: eig\nn: 7\nm: x\n"}}`, "", "a number was expected"},
		{`{"ask":"event","event":99999,"run":{"protocol":"eig"}}`, "", "99999"},
		{`{"ask":"story","count":99999,"run":{"protocol":"eig"}}`, "", "99999"},
		{`{"ask":"vote","ref":"P2/x","run":{"protocol":"eig"}}`, "", "no node"},
		{`{"ask":"export","form":"png","run":{"protocol":"eig"}}`, "", "allowed are"},
	} {
		var a struct{ Error engine.Failure }
		if err := json.Unmarshal(e.Answer(t.Context(), []byte(c.question), nil), &a); err != nil {
			t.Fatal(err)
		}
		if a.Error.Flag != c.flag || !strings.Contains(a.Error.Message, c.says) {
			t.Errorf("%s: %+v", c.question, a.Error)
		}
	}
}

// The measured cost of a run without faults equals the formula, or is at most the formula where it is a bound.
func TestCost(t *testing.T) {
	e := newEngine()
	for _, quantity := range []string{"messages", "bits", "rounds", "signatures"} {
		a := answers[cost.Answer](t, e, map[string]any{"ask": "cost", "m": 1, "most": 12, "quantity": quantity})
		rows, err := csv.NewReader(strings.NewReader(a.CSV)).ReadAll()
		if err != nil || len(rows) != 11 || !strings.HasPrefix(a.SVG, "<svg") {
			t.Fatalf("%s: %v, %d rows", quantity, err, len(rows))
		}
		measured := 0
		for _, row := range rows[1:] {
			for i := 1; i < len(row); i += 2 {
				formula, _ := strconv.Atoi(row[i])
				count, err := strconv.Atoi(row[i+1])
				if err != nil {
					continue
				}
				measured++
				atMost := slices.ContainsFunc(a.Limits, func(l costs.Limits) bool { return l.Name == rows[0][i] && l.AtMost })
				if count != formula && !(atMost && count < formula) {
					t.Errorf("%s of %s with n = %s: measured %d, formula %d", quantity, rows[0][i], row[0], count, formula)
				}
			}
		}
		if (measured == 0) != (quantity == "rounds") {
			t.Errorf("%s: %d measured", quantity, measured)
		}
	}
}

// A search finds what "parley explore" finds, reports its progress, and its run can be opened.
func TestExplore(t *testing.T) {
	e := newEngine()
	broken := map[string]any{"protocol": "twophase", "flags": map[string]string{"n": "3", "crashes": "1", "property": "non-blocking", "beyond-bound": "true"}}
	for _, c := range []struct {
		model   map[string]any
		outcome string
	}{
		{map[string]any{"protocol": "om", "flags": map[string]string{"n": "4", "m": "1", "step": "round"}}, "exhausted"},
		{map[string]any{"protocol": "om", "flags": map[string]string{
			"n": "3", "m": "1", "beyond-bound": "true", "step": "round", "faulty": "2",
		}}, "found"},
		{broken, "found"},
	} {
		model := answers[engine.ModelAnswer](t, e, map[string]any{"ask": "model", "model": c.model})
		if model.Error != nil || len(model.Words) < 3 || len(model.Fields) < 10 {
			t.Errorf("%v: %+v", c.model, model)
		}
		found := answers[engine.ExploreAnswer](t, e, map[string]any{"ask": "explore", "model": c.model})
		if found.Outcome != c.outcome || (found.Trace != "") != (c.outcome == "found") || found.States == 0 {
			t.Errorf("%v: %+v", c.model, found)
		}
		if found.Trace == "" {
			continue
		}
		run := answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": map[string]any{"trace": found.Trace}})
		if run.Report.Events == 0 || len(run.Pictures) == 0 {
			t.Errorf("%v: %+v", c.model, run)
		}
	}
	pairs := answers[engine.PairsAnswer](t, e, map[string]any{"ask": "pairs", "model": map[string]any{
		"protocol": "om", "flags": map[string]string{"n": "3", "m": "1", "beyond-bound": "true"},
	}})
	if pairs.Outcome != "found" || len(pairs.Pairs) == 0 || !strings.HasPrefix(pairs.SVG, "<svg") {
		t.Errorf("%+v", pairs)
	}
}

// Every preset ends as it says, and its search has a command.
func TestPresets(t *testing.T) {
	e := newEngine()
	presets := answers[engine.PresetsAnswer](t, e, map[string]any{"ask": "presets"}).Presets
	if len(presets) < 6 {
		t.Errorf("%d presets", len(presets))
	}
	for _, p := range presets {
		t.Run(p.Title, func(t *testing.T) {
			model := answers[engine.ModelAnswer](t, e, map[string]any{"ask": "model", "model": p.Model})
			if model.Error != nil || p.Pairs && model.Unpaired != "" {
				t.Fatalf("%+v, %q", model.Error, model.Unpaired)
			}
			if want := "parley explore " + p.Model.Protocol; !strings.HasPrefix(model.Command, want) {
				t.Errorf("command %q, want %q", model.Command, want)
			}
			kind := "explore"
			if p.Pairs {
				kind = "pairs"
			}
			found := answers[struct{ Outcome string }](t, e, map[string]any{"ask": kind, "model": p.Model})
			if found.Outcome != p.Outcome {
				t.Errorf("%s, want %s", found.Outcome, p.Outcome)
			}
		})
	}
}

// The fields of a search are grouped, and a protocol without rounds says why it has no runs that look the same.
func TestModel(t *testing.T) {
	e := newEngine()
	a := answers[engine.ModelAnswer](t, e, map[string]any{"ask": "model", "model": map[string]any{
		"protocol": "twophase", "flags": map[string]string{"n": "3", "goal": "P2 decides 0"},
	}})
	if want := "parley explore twophase '--goal=P2 decides 0' -n=3"; a.Command != want {
		t.Errorf("command %q, want %q", a.Command, want)
	}
	if a.N != 3 || a.M != 2 {
		t.Errorf("n = %d, m = %d", a.N, a.M)
	}
	if a.Unpaired == "" {
		t.Error("a protocol without rounds has pairs")
	}
	groups := make(map[string][]string)
	for _, f := range a.Fields {
		groups[f.Group] = append(groups[f.Group], f.Name)
	}
	for group, flag := range map[string]string{
		"protocol": "n", "start": "values", "faults": "crashes", "goal": "property", "search": "step",
	} {
		if !slices.Contains(groups[group], flag) {
			t.Errorf("group %s: %v, want %s in it", group, groups[group], flag)
		}
	}
	for _, f := range a.Fields {
		if f.Name == "property" && !slices.Contains(f.Allowed, "non-blocking") {
			t.Errorf("properties: %q", f.Allowed)
		}
	}
	if slices.Contains(groups["protocol"], "indistinguishable") {
		t.Error("the page would set what another question sets")
	}
}

// What a hostile or careless page asks for neither ends the engine nor proves what was not put to the test.
func TestHostileQuestions(t *testing.T) {
	e := newEngine()
	om := func(flags string) string { return `"run":{"protocol":"om","flags":{` + flags + `}}` }
	const beyond = `"n":"3","m":"1","beyond-bound":"true"`
	for _, c := range []struct{ question, says string }{
		{`{"ask":"seat","of":"P2",` + om(`"faulty":"2=random"`) + `}`, ""},
		{`{"ask":"seat","of":"P2","run":{"protocol":"stream","flags":{"faulty":"2=moves:"}}}`, "no rounds"},
		{`{"ask":"run","run":{"protocol":"detector","flags":{"beats":"1000000000"}}}`, "more than"},
		{`{"ask":"state","at":9223372036854775808,` + om(``) + `}`, ""},
		{`{"ask":"state","at":18446744073709551615,` + om(``) + `}`, ""},
		{`{"ask":"search","seconds":5,"property":"nope","free":["P2"],` + om(beyond) + `}`, "no property"},
		{`{"ask":"search","seconds":5,"free":["P1","P2","P3"],` + om(beyond) + `}`, "all processes are faulty"},
		{`{"ask":"search","seconds":18446744074,"free":["P2"],` + om(beyond) + `}`, "allowed are"},
		{`{"ask":"search","seconds":5,"free":["P2"],` + om(beyond+`,"links":"[{from: 1, to: 3, loss: 1}]"`) + `}`, "other faults"},
		{`{"ask":"search","seconds":5,"free":["P2"],` + om(`"n":"4","m":"1","beyond-bound":"true","faulty":"3=omit-send"`) + `}`,
			"draws what it does"},
		{`{"ask":"walk","model":{"protocol":"bracha","flags":{"n":"4","m":"1"}}}`, ""},
	} {
		var a struct{ Error engine.Failure }
		if err := json.Unmarshal(e.Answer(t.Context(), []byte(c.question), nil), &a); err != nil {
			t.Fatalf("%s: %v", c.question, err)
		}
		if c.says == "" && a.Error.Message != "" || !strings.Contains(a.Error.Message, c.says) {
			t.Errorf("%s: %+v", c.question, a.Error)
		}
	}
}

// The run that a search has found shows its states at every event, those of a step that a crash cuts short too. It has no
// scenario, because no seed repeats it.
func TestFoundRunIsWhole(t *testing.T) {
	e := newEngine()
	found := answers[engine.ExploreAnswer](t, e, map[string]any{"ask": "explore", "model": map[string]any{
		"protocol": "twophase",
		"flags":    map[string]string{"n": "3", "crashes": "1", "property": "non-blocking", "beyond-bound": "true"},
	}})
	of := map[string]any{"trace": found.Trace}
	run := answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": of})
	for at := range run.Report.Events + 1 {
		answers[engine.StateAnswer](t, e, map[string]any{"ask": "state", "run": of, "at": at})
	}
	if !strings.HasPrefix(run.Command, "parley trace show ") {
		t.Errorf("the command is %s", run.Command)
	}
	b := e.Answer(t.Context(), must(json.Marshal(map[string]any{"ask": "export", "form": "scenario", "run": of})), nil)
	if !strings.Contains(string(b), "no scenario") {
		t.Errorf("%s", b)
	}
}

// An exported scenario is the same run, whatever its values look like.
func TestExportQuotes(t *testing.T) {
	e := newEngine()
	for _, value := range []string{"-", "@a", ".inf", ".nan", "null", "true", "~", "a: b", "{", "0x1", ""} {
		of := map[string]any{"protocol": "eig", "flags": map[string]string{"values": value}}
		text := answers[engine.ExportAnswer](t, e, map[string]any{"ask": "export", "form": "scenario", "run": of}).Text
		want := answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": of}).Report.Trace
		of = map[string]any{"scenario": text}
		if got := answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": of}).Report.Trace; got != want {
			t.Errorf("%q: exported as\n%s", value, text)
		}
	}
}
