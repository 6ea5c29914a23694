package browser_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

var shots = flag.Bool("shots", false, "write the pictures of the lab in docs/img")

const (
	images   = "../../docs/img/"
	heaviest = 200_000 // bytes of a picture
)

// pictured are the states of which docs/img has pictures, each as lab-NAME.png.
var pictured = []look{
	{"gallery", "#/gallery", waits(`document.querySelectorAll(".thumb svg").length >= 8`)},
	{"run", "#/run?g=article&at=240&sel=r2/P3/P5", waits(`document.querySelector(".selected-card .chain")`)},
	{"table", "#/run?g=article&at=190&sel=r2/P3/P5", func(b *tab) { // Table 2 of the article in the making
		b.press("by content")
		b.until(`document.querySelector(".contents .picked") && document.querySelector(".selected-card .chain")`)
		b.scrollTo(".tables", 305) // below what is selected
	}},
	{"fold", "#/run?g=article&sel=P2/1", func(b *tab) { // a tie at the root
		b.says("no value has a strict majority")
		b.scrollTo(".run", 12)
	}},
	{"traitor", "#/traitor?level=1&moves=P2:1-3-0-1", waits(`document.querySelector(".apart svg")`)},
	{"pairs", "#/explore?s=om&n=3&m=1&beyond-bound=true", func(b *tab) {
		b.press("Runs that look the same")
		b.until(`document.querySelector(".results svg")`)
		b.scrollTo(".results", 12)
	}},
	{"contamination", "#/run?g=contamination", waits(`document.querySelectorAll(".picture svg").length >= 2`)},
	{"clocks", "#/run?g=clock-two-faced", waits(`document.querySelector(".picture svg")`)},
	{"blocked", "#/run?g=twophase-blocks", waits(`document.querySelectorAll(".picture svg").length >= 1`)},
	{"explore", "#/explore?s=twophase&n=3&crashes=1&property=non-blocking&beyond-bound=true", func(b *tab) {
		b.press("Search")
		b.until(`document.querySelector(".end.found")`)
		b.scrollTo(".results", 12)
	}},
	{"walk", "#/walk?s=twophase&beyond-bound=true&crashes=1&n=3&property=non-blocking&mv=P1:1;P2:1;P3:1,P1-request!2,e5-P2," +
		"e6-P3,P2-request,P3-request,P2-timer0,P3-timer0,e17-P3,e19-P2,e21-P2,e23-P3",
		waits(`document.querySelector(".walk-run .picture svg") && document.querySelector(".state")`)},
	{"compare", "#/compare?a=" + liar + "&b=" + relay, waits(`document.querySelectorAll(".side .picture svg").length >= 2`)},
	{"knowledge", "#/run?s=om&m=1&n=3&f=1:twofaced&beyond-bound=true&sees=P2", func(b *tab) {
		b.until(`document.querySelector(".alike li") && document.querySelector(".unseen")`)
		b.scrollTo(".tables", 12)
	}},
	{"cost", "#/cost?m=2&most=15&quantity=messages", func(b *tab) {
		b.until(`document.querySelector(".costs svg")`)
		b.scrollTo(".cost-form", 12)
	}},
	{"live", "#/live", paused},
}

// darkToo are the pictures that exist in dark, too.
var darkToo = []string{"run", "traitor", "live"}

// The pictures of the lab in the documentation are there, the page can be brought into the state that each shows, and it
// then has the layout of testdata/layout.json. With -shots the pictures are taken, and with -update the layouts written.
func TestShots(t *testing.T) {
	t.Parallel()
	b := one(t)
	var want []string
	got := make(map[string]layout)
	for _, l := range pictured {
		t.Run(l.name, func(t *testing.T) {
			b := &tab{t: t, ctx: b.ctx}
			for _, scheme := range []string{"light", "dark"} {
				name := "lab-" + l.name + ".png"
				if scheme == "dark" {
					if !slices.Contains(darkToo, l.name) {
						continue
					}
					name = "lab-" + l.name + "-dark.png"
				}
				want = append(want, name)
				b.screen(1440, 900, scheme)
				l.visit(b)
				if l.name != "live" { // which changes all the time
					b.settled()
				}
				got[strings.TrimSuffix(strings.TrimPrefix(name, "lab-"), ".png")] = b.layout()
				if *shots {
					take(b, images+name)
				}
			}
		})
	}
	b.clean()
	checkImages(t, want)
	checkLayouts(t, got)
}

// scrollTo scrolls until what a selector finds is that far below the top of the screen.
func (b *tab) scrollTo(selector string, below int) {
	b.t.Helper()
	evaluate[bool](b, fmt.Sprintf(`(scrollBy(0, document.querySelector(%q).getBoundingClientRect().top - %d), true)`,
		selector, below))
}

// take writes a picture of what the screen shows.
func take(b *tab, file string) {
	b.t.Helper()
	evaluate[bool](b, `(document.documentElement.style.scrollbarGutter = "auto", true)`) // no place for a bar that is hidden
	shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	b.check(err)
	img, err := png.Decode(bytes.NewReader(shot))
	b.check(err)
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	b.check(encoder.Encode(&out, paletted(img)))
	b.check(os.WriteFile(file, out.Bytes(), 0o644))
}

// paletted reduces a picture to at most 256 colors: those that it has most often, and others that are not near to them,
// so that a color with few pixels stays what it is.
func paletted(img image.Image) *image.Paletted {
	counts := make(map[color.RGBA]int)
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(img.At(x, y)).(color.RGBA) }
	box := img.Bounds()
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			counts[at(x, y)]++
		}
	}
	often := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], bytes.Compare([]byte{a.R, a.G, a.B}, []byte{b.R, b.G, b.B}))
	})
	near := 0
	palette := apart(often, near)
	for len(palette) > 256 {
		near += 3
		palette = apart(often, near)
	}
	out := image.NewPaletted(box, palette)
	nearest := make(map[color.RGBA]uint8)
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			c := at(x, y)
			i, known := nearest[c]
			if !known {
				i = uint8(palette.Index(c))
				nearest[c] = i
			}
			out.SetColorIndex(x, y, i)
		}
	}
	return out
}

// kept is how many of the most frequent colors a picture keeps in any case: the grounds of the page.
const kept = 64

// apart leaves out colors that differ from an earlier one by at most near in each channel, but none of the first ones.
func apart(colors []color.RGBA, near int) color.Palette {
	var out color.Palette
	within := func(a, b uint8) bool { return max(a, b)-min(a, b) <= uint8(near) }
	for i, c := range colors {
		if i < kept || !slices.ContainsFunc(out, func(other color.Color) bool {
			o := other.(color.RGBA)
			return within(o.R, c.R) && within(o.G, c.G) && within(o.B, c.B)
		}) {
			out = append(out, c)
		}
	}
	return out
}

// checkImages demands that docs/img has the wanted pictures of the lab and no others, that none is too large, and that
// the documentation shows no picture of the lab that is not there.
func checkImages(t *testing.T, want []string) {
	t.Helper()
	files, err := filepath.Glob(images + "lab-*")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, file := range files {
		got = append(got, filepath.Base(file))
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > heaviest {
			t.Errorf("%s has %d bytes, more than %d", file, info.Size(), heaviest)
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("docs/img has %q, want %q: make lab-shots takes them", got, want)
	}
	shown := regexp.MustCompile(`\blab-[\w-]+\.png`)
	for _, page := range []string{"../../README.md", "../../docs/how-to/use-the-lab.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		names := shown.FindAllString(string(text), -1)
		if len(names) == 0 {
			t.Errorf("%s shows no picture of the lab", page)
		}
		for _, name := range names {
			if !slices.Contains(want, name) {
				t.Errorf("%s shows %s, which is not taken", page, name)
			}
		}
	}
}
