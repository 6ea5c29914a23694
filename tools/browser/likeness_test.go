package browser_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// Two runs that look the same to P2: a General who lies, and P3.
const (
	liar  = "s:om;m:1;n:3;f:1:twofaced;beyond-bound:true"
	relay = "s:om;m:1;n:3;f:3:flip;beyond-bound:true"
)

// Two runs stand side by side. The cursors move together from the first difference on, until they are separated.
func TestCompare(t *testing.T) {
	t.Parallel()
	for name, address := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, address(t))
			b.says(shown)
			b.screen(1440, 900, "light")
			b.follow("#/compare?a=" + liar + "&b=" + relay)
			b.says("They look the same to P2. P1 and P3 see a difference.")
			b.says("The first 5 events are equal.")
			b.until(`document.querySelectorAll(".side .picture svg").length >= 2`)
			at := func(first, second string) {
				t.Helper()
				b.until(`[...document.querySelectorAll(".side .whereabouts")].map(w => w.textContent.split(" of")[0]).join() ===
					"event ` + first + `,event ` + second + `"`)
			}
			at("6", "6")
			b.keys(kb.ArrowLeft)
			at("5", "5")
			b.keys(kb.End)
			at("39", "38")
			b.keys(kb.Home)
			at("0", "0")
			b.press("To the first difference")
			at("6", "6")
			evaluate[bool](b, `document.querySelector(".compare-tools input").click() ?? true`)
			b.until(`!document.querySelector(".compare-tools input").checked`)
			b.keys(kb.End)
			at("39", "6")
			b.press("Story")
			b.until(`document.querySelectorAll(".side .story .line").length > 20`)
			b.until(`location.hash.includes("show=story&joined=no")`)
			hash := evaluate[string](b, "location.hash")
			if !strings.Contains(hash, "#/compare?a=s:om;n:3;m:1;f:1:twofaced;beyond-bound:true&b=s:om;n:3;m:1;f:3:flip;") {
				t.Errorf("the address is %s", hash)
			}
			b.follow("#/about")
			b.until(`document.querySelector(".about")`)
			b.follow(hash)
			b.until(`document.querySelector(".side .story") && !document.querySelector(".compare-tools input").checked`)
			at("39", "38")
			b.clean()
		})
	}
}

// A place in the value of a link is read as it was written, whatever its flags contain.
func TestPackedPlaces(t *testing.T) {
	t.Parallel()
	b := one(t)
	places := []map[string]any{
		{"s": shown, "flags": map[string]string{"n": "7", "m": "2", "faulty": "1=twofaced,5=flip", "values": "a;b:c%3B,&=#?"}},
		{"g": "article", "flags": map[string]string{}},
		{"s": shown, "flags": map[string]string{"links": "[{from: 1, to: 2, loss: 0.5}, {from: all}]", "names": "lecture"}},
		{"y": "protocol: eig\nn: 4 # 50 % ; :\n", "flags": map[string]string{"seed": "3"}},
		{"t": "0123abcd", "flags": map[string]string{}},
	}
	got := evaluate[[]string](b, `import("/link.js").then(async link => {
		const all = [];
		for (const place of `+literal(places)+`) {
			const there = await link.unpack(await link.pack(place));
			const same = await link.write({view: "run", place: there}) === await link.write({view: "run", place});
			all.push(same ? "" : JSON.stringify(there));
		}
		return all;
	})`)
	if want := make([]string, len(places)); !slices.Equal(got, want) {
		t.Errorf("these are read otherwise: %q", got)
	}
	b.clean()
}

// A comparison begins at a run: with another seed, without its lies, with a scenario, or with the run before.
func TestCompareFromRun(t *testing.T) {
	t.Parallel()
	b := one(t)
	b.follow("#/run?s=om&n=4&m=1&f=3:flip")
	b.until(`document.querySelector(".compare-menu")`)
	link := func(text string) string {
		return `[...document.querySelectorAll(".compare-menu a")].find(a => a.textContent === "` + text + `" && a.hash)`
	}
	b.until(link("another seed"))
	for _, width := range []int64{360, 900, 1440} { // the open menu fits on the screen
		b.screen(width, 900, "light")
		evaluate[bool](b, `(document.querySelector(".compare-menu").open = true)`)
		b.until(`(r => r.width > 200 && r.left >= 0 && r.right <= innerWidth)(
			document.querySelector(".compare-menu .menu-body").getBoundingClientRect())`)
		evaluate[bool](b, `!(document.querySelector(".compare-menu").open = false)`)
	}
	evaluate[bool](b, link("another seed")+`.click() ?? true`)
	b.says("They look the same to every process.")
	b.follow("#/run?s=om&n=4&m=1&f=3:flip")
	b.until(link("the same without lies"))
	evaluate[bool](b, link("the same without lies")+`.click() ?? true`)
	b.says("Where they part")
	b.until(`document.querySelectorAll(".side").length === 2`)
	b.follow("#/run?g=twophase-blocks")
	b.until(`document.querySelector(".picture svg") && document.querySelector("h1").textContent.includes("blocked")`)
	b.until(`[...document.querySelectorAll(".compare-menu a")].some(a => a.textContent.startsWith("the run before") && a.hash)`)
	evaluate[bool](b, `(s => { s.value = "threephase"; s.dispatchEvent(new Event("change", {bubbles: true})); return true; })(
		document.querySelector(".compare-menu select"))`)
	b.says("The protocols differ")
	b.until(`document.querySelectorAll(".side .picture svg").length >= 2`)
	b.follow("#/compare?a=s:om;n:4;m:1")
	b.until(`document.querySelector(".against select")`)
	b.follow("#/compare?b=nonsense")
	b.until(`document.querySelector(".notice.trouble")`)
	b.clean()
}

// observe presses the name of a process in the card that says what it sees.
func (b *tab) observe(name string) {
	b.t.Helper()
	b.until(`(b => b && (b.click(), true))([...document.querySelectorAll(".knowledge .segments button")].find(b =>
		b.textContent === "` + name + `"))`)
}

// With three generals P2 cannot tell who lies. What it does not see is faint, and another run that looks the same is one
// press away.
func TestKnowledge(t *testing.T) {
	t.Parallel()
	for name, address := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, address(t))
			b.says(shown)
			b.follow("#/run?s=om&m=1&n=3&f=1:twofaced&beyond-bound=true")
			b.until(`document.querySelector(".knowledge .segments button")`)
			b.observe("P2")
			b.says("which of P1 and P3 are faulty")
			b.until(`document.querySelector('.picture [data-ref="r0/P1/P3"].unseen')`)
			b.until(`document.querySelector('.picture [data-ref="r0/P1/P2"]:not(.unseen)')`)
			b.until(`document.querySelector(".story .line.unseen") && document.querySelector(".story .line:not(.unseen)")`)
			b.until(`location.hash.includes("sees=P2")`)
			faint := evaluate[int](b, `document.querySelectorAll('.story .line:not(.unseen):not(.future)').length`)
			if says := evaluate[string](b, text(".knowledge")); !strings.Contains(says, "P2 has seen 12 events") || faint != 12 {
				t.Errorf("%d lines are not faint, and the page says %s", faint, says)
			}
			b.keys(kb.Home)
			b.until(text(".knowledge") + `.includes("After event 0, P2 has seen 0 events")`)
			b.until(`(([, a, b] = []) => a && a === b)(/^(\d+) of (\d+) other runs? look/.exec(` +
				text(".knowledge h3:last-of-type") + `) ?? [])`)
			b.keys(kb.End)
			b.until(text(".knowledge") + `.includes("After event 39")`)
			b.press("The argument with all lies")
			b.until(`document.querySelector(".argument svg") && document.querySelector("#argument").textContent.includes("P2 and P3")`)
			b.press("Close")
			b.until(`!document.querySelector(".argument")`)
			b.until(text(".alike li") + `.includes("P1 is correct, and P3 is faulty (flip)")`)
			b.until(`document.querySelector(".alike li a").hash`)
			evaluate[bool](b, `document.querySelector(".alike li a").click() ?? true`)
			b.says("They look the same to P2.")
			b.follow("#/run?s=om&n=4&m=1&f=3:flip&sees=P2")
			b.until(text(".knowledge h2") + ` === "What P2 sees"`)
			b.observe("P2")
			b.until(`!document.querySelector(".unseen")`)
			b.clean()
		})
	}
}

// A view that notes its state does not undo a link that the reader follows in the same moment.
func TestNotesUndoNoLink(t *testing.T) {
	t.Parallel()
	b := one(t)
	b.follow("#/cost")
	b.until(`document.querySelector(".costs svg")`)
	got := evaluate[[]string](b, `import("/address.js").then(async ({note}) => {
		const link = "#/compare?a=s:om;n:4;m:1";
		note("cost", [["m", "3"]]);
		const noted = location.hash;
		const heard = new Promise(done => addEventListener("hashchange", done, {once: true}));
		location.hash = link;
		note("compare", [["a", "s:eig"]]); // the page has yet to hear of the link
		const followed = location.hash;
		await heard;
		return [noted, followed, location.hash];
	})`)
	if want := []string{"#/cost?m=3", "#/compare?a=s:om;n:4;m:1", "#/compare?a=s:om;n:4;m:1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	b.clean()
}
