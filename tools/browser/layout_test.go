package browser_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/layout.json")

const layouts = "testdata/layout.json"

// layout is where the parts of the page are, and how light its grounds are. The pictures in docs/img are compared by this,
// and not by their pixels: another computer has other fonts, with which lines break elsewhere, so that everything below
// is at other pixels although nothing is wrong. What fonts do not change is which parts there are, on which side of each
// other they are, how wide they are, and whether they are light or dark. What is drawn inside pictures of runs has tests
// of its own.
type layout struct {
	Parts   map[string]part `json:"parts"`
	Grounds []float64       `json:"grounds"` // of the page and of a card: 0 is black, 1 white
}

// part is the box of a part of the page, in pixels of the screen. One that floats stays over others while they scroll.
type part struct {
	X      int  `json:"x"`
	Y      int  `json:"y"`
	W      int  `json:"w"`
	H      int  `json:"h"`
	Floats bool `json:"floats,omitempty"`
}

// layout returns the layout of the page as it is.
func (b *tab) layout() layout {
	b.t.Helper()
	return evaluate[layout](b, `(() => {
		const parts = {}, light = e => {
			const [r, g, b] = getComputedStyle(e).backgroundColor.match(/[\d.]+/g).map(Number);
			return Math.round((r * .299 + g * .587 + b * .114) / 2.55) / 100;
		};
		const floats = e => e !== document.body && (/sticky|fixed/.test(getComputedStyle(e).position) || floats(e.parentElement));
		const note = (name, e) => {
			const r = e.getBoundingClientRect();
			if (!r.width || !r.height) return;
			while (name in parts) name += "+";
			const [x, y, w, h] = [r.x, r.y, r.width, r.height].map(Math.round);
			parts[name] = {x, y, w, h, floats: floats(e)};
		};
		for (const s of [".top", ".top nav", ".top-tools", "main h1", ".title", ".transport", ".compare-tools", ".walk-tools"]) {
			for (const e of document.querySelectorAll(s)) note(s, e);
		}
		for (const e of document.querySelectorAll("main :is(.card, .side):is([aria-labelledby], [aria-label])")) {
			const name = e.getAttribute("aria-labelledby") ?? e.getAttribute("aria-label");
			note(name, e);
			for (const inner of e.querySelectorAll("h2, .pan > svg:first-child, .legend, table")) {
				if (inner.closest(".card, .side") === e && !inner.closest(".picture svg .legend")) {
					const kind = inner.matches(".legend") ? "legend" : inner.tagName.toLowerCase();
					note(name + " " + kind, inner);
				}
			}
		}
		return {parts, grounds: [document.body, document.querySelector("main .card")].filter(Boolean).map(light)};
	})()`)
}

// What fonts may change: how much wider or further to the side a part is, in pixels, and how many times as high.
const (
	aside  = 60
	higher = 1.8
	near   = 6 // pixels by which parts beside each other may overlap
)

// sides says on which sides of another part one is; on none if they overlap.
func (p part) sides(of part) (all []string) {
	for side, is := range map[string]bool{
		"above": p.Y+p.H <= of.Y+near, "below": of.Y+of.H <= p.Y+near,
		"left of": p.X+p.W <= of.X+near, "right of": of.X+of.W <= p.X+near,
	} {
		if is {
			all = append(all, side)
		}
	}
	slices.Sort(all)
	return all
}

// holds reports whether another part is inside.
func (p part) holds(other part) bool {
	return p.X-near <= other.X && p.Y-near <= other.Y && other.X+other.W <= p.X+p.W+near && other.Y+other.H <= p.Y+p.H+near
}

// differs says how a layout differs from the one that is wanted.
func (l layout) differs(want layout) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for i, ground := range want.Grounds {
		if i >= len(l.Grounds) || max(ground-l.Grounds[i], l.Grounds[i]-ground) > 0.1 {
			say("grounds: got %v, want %v", l.Grounds, want.Grounds)
			break
		}
	}
	names := slices.Sorted(maps.Keys(want.Parts))
	for _, name := range slices.Sorted(maps.Keys(l.Parts)) {
		if _, ok := want.Parts[name]; !ok {
			say("%s is new", name)
		}
	}
	for i, name := range names {
		is, there := l.Parts[name]
		was := want.Parts[name]
		if !there {
			say("%s is missing", name)
			continue
		}
		if d := is.X - was.X; d > aside || d < -aside {
			say("%s is %d pixels further to the right", name, d)
		}
		if d := is.W - was.W; d > aside || d < -aside {
			say("%s is %d pixels wider", name, d)
		}
		if h := float64(is.H+20) / float64(was.H+20); h > higher || h < 1/higher {
			say("%s is %d pixels high, want %d", name, is.H, was.H)
		}
		for _, other := range names[i+1:] {
			o, ok := l.Parts[other]
			if !ok || is.Floats || o.Floats {
				continue
			}
			now, before := is.sides(o), was.sides(want.Parts[other])
			if len(before) > 0 && !slices.ContainsFunc(before, func(side string) bool { return slices.Contains(now, side) }) {
				say("%s is not %s %s", name, strings.Join(before, " or "), other)
			}
			if was.holds(want.Parts[other]) && !is.holds(o) || want.Parts[other].holds(was) && !o.holds(is) {
				say("%s and %s are not one in the other", name, other)
			}
		}
	}
	return all
}

// checkLayouts compares layouts with those of testdata/layout.json, or writes them.
func checkLayouts(t *testing.T, got map[string]layout) {
	t.Helper()
	if *update {
		text, err := json.MarshalIndent(got, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(layouts, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want := wantedLayouts(t)
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if what := got[name].differs(want[name]); len(what) > 0 {
			t.Errorf("%s: %s\nLook at the page. If this is meant: go test . -run '^TestShots$' -update, and make lab-shots", name,
				strings.Join(what, "\n  "))
		}
	}
}

func wantedLayouts(t *testing.T) (want map[string]layout) {
	t.Helper()
	text, err := os.ReadFile(layouts)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	return want
}

// A panel that has moved, one that overlaps another, one that is missing, and another scheme are found; other fonts are
// not.
func TestLayoutDiffers(t *testing.T) {
	all := wantedLayouts(t)
	want := all["run"]
	changed := func(change func(map[string]part)) layout {
		l := layout{maps.Clone(want.Parts), want.Grounds}
		change(l.Parts)
		return l
	}
	move := func(name string, x, y, w int) func(map[string]part) {
		return func(parts map[string]part) {
			p, ok := parts[name]
			if !ok {
				t.Fatalf("there is no %s in %q", name, slices.Sorted(maps.Keys(parts)))
			}
			p.X, p.Y, p.W = p.X+x, p.Y+y, p.W+w
			parts[name] = p
		}
	}
	for name, c := range map[string]struct {
		is   layout
		want string
	}{
		"moved":      {changed(move("verdict", -400, 0, 0)), "verdict is -400 pixels further to the right"},
		"overlaps":   {changed(move("picture-tree-P2", 0, -100, 0)), "picture-rounds is not above picture-tree-P2"},
		"wider":      {changed(move("verdict", 0, 0, 90)), "verdict is 90 pixels wider"},
		"no legend":  {changed(func(p map[string]part) { delete(p, "tables legend") }), "tables legend is missing"},
		"new":        {changed(func(p map[string]part) { p["x"] = part{} }), "x is new"},
		"the scheme": {layout{want.Parts, all["run-dark"].Grounds}, "grounds: "},
	} {
		if got := c.is.differs(want); !strings.Contains(strings.Join(got, "\n"), c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	fonts := changed(func(parts map[string]part) {
		for name, p := range parts {
			p.Y, p.H, p.X = p.Y*6/5, p.H*6/5, p.X+3
			parts[name] = p
		}
	})
	if got := fonts.differs(want); len(got) > 0 {
		t.Errorf("other fonts: %q", got)
	}
}
