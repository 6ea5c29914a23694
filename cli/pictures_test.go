package cli_test

import (
	"encoding/xml"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"parley/catalog"
)

// element is an element of a picture.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Elements []element  `xml:",any"`

	up    *element
	dx    int // of the groups around it
	dy    int
	style string // of its class
}

func (e *element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (e *element) number(name string) int {
	n, _ := strconv.Atoi(e.attr(name))
	return n
}

// picture is a parsed picture.
type picture struct {
	root    element
	all     []*element
	styles  map[string]string // by class
	classes map[string]bool   // in use, without those of the legend
}

var rules = regexp.MustCompile(`(?m)^\.parley \.([a-z0-9-]+)\{(.*)\}$`)

// parse reads a picture. In the style sheet, later rules are those for the dark.
func parse(t *testing.T, svg string) *picture {
	t.Helper()
	p := &picture{styles: make(map[string]string), classes: make(map[string]bool)}
	if err := xml.Unmarshal([]byte(svg), &p.root); err != nil {
		t.Fatalf("not well-formed: %v", err)
	}
	light, dark, found := strings.Cut(svg, "@media screen and (prefers-color-scheme:dark){")
	if !found || !rules.MatchString(dark) {
		t.Error("no colors for the dark")
	}
	for _, rule := range rules.FindAllStringSubmatch(light, -1) {
		p.styles[rule[1]] = rule[2]
		colored := strings.Contains(rule[2], "#")
		if colored != strings.Contains(dark, ".parley ."+rule[1]+"{") {
			t.Errorf("class %s has no colors for the dark, or needs none", rule[1])
		}
	}
	var visit func(e *element)
	visit = func(e *element) {
		p.all = append(p.all, e)
		if class := e.attr("class"); class != "" {
			p.classes[class] = p.classes[class] || !e.legend()
			e.style = p.styles[class]
		}
		for i := range e.Elements {
			below := &e.Elements[i]
			below.up, below.dx, below.dy = e, e.dx, e.dy
			if at := below.attr("transform"); at != "" {
				x, y, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(at, "translate("), ")"), ",")
				right, _ := strconv.Atoi(x)
				down, _ := strconv.Atoi(y)
				below.dx, below.dy = e.dx+right, e.dy+down
			}
			visit(below)
		}
	}
	visit(&p.root)
	return p
}

// content returns the text of an element with that of its parts, without its title.
func (e *element) content() string {
	text := e.Text
	for i := range e.Elements {
		if below := &e.Elements[i]; below.XMLName.Local == "tspan" {
			text += below.Text
		}
	}
	return text
}

// hasTitle reports whether an element or the group around it says what it shows.
func (e *element) hasTitle() bool {
	titled := func(e *element) bool {
		return slices.ContainsFunc(e.Elements, func(b element) bool { return b.XMLName.Local == "title" && b.Text != "" })
	}
	return titled(e) || e.up.XMLName.Local == "g" && titled(e.up)
}

// label is a text with the place that it takes, at least: in common fonts no text is narrower.
type label struct {
	text                     string
	left, right, top, bottom float64
}

var sizes = regexp.MustCompile(`font-size:([0-9]+)px`)

func (p *picture) labels() (out []label) {
	for _, e := range p.all {
		size := sizes.FindStringSubmatch(e.style)
		if e.XMLName.Local != "text" || size == nil {
			continue
		}
		height, _ := strconv.ParseFloat(size[1], 64)
		per := 0.52
		if strings.Contains(e.style, "monospace") {
			per = 0.602
		}
		l := label{text: e.content()}
		width := float64(utf8.RuneCountInString(l.text)) * height * per
		x, y := float64(e.number("x")+e.dx), float64(e.number("y")+e.dy)
		switch e.attr("text-anchor") {
		case "middle":
			x -= width / 2
		case "end":
			x -= width
		}
		l.left, l.right, l.top, l.bottom = x, x+width, y-0.75*height, y+0.2*height
		out = append(out, l)
	}
	return out
}

// signs says which marks each legend explains: an entry is there exactly if one of its classes is used.
var signs = map[string]string{
	"request":                                   `asked`,
	"delivery or decision":                      `deliver`,
	"indication":                                `indicate`,
	"restart":                                   `restart`,
	"pause, resume, or notice of a failure":     `befalls`,
	"lifeline of a faulty process":              `(lane|lifeline)-faulty`,
	"promised bound":                            `bound`,
	"a resynchronization begins":                `resync`,
	"begins to adjust":                          `adjusts(-v\d)?`,
	"clock of a faulty process":                 `clock-faulty`,
	"delivered message":                         `cell-v\d`,
	"the same message":                          `join-v\d`,
	"indication or restart":                     `cell-other`,
	"a lie that the trace shows":                `(message|fat)-lie`,
	"keeps its own copy":                        `own(-v\d|-faulty)?`,
	"message":                                   `light`,
	"missed message: its receiver is down":      `missed`,
	"late: it counts as missing":                `late`,
	"omitted by its faulty receiver":            `omitted`,
	"messages of one sender, with their number": `fat(-lie)?`,
	"outvoted by its siblings":                  `outvoted(-v\d)?`,
}

// Every picture of every protocol and of every scenario is well-formed, with words for readers who do not see it;
// every message says what it is; no text is cut or on another one; and the legend has exactly the signs in use.
func TestPictures(t *testing.T) {
	args := make(map[string][]string)
	for _, p := range catalog.All() {
		args[p.Name] = []string{"run", p.Name, "--svg", "-"}
	}
	files, err := filepath.Glob("../docs/scenarios/*.yaml")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, file := range files {
		args[filepath.Base(file)] = []string{"run", "--scenario", file, "--svg", "-"}
	}
	for _, big := range []string{
		"diffusion --n 60", "twophase --n 60", "convergence --n 31 --m 10", "timestamp --n 20", "eig --n 40 --m 2",
	} {
		args[big] = append(strings.Fields("run "+big), "--svg", "-")
	}
	for _, search := range []string{
		"eig -n 3 -m 1", "twophase -n 3 --crashes 1 --property non-blocking",
		"diffusion -n 3 --crashes 1 --losses 1 --property agreement",
	} {
		args[search] = append(strings.Fields("explore "+search), "--beyond-bound", "--workers", "1", "--svg", "-")
	}
	messages := 0
	for name, line := range args {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, _ := run(line...)
			if !strings.HasPrefix(stdout, "<svg ") {
				t.Fatalf("no picture: %s", stderr)
			}
			if len(stdout) > 400_000 {
				t.Errorf("%d bytes", len(stdout))
			}
			p := parse(t, stdout)
			if p.root.attr("role") != "img" || p.root.Elements[0].XMLName.Local != "title" ||
				p.root.Elements[1].XMLName.Local != "desc" {
				t.Error("no words for readers who do not see it")
			}
			if p.root.number("width") > 1100 || p.root.number("height") > 5000 {
				t.Errorf("%d by %d pixels", p.root.number("width"), p.root.number("height"))
			}
			messages += p.check(t)
		})
	}
	if messages < 2000 {
		t.Errorf("%d messages in all pictures", messages)
	}
}

// check checks the marks of a picture and returns the number of its messages.
func (p *picture) check(t *testing.T) (messages int) {
	t.Helper()
	labels := p.labels()
	width, height := float64(p.root.number("width")), float64(p.root.number("height"))
	for i, a := range labels {
		if a.left < 0 || a.right > width || a.top < 0 || a.bottom > height {
			t.Errorf("%q is cut: %v to %v of %v, %v to %v of %v", a.text, a.left, a.right, width, a.top, a.bottom, height)
		}
		for _, b := range labels[:i] {
			if min(a.right, b.right)-max(a.left, b.left) > 0.5 && min(a.bottom, b.bottom)-max(a.top, b.top) > 0.5 {
				t.Errorf("%q is on %q: at %.0f, %.0f", a.text, b.text, a.left, a.top)
			}
		}
	}
	explained := make(map[string]bool)
	for _, e := range p.all {
		explained[e.content()] = explained[e.content()] || e.legend() && e.attr("class") == "note"
		if e.attr("marker-end") != "" && e.attr("x1") != "" && !e.legend() {
			messages++
			if !e.hasTitle() {
				t.Errorf("a message without words: %v", e.Attrs)
			}
		}
	}
	for text, classes := range signs {
		used, form := false, regexp.MustCompile(`^(`+classes+`)$`)
		for class, drawn := range p.classes { // order: any of them
			used = used || drawn && form.MatchString(class)
		}
		if used != explained[text] {
			t.Errorf("the legend explains %q: %v, and such marks are in use: %v", text, explained[text], used)
		}
	}
	return messages
}

// legend reports whether an element is a sign in the legend, which is not in the group of a part.
func (e *element) legend() bool {
	for up := e.up; up != nil; up = up.up {
		if up.attr("transform") != "" {
			return false
		}
	}
	return true
}

// Pictures show what protocols say of states and clocks.
func TestPicturesOfStatesAndClocks(t *testing.T) {
	for line, want := range map[string][]string{
		"twophase":             {"P2 is waiting from 0 to 898", "P2 is in doubt from 898 to 2,471"},
		"twophase --values no": {"is aborted from"},
		"--scenario ../docs/scenarios/twophase-blocks.yaml": {"P2 is blocked from 7,400<", "P1 is down from 790<"},
		"threephase":   {"P1 is prepared from 1,739", "P2 is prepared from 2,471"},
		"quorum":       {"P2 is in doubt from 0", "P1 is committed from"},
		"agreed":       {"P1 is in doubt from 0", "P1 is committed from"},
		"transactions": {"P3 is in doubt from 93 to 1,738"},
		"ordered":      {"P2 is in doubt from", "P4 is committed from"},
		"convergence":  {"213 ticks; bound: 5,893 ticks", "P1 adjusts by +138", "resynchronization 4 begins"},
		"dated":        {"; bound: 5,893 ticks", "has the date 1000000000"},
	} {
		stdout, stderr, _ := run(append(append([]string{"run"}, strings.Fields(line)...), "--svg", "-")...)
		for _, text := range want {
			if !strings.Contains(stdout, text) {
				t.Errorf("%s: no %s; %s", line, text, stderr)
			}
		}
	}
}
