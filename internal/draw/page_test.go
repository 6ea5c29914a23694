package draw_test

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley"
	"parley/internal/draw"
	"parley/internal/draw/reading"
	"parley/internal/draw/scene"
	"parley/internal/draw/svg"
	"parley/trace"
)

// scenes returns all kinds of pictures.
func scenes(t *testing.T) map[string]scene.Scene {
	t.Helper()
	a, l, c, r := article(), liars(), crashed(), random(1)
	of := func(p play) reading.TreeOptions {
		return reading.TreeOptions{Style: p.style, Of: 1, Title: "Information tree of P2"}
	}
	both := func(p play) scene.Scene {
		d := p.diagram()
		return figure(heading, &d, p.tree(1), of(p))
	}
	alone := func(p play) scene.Scene {
		d := p.diagram()
		return figure(heading, &d, nil, reading.TreeOptions{})
	}
	pairs := argue(t, oral(3, 1), 1)
	return map[string]scene.Scene{
		"article": both(a), "liars": both(l), "crashed": alone(c), "bysender": alone(r),
		"collapse": figure(heading, nil, r.tree(1), of(r)),
		"spacetime": spaceTime(gossip(4), happenings(),
			reading.SpaceTimeOptions{Style: reading.Style{Faulty: parley.SetOf(3)}},
			draw.Heading{Title: "A broadcast with <everything>", Subtitle: "n = 4"}),
		"pairs":  draw.Pairs(pairs.p, pairs.drawn),
		"stages": (&draw.Run{Protocol: voting(4), Events: votes()}).Scene(),
		"clocks": (&draw.Run{Protocol: keeping(3), Events: ticking()}).Scene(),
		"order":  (&draw.Run{Protocol: gossip(4), Events: delivered()}).Scene(),
	}
}

// A picture in a page contains no style, all its ids are its own and unique, and the style sheet has each class.
func TestPage(t *testing.T) {
	sheet := string(svg.Sheet())
	golden(t, "page.css", sheet)
	known := map[string]bool{"parley-scene": true, "lie": true, "faulty": true}
	for _, m := range regexp.MustCompile(`\.([a-z][a-z0-9-]*)`).FindAllStringSubmatch(sheet, -1) {
		known[m[1]] = true
	}
	for name, s := range scenes(t) {
		picture := string(svg.Page(s, "one"))
		golden(t, "scene-"+name+".json", string(s.JSON()))
		all := well(t, picture)
		if name == "crashed" || name == "spacetime" {
			golden(t, "page-"+name+".svg", picture)
		}
		ids := make(map[string]bool)
		for _, list := range all {
			for _, e := range list {
				for _, a := range e.Attr {
					switch a.Name.Local {
					case "style", "fill", "stroke", "font-size", "stroke-width", "opacity":
						t.Errorf("%s: %s=%q in %s", name, a.Name.Local, a.Value, e.Name.Local)
					case "id":
						if ids[a.Value] || a.Value != "one" && !strings.HasPrefix(a.Value, "one-") {
							t.Errorf("%s: id %q", name, a.Value)
						}
						ids[a.Value] = true
					case "class":
						for class := range strings.FieldsSeq(a.Value) {
							if !known[class] {
								t.Errorf("%s: class %q is not in the style sheet", name, class)
							}
						}
					}
				}
			}
		}
		if len(all["style"]) > 0 {
			t.Errorf("%s: a style sheet of its own", name)
		}
	}
}

// Marks have references: every message of the article's example that arrived, from the event that sent it to that of
// its arrival, and every node of the tree.
func TestReferences(t *testing.T) {
	p := article()
	d := p.diagram()
	var s struct {
		Scene, Width, Height int
		Title                string
		Marks                []struct {
			Shape, Role, Ref, Value string
			Lie                     bool
			Since, Until            uint64
			X, Y                    int
		}
	}
	o := reading.TreeOptions{Style: p.style, Of: 1}
	if err := json.Unmarshal(figure(heading, &d, p.tree(1), o).JSON(), &s); err != nil || s.Scene != 1 {
		t.Fatalf("version %d, %v", s.Scene, err)
	}
	messages, nodes := 0, 0
	for _, m := range s.Marks {
		if m.X < 0 || m.Y < 0 || m.X > s.Width || m.Y > s.Height {
			t.Errorf("outside: %+v", m)
		}
		switch {
		case m.Role == "message":
			messages++
			var round, from, to int
			if n, _ := fmt.Sscanf(m.Ref, "r%d/P%d/P%d", &round, &from, &to); n != 3 {
				t.Fatalf("reference %q", m.Ref)
			}
			sent, came := p.log.Events[m.Since-1], p.log.Events[m.Until-1]
			if int(sent.At) != from-1 || int(came.At) != to-1 || came.Cause != sent.ID || came.Msg.Seq != uint64(round) {
				t.Errorf("%s is from event %d to event %d", m.Ref, m.Since, m.Until)
			}
		case m.Role == "decision":
			if e := p.log.Events[m.Since-1]; e.Op != trace.Deliver || m.Ref != scene.Process(e.At) {
				t.Errorf("%s decides at event %d", m.Ref, m.Since)
			}
		case m.Role == "node" && m.Shape == "rect":
			nodes++
			if came := p.log.Events[m.Since-1]; came.At != 1 || !strings.HasSuffix("."+m.Ref[3:], fmt.Sprint(".", came.Peer+1)) {
				t.Errorf("%s is filled by event %d from P%d", m.Ref, m.Since, came.Peer+1)
			}
			if !strings.HasPrefix(m.Ref, "P2/1") || m.Value == "" {
				t.Errorf("node %+v", m)
			}
		}
	}
	if messages != 66 || nodes != 1+6+6*5 {
		t.Errorf("%d messages, %d nodes", messages, nodes)
	}
}

// In a space-time diagram an arrow refers to the event of its arrival, and each sign to its event.
func TestSpaceTimeReferences(t *testing.T) {
	events := happenings()
	s := scenes(t)["spacetime"]
	refs := make(map[string]bool)
	var visit func(marks []scene.Mark)
	visit = func(marks []scene.Mark) {
		for _, m := range marks {
			visit(m.Marks)
			refs[m.Ref] = true
			if m.Role == "arrow" {
				came := events[m.Until-1]
				if m.Ref != scene.Event(m.Until) || came.Cause != m.Since {
					t.Errorf("%+v", m)
				}
			}
		}
	}
	visit(s.Marks)
	for _, e := range events {
		if shown := refs[scene.Event(e.ID)]; !shown {
			t.Errorf("nothing stands for event %d, %v", e.ID, e.Op)
		}
	}
}

// Text is legible in both themes: the contrast is at least 4.5.
func TestContrast(t *testing.T) {
	themes := regexp.MustCompile(`(?m)^[^{}\n]*\{(--[^}]*)\}`).FindAllStringSubmatch(string(svg.Sheet()), -1)
	checked := 0
	for _, theme := range themes {
		colours := make(map[string]string)
		for one := range strings.SplitSeq(theme[1], ";") {
			if name, value, ok := strings.Cut(one, ":"); ok && strings.HasPrefix(value, "#") {
				colours[strings.TrimPrefix(name, "--")] = value
			}
		}
		if len(colours) == 0 {
			continue
		}
		on := func(text string, grounds ...string) {
			for _, ground := range grounds {
				checked++
				if c := contrast(t, colours[text], colours[ground]); c < 4.5 {
					t.Errorf("%s on %s: %.2f: %s, %s", text, ground, c, colours[text], colours[ground])
				}
			}
		}
		on("text", "card", "band", "plain", "liar")
		on("faint", "card", "band", "plain")
		on("fault", "card", "band", "liar", "plain")
		on("value", "mixed")
		for i := range scene.Inks {
			line, fill := fmt.Sprintf("ink%d", i+1), fmt.Sprintf("fill%d", i+1)
			on(line, "card", "band", "plain", fill)
			on("value", line)
			on("text", fill)
			on("faint", fill)
			on("fault", fill)
		}
	}
	if checked < 150 {
		t.Errorf("%d pairs of colours", checked)
	}
}

// contrast returns the contrast of two colors, as the guidelines for accessible pages define it.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	light := func(colour string) (sum float64) {
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
			if err != nil {
				t.Fatalf("%q: %v", colour, err)
			}
			x := float64(n) / 255
			if x <= 0.04045 {
				x /= 12.92
			} else {
				x = math.Pow((x+0.055)/1.055, 2.4)
			}
			sum += weight * x
		}
		return sum
	}
	both := []float64{light(a), light(b)}
	return (slices.Max(both) + 0.05) / (slices.Min(both) + 0.05)
}

// In an argument with several runs, references name the run.
func TestPairReferences(t *testing.T) {
	picture := string(svg.Page(scenes(t)["pairs"], "p"))
	for _, want := range []string{"c1/r1/P3/P2", "c2/r1/P3/P2", "c2/P1", "c3/r0/P1/P3"} {
		if !strings.Contains(picture, `data-ref="`+want+`"`) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(picture, `data-ref="r`) || strings.Contains(picture, `data-ref="P`) {
		t.Error("a reference to no run")
	}
}
