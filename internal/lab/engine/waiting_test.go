package engine_test

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/docs/scenarios"
	"parley/internal/lab/engine"
)

// Scenarios show what processes hold back and wait for, for how long, and where replicas differ.
func TestWaiting(t *testing.T) {
	e := newEngine()
	for name, want := range map[string][]string{
		"fifo":   {"P3 held m2 of P1 waits for message 1 of P1"},
		"atomic": {"P1 held a of P1 at 1 by P1, proposed waits for its final priority", "at 2 by P3, final"},
		"total-order": {
			"P1 held a of P1 at time 1 of P1 waits for acknowledgements of P2, P3, P4", "waits for acknowledgements of P4",
		},
		"twophase-blocks": {
			"P1 waits its locks waits for the votes of P2, P3, P4", "P2 waits its locks waits for the decision of P1 ",
			"P4 waits its locks waits for a process that knows the decision of P1 from",
		},
		"threephase-partition": {"P1 waits its locks waits for the acknowledgements of P2, P3, P4", "P4 waits its locks waits for the decision of P3"},
		"quorum-partition":     {"waits its locks waits for a majority that it can reach"},
		"bank-causal":          {"P1 replica 1150 at 1", "P1 replica 1242 at 2", "P2 replica 1230 at 2", "differs"},
		"bank-atomic":          {"P2 replica 1242 at 2"},
		"eig":                  nil,
	} {
		of := map[string]any{"protocol": name}
		if text, err := fs.ReadFile(scenarios.Files, name+".yaml"); err == nil {
			of = map[string]any{"scenario": string(text)}
		}
		var said []string
		events := answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": of}).Report.Events
		for _, p := range answers[engine.WaitingAnswer](t, e, map[string]any{"ask": "waiting", "run": of}).Processes {
			for _, s := range p.Spans {
				if s.Since == 0 || s.Since > events || s.Until > events || s.Until != 0 && s.Until <= s.Since {
					t.Errorf("%s: %+v", name, s)
				}
				said = append(said, p.Name+" "+words(s))
			}
		}
		for _, text := range want {
			if !slices.ContainsFunc(said, func(line string) bool { return strings.Contains(line, text) }) {
				t.Errorf("%s: no %q in\n%s", name, text, strings.Join(said, "\n"))
			}
		}
		if name == "bank-atomic" && strings.Contains(strings.Join(said, "\n"), "differs") {
			t.Errorf("replicas in one order differ:\n%s", strings.Join(said, "\n"))
		}
		if want == nil && said != nil {
			t.Errorf("%s: %q", name, said)
		}
	}
}

// A process that has decided waits for nothing. What waits for ever has an arrow, on the scale of the picture above.
func TestWaitingForever(t *testing.T) {
	e := newEngine()
	for name, want := range map[string]bool{"twophase": false, "twophase-blocks": true} {
		text, err := fs.ReadFile(scenarios.Files, name+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		of := map[string]any{"scenario": string(text)}
		for _, p := range answers[engine.WaitingAnswer](t, e, map[string]any{"ask": "waiting", "run": of}).Processes {
			for _, s := range p.Spans {
				if forever := s.Until == 0; forever && !want {
					t.Errorf("%s: %s %s", name, p.Name, words(s))
				}
			}
		}
		picture := func(of map[string]any, name string) string {
			return answers[engine.PictureAnswer](t, e, map[string]any{"ask": "picture", "name": name, "run": of}).SVG
		}
		svg := picture(of, "waiting")
		if strings.Contains(svg, "to the end of the run, at 40,200") != want {
			t.Errorf("%s: %s", name, svg)
		}
		scale := regexp.MustCompile(`<line class="guide" [^>]*data-value="[^"]*"[^>]*>`)
		x := regexp.MustCompile(`(x1|data-value)="[^"]*"`)
		places := func(svg string) (out []string) {
			for _, mark := range scale.FindAllString(svg, -1) {
				out = append(out, strings.Join(x.FindAllString(mark, -1), " "))
			}
			return out
		}
		if one, other := places(svg), places(picture(of, "stages")); len(one) < 3 || !slices.Equal(one, other) {
			t.Errorf("%s: the scales are %q and %q", name, one, other)
		}
	}
}

// A faulty process that crashes as its behavior says has no event of that. The plan and the picture show it.
func TestCrashOfBehavior(t *testing.T) {
	e := newEngine()
	of := map[string]any{"protocol": "twophase", "flags": map[string]string{"n": "3", "faulty": "1=crash@500ns", "beyond-bound": "true"}}
	run := answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": of})
	if len(run.Plan) != 1 || !strings.HasPrefix(run.Plan[0], "P1 is faulty and crashes at tick 500: ") {
		t.Errorf("the plan is %q", run.Plan)
	}
	svg := answers[engine.PictureAnswer](t, e, map[string]any{"ask": "picture", "name": "stages", "run": of}).SVG
	if !strings.Contains(svg, "P1 is down from 500") || strings.Contains(svg, "P1 is committed") {
		t.Error(svg)
	}
	form := answers[engine.FormAnswer](t, e, map[string]any{"ask": "form", "run": of})
	if !slices.ContainsFunc(form.Behaviors, func(c engine.Choice) bool { return c.Name == "crash@1000ns" }) {
		t.Errorf("the form offers %v", form.Behaviors)
	}
}

// words describes a span.
func words(s engine.WaitSpan) string {
	text := s.Kind + " " + s.Value
	for _, part := range [][2]string{{" of ", s.From}, {" at ", s.Place}, {" waits for ", s.Waits}} {
		if part[1] != "" {
			text += part[0] + part[1]
		}
	}
	if s.Parts > 0 {
		text += " differs"
	}
	return fmt.Sprintf("%s from %d to %d", text, s.Since, s.Until)
}

// A vector clock counts the deliveries of each process, and a message waits for what its vector counts.
func TestWaitingForVector(t *testing.T) {
	e := newEngine()
	text, err := fs.ReadFile(scenarios.Files, "causal-orders-part.yaml")
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]any{"scenario": string(text), "flags": map[string]string{"form": "vector"}}
	var last []string
	held := false
	for _, p := range answers[engine.WaitingAnswer](t, e, map[string]any{"ask": "waiting", "run": of}).Processes {
		for _, s := range p.Spans {
			if s.Kind == "counts" {
				last = s.Cells
			}
			held = held || p.Name == "P3" && words(s) == fmt.Sprintf("held b of P2 waits for message 1 of P1 from %d to %d",
				s.Since, s.Until)
		}
	}
	if !slices.Equal(last, []string{"1", "1", "0", "1"}) || !held {
		t.Errorf("the last vector is %v; P3 held b back: %t", last, held)
	}
	run := answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": of})
	if !slices.Contains(run.Pictures, "waiting") {
		t.Error(run.Pictures)
	}
	svg := answers[engine.PictureAnswer](t, e, map[string]any{"ask": "picture", "name": "waiting", "run": of}).SVG
	if !strings.Contains(svg, "P3 holds back b of P2 from ") || !strings.Contains(svg, "it waits for message 1 of P1") {
		t.Error(svg)
	}
}

// Pictures mark where deliveries differ in order, what is contaminated, when the network is cut, and when outcomes part.
func TestPicturesMarkWhatBreaks(t *testing.T) {
	e := newEngine()
	for _, c := range []struct {
		scenario, picture string
		want              []string
	}{
		{"causal-orders-part", "order", []string{"P3 delivers b before x, and P4 delivers x first"}},
		{"contamination", "order", []string{`class="taint"`, "contaminated: it depends on a missed delivery"}},
		{"threephase-partition", "stages", []string{"the network is cut from 800", "the outcomes differ from 7,200"}},
		{"clock", "clocks", []string{"Bound: 5893 = delta + delta * slew / 10^6, with delta = 5612"}},
	} {
		text, err := fs.ReadFile(scenarios.Files, c.scenario+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		of := map[string]any{"scenario": string(text)}
		svg := answers[engine.PictureAnswer](t, e, map[string]any{"ask": "picture", "name": c.picture, "run": of}).SVG
		for _, want := range c.want {
			if !strings.Contains(svg, want) {
				t.Errorf("%s: no %q", c.scenario, want)
			}
		}
	}
	for _, scenario := range []string{"twophase", "total-order"} { // nothing breaks
		text, err := fs.ReadFile(scenarios.Files, scenario+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"order", "stages"} {
			svg := answers[engine.PictureAnswer](t, e, map[string]any{
				"ask": "picture", "name": name, "run": map[string]any{"scenario": string(text)},
			}).SVG
			for _, mark := range []string{"inversion", "taint", "parting", "cutoff"} {
				if strings.Contains(svg, `class="`+mark) {
					t.Errorf("%s: %s", scenario, mark)
				}
			}
		}
	}
}
