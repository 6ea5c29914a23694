package browser_test

import (
	"slices"
	"testing"
)

// settled waits until the page has not changed for a while: all answers are there, and are drawn.
func (b *tab) settled() {
	b.t.Helper()
	evaluate[bool](b, `new Promise((done, fail) => {
		let timer = 0;
		const last = Date.now() + 60_000;
		const watch = new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(end, 350); });
		const end = () => {
			const waits = document.querySelector("main :is(.busy, .late, .stale):not(svg, svg *)");
			if (waits && Date.now() < last) { // an answer is on its way
				timer = setTimeout(end, 50);
				return;
			}
			watch.disconnect();
			if (waits) return fail(new Error("an answer does not come: " + waits.outerHTML.slice(0, 200)));
			done(true);
		};
		watch.observe(document.querySelector("main"), {subtree: true, childList: true, attributes: true, characterData: true});
		timer = setTimeout(end, 350);
	})`)
}

// to moves the cursor by the slider.
func (b *tab) to(event int) {
	b.t.Helper()
	evaluate[bool](b, `((slider, at) => {
		slider.value = at;
		slider.dispatchEvent(new Event("input", {bubbles: true}));
		return true;
	})(document.querySelector(".rail input"), `+literal(event)+`)`)
}

// atOnce are the parts that follow the cursor at once. Others wait for an answer.
const atOnce = `[...document.querySelectorAll(".picture .pan, .tables, .verdict, .transport")]`

// What the page shows is a function of the cursor: moved to the end and back, it shows the same at every event; and moved
// by jumps, everything is the same as before, also what the engine answers.
func TestScrub(t *testing.T) {
	t.Parallel()
	for name, address := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, address(t))
			b.says(shown)
			for _, run := range []string{"#/run?g=article&sel=P5/1.2", "#/run?g=bank-causal&sel=e12", "#/run?g=twophase-blocks"} {
				b.follow(run + "&at=0")
				b.until(`document.querySelectorAll(".picture svg").length && document.querySelector(".rail input")?.value === "0"`)
				b.settled()
				apart := evaluate[[]string](b, `(async () => {
					const slider = document.querySelector(".rail input"), end = Number(slider.max), seen = [];
					const frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
					// The mark of the keyboard's place in a table stays where the reader has left it.
					const text = () => `+atOnce+`.map(part => part.outerHTML.replace(/ tabindex="[^"]*"/g, "")
						.replace(/ class="([^"]*)"/g, (_, names) => " class=" + names.split(" ").sort().join(" "))).join("\n");
					const to = async event => {
						slider.value = event;
						slider.dispatchEvent(new Event("input", {bubbles: true}));
						await frame();
						await frame();
						return text();
					};
					const step = Math.ceil(end / 100);
					for (let event = 0; event <= end; event += step) seen[event] = await to(event);
					const differ = [String(new Set(seen).size)];
					for (let event = end - end % step; event >= 0; event -= step) {
						const again = await to(event);
						if (again === seen[event]) continue;
						let at = 0;
						while (again[at] === seen[event][at]) at++;
						differ.push("event " + event + ": " + seen[event].slice(at - 60, at + 60) + " … and back: " + again.slice(at - 60, at + 60));
					}
					return differ;
				})()`)
				if len(apart) != 1 || apart[0] == "1" {
					t.Errorf("%s: %s states; they differ %d times: %.600q", run, apart[0], len(apart)-1, apart[1:min(len(apart), 3)])
				}
				end := evaluate[int](b, `Number(document.querySelector(".rail input").max)`)
				whole := make(map[int]string)
				for _, event := range []int{0, end / 3, end, 1, end / 2, end / 3, 0, end / 2, end} {
					b.to(event)
					b.settled()
					text := evaluate[string](b, `document.querySelector("main").innerText`)
					if before, seen := whole[event]; seen && before != text {
						t.Errorf("%s, event %d: %s", run, event, parting(text, before))
					}
					whole[event] = text
				}
				if len(whole) != 5 {
					t.Errorf("%d events", len(whole))
				}
			}
			b.clean()
		})
	}
}

// marked are the references of what each view marks as selected.
type marked struct {
	Arrows, Nodes, Cells []string
	Lines                []int // of the story
	Panel                string
}

func (b *tab) marked() marked {
	b.t.Helper()
	b.settled()
	return evaluate[marked](b, `(() => {
		const refs = (selector, of = e => e.dataset.ref) => [...new Set([...document.querySelectorAll(selector)].map(of))];
		return {
			Arrows: refs(".picture:not([aria-labelledby^=picture-tree]) svg:not(.lane-names) .selected[data-ref]"),
			Nodes: refs("[aria-labelledby^=picture-tree] svg .selected[data-ref]"),
			Cells: refs(".tables [role=gridcell].picked"),
			Lines: refs(".story .line.picked", e => Number(e.dataset.event)),
			Panel: document.querySelector(".selected-card")?.innerText ?? "",
		};
	})()`)
}

// What is selected in one view is selected in all: a cell, its arrow, the node that the message filled, and its events
// in the story; from each of them the others.
func TestSelectionIsOne(t *testing.T) {
	t.Parallel()
	for name, address := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, address(t))
			b.says(shown)
			const message, node = "r1/P2/P3", "P3/1.2" // P2 reports to P3 what the source P1 said
			press := func(selector string) {
				t.Helper()
				b.until(`document.querySelector(` + literal(selector) + `)`)
				evaluate[bool](b, `document.querySelector(`+literal(selector)+`).dispatchEvent(
					new MouseEvent("click", {bubbles: true, cancelable: true})) || true`)
			}
			for _, from := range []struct{ name, selector string }{
				{"cell", `.tables [data-ref="` + message + `"]`},
				{"arrow", `.picture:not([aria-labelledby^=picture-tree]) svg [data-ref="` + message + `"]`},
				{"node", `[aria-labelledby^=picture-tree] svg [data-ref="` + node + `"]`},
			} {
				b.follow("#/about")
				b.until(`document.querySelector("h1")?.textContent.includes("About")`)
				b.follow("#/run?s=eig&n=4&m=1&f=4:twofaced&tree=P3&at=45") // in round 1
				b.until(`document.querySelectorAll(".picture svg").length >= 2 && document.querySelector(".tables")`)
				b.settled()
				press(from.selector)
				b.until(`document.querySelector(".selected-card")`)
				got := b.marked()
				if !slices.Contains(got.Arrows, message) || !slices.Contains(got.Cells, message) || !slices.Contains(got.Nodes, node) ||
					len(got.Lines) == 0 && from.name != "node" || got.Panel == "" {
					t.Errorf("from the %s: %+v", from.name, got)
				}
				if len(got.Cells) != 1 || len(got.Nodes) != 1 {
					t.Errorf("from the %s: more than one is marked: %+v", from.name, got)
				}
				press(from.selector) // again: nothing is selected
				b.until(`!document.querySelector(".selected-card")`)
				if got := b.marked(); len(got.Arrows)+len(got.Nodes)+len(got.Cells)+len(got.Lines) != 0 {
					t.Errorf("after the %s was pressed again: %+v", from.name, got)
				}
			}
			// From an event in the story, to which the panel leads from the cell. The message has two events.
			press(`.tables [data-ref="` + message + `"]`)
			b.until(`document.querySelector(".selected-card .chain .now button")`)
			press(`.selected-card .chain .now button`)
			b.until(`location.hash.includes("sel=e")`)
			got := b.marked()
			if len(got.Lines) != 2 || !slices.Contains(got.Cells, message) || !slices.Contains(got.Arrows, message) {
				t.Errorf("from the story: %+v", got)
			}
			b.clean()
		})
	}
}
