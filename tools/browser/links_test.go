package browser_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"parley/internal/lab/link"
)

// pageLink is a link as link.js has it.
type pageLink struct {
	View  string `json:"view"`
	Place *struct {
		S     string            `json:"s,omitempty"`
		G     string            `json:"g,omitempty"`
		Y     string            `json:"y,omitempty"`
		T     string            `json:"t,omitempty"`
		Flags map[string]string `json:"flags"`
	} `json:"place"`
	At      *uint64 `json:"at"`
	Sel     string  `json:"sel"`
	Of      string  `json:"of"`
	Hash    string  `json:"hash"`
	Problem string  `json:"problem,omitempty"`
}

// inPage returns a link to a run as the page holds it.
func inPage(r link.Run) map[string]any {
	place := map[string]any{"flags": r.Flags}
	scenario, _ := link.Unpack(r.Packed) // "" for ""
	for key, value := range map[string]string{"s": r.Protocol, "g": r.Gallery, "y": scenario, "t": r.Trace} {
		if value != "" {
			place[key] = value
		}
	}
	out := map[string]any{"view": "run", "place": place, "sel": r.Selected, "of": r.Tree, "hash": r.Hash}
	if r.At != nil {
		out["at"] = *r.At
	}
	return out
}

// drawn is a random link. Its texts have all kinds of characters.
func drawn(r *rand.Rand) link.Run {
	text := func() string {
		const runes = "abcXYZ019 ,.;:/?#&=%+~'\"<>()[]{}|\\^`äß€日😀\n\t-_!*@$"
		all := []rune(runes)
		out := make([]rune, 1+r.IntN(12))
		for i := range out {
			out[i] = all[r.IntN(len(all))]
		}
		return string(out)
	}
	pick := func(texts ...string) string { return texts[r.IntN(len(texts))] }
	l := link.Run{Flags: map[string]string{}}
	switch r.IntN(4) {
	case 0:
		l.Gallery = text()
	case 1:
		l.Packed = link.Pack(strings.Repeat("protocol: om\n# "+text()+"\n", 1+r.IntN(20)))
	case 2:
		l.Trace = fmt.Sprintf("%08x", r.Uint32())
	default:
		l.Protocol = pick("eig", "om", "mine") // any name
	}
	if r.IntN(2) == 0 {
		behaviors := []string{"twofaced", "flip", "crash@r2:3", "moves:1-3-0-1", "crash@1µs"}
		var parts []string
		for id := range 1 + r.IntN(3) {
			parts = append(parts, fmt.Sprintf("%d=%s", id+1, behaviors[r.IntN(len(behaviors))]))
		}
		l.Flags["faulty"] = strings.Join(parts, ",")
	}
	for range r.IntN(5) {
		l.Flags[pick("n", "m", "values", "seed", "beyond-bound", "crashes", "names", "a", "zz", "Z")] = text()
	}
	if r.IntN(2) == 0 {
		at := r.Uint64N(1 << 40)
		l.At = &at
	}
	l.Selected, l.Tree = pick("", "e147", "P2/1.5", "r1/P5/P2", text()), pick("", "P2", text())
	l.Hash = pick("", "3ec91ee9", "3ec91ee90976fac54c4e1bc67acc2898")
	return l
}

// linkScript loads the served page's module of links.
const linkScript = `(globalThis.links ??= import(new URL("link.js", document.querySelector("script[src]").src)))`

// The page and Go write the same link for the same run, and each reads what the other one wrote. The packed bytes of a
// scenario may differ; its text may not.
func TestLinksAreTheSame(t *testing.T) {
	t.Parallel()
	b := one(t)
	r := rand.New(rand.NewPCG(1, 2))
	runs := make([]link.Run, 200)
	var wants []string
	var places []map[string]any
	for i := range runs {
		runs[i] = drawn(r)
		wants, places = append(wants, runs[i].Fragment()), append(places, inPage(runs[i]))
	}
	written := evaluate[[]string](b, linkScript+`.then(l => Promise.all(`+literal(places)+`.map(l.write)))`)
	read := evaluate[[]json.RawMessage](b, linkScript+`.then(l => Promise.all(`+literal(wants)+`.map(l.read)))`)
	for i, run := range runs {
		if got, want := packed(written[i]), packed(wants[i]); got != want {
			t.Errorf("the page writes %s\nand Go writes   %s", got, want)
		}
		run.Hash = run.Hash[:min(len(run.Hash), 8)]
		got, err := link.Read(written[i])
		text, _ := link.Unpack(got.Packed)
		if want, _ := link.Unpack(run.Packed); text != want {
			t.Errorf("%s: Go unpacks %q, want %q", written[i], text, want)
		}
		got.Packed = run.Packed // whose bytes may differ
		if err != nil || !reflect.DeepEqual(got, run) {
			t.Errorf("%s: Go reads %+v, %v, want %+v", written[i], got, err, run)
		}
		var is, want pageLink
		if err := json.Unmarshal(read[i], &is); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(literal(inPage(run))), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(is, want) {
			t.Errorf("%s: the page reads %s, want %s", wants[i], literal(is), literal(want))
		}
	}
	b.clean()
}

// packed returns a link without the packed bytes of a scenario.
func packed(fragment string) string {
	before, after, found := strings.Cut(fragment, "y=~")
	if !found {
		return fragment
	}
	_, rest, _ := strings.Cut(after, "&")
	return before + "y=~…&" + rest
}

// Old links open what they opened when they were written: testdata/links.txt has some of each version, with what the
// page must show. Lines are only ever added.
func TestOldLinks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/links.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name, address := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, address(t))
			b.says(shown)
			n := 0
			for line := range strings.Lines(string(text)) {
				line = strings.TrimSpace(line)
				if line == "" || strings.HasPrefix(line, "//") {
					continue
				}
				parts := strings.Split(line, "|")
				if len(parts) != 4 {
					t.Fatalf("%s: %d parts", line, len(parts))
				}
				n++
				for i := range parts {
					parts[i] = strings.TrimSpace(parts[i])
				}
				t.Run(parts[0][:min(len(parts[0]), 60)], func(t *testing.T) {
					b := &tab{t: t, ctx: b.ctx}
					b.leadsTo(parts[0], parts[1], parts[2], parts[3])
				})
			}
			if n < 10 {
				t.Errorf("%d links", n)
			}
			b.clean()
		})
	}
}

// leadsTo follows a link and waits until the page has a heading, a place of the cursor, and a text. Empty ones are not
// checked.
func (b *tab) leadsTo(fragment, heading, place, text string) {
	b.t.Helper()
	b.follow("#/none")
	b.until(`!document.querySelector(".run, .traitor, .explore, .cost-form")`)
	b.follow(fragment)
	b.until(`!document.querySelector("main .boot, .busy") && document.querySelector("h1")?.textContent.startsWith(` +
		literal(heading) + `)`)
	if place != "" {
		b.at(place)
	}
	if text != "" {
		b.says(text)
	}
}

// A link that cannot be read opens an empty lab that says why. Nothing in it becomes a part of the page.
func TestBadLinks(t *testing.T) {
	t.Parallel()
	script := `<script>alert(1)</script><img src=x onerror=alert(1)>`
	for name, address := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, address(t))
			b.says(shown)
			for fragment, want := range map[string]string{
				"#/run?g=article&v=%E2%82":              "a part of it is missing",
				"#/run?y=~S0k&lab=1":                    "its scenario is damaged",
				"#/run?y=" + strings.Repeat("A", 1<<20): "it is too long",
				"#/run?s=a&g=b":                         "it names two runs",
				"#/run?g=article&lab=99":                "a newer version of the lab wrote it",
				"#/run?g=nothing&lab=1":                 `There is no scenario "nothing"`,
				"#/run?t=01234567&lab=1":                "with a hash that begins with 01234567: drop that file on the page.",
				"#/run?g=" + script:                     `There is no scenario "` + script + `"`,
				(link.Run{Trace: script}).Fragment():    "with a hash that begins with <script>alert(1)</script><img sr",
				(link.Run{Protocol: script}).Fragment(): "unknown protocol",
				(link.Run{Gallery: "article", Flags: map[string]string{script: "1"}}).Fragment(): "eig has no such setting",
			} {
				t.Run(fragment[:min(len(fragment), 50)], func(t *testing.T) {
					b := &tab{t: t, ctx: b.ctx}
					b.follow("#/about")
					b.until(`document.querySelector("h1")?.textContent.includes("About")`)
					b.follow(fragment)
					b.says(want)
					if n := evaluate[int](b, `document.querySelectorAll("#app script, #app img[onerror], .picture svg").length`); n != 0 {
						t.Errorf("the page has %d parts that it must not have", n)
					}
				})
			}
			b.clean()
		})
	}
}
