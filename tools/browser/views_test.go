package browser_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/catalog"
	"parley/docs/scenarios"
	"parley/internal/lab/engine"
	"parley/internal/lab/traitor"
)

// until waits until a condition, an expression, is true.
func (b *tab) until(condition string) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.PollFunction[bool](`() => Boolean(`+condition+`)`,
		chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(longest)))
	if err != nil {
		b.t.Fatalf("%s: %v\n%s\n%s", condition, err, strings.Join(b.heard(), "\n"),
			evaluate[string](b, "location.hash + ' ' + document.querySelector('main').innerText"))
	}
}

// button is an expression for the button with a text that can be pressed.
func button(text string) string {
	return `[...document.querySelectorAll("main button:not(:disabled)")].find(b => b.textContent.trim() === ` +
		strconv.Quote(text) + `)`
}

// press waits for a button and presses it, in one step: between two the page could show another button.
func (b *tab) press(text string) {
	b.t.Helper()
	b.until(`(b => b && (b.click(), true))(` + button(text) + `)`)
}

// follow changes the fragment of the address.
func (b *tab) follow(fragment string) {
	b.t.Helper()
	evaluate[bool](b, `(location.hash = `+strconv.Quote(fragment)+`, true)`)
}

// forms are the two forms of the page.
var forms = map[string]func(*testing.T) string{
	"served": served,
	"static": func(t *testing.T) string { return static(t, "/", nil) },
}

// The reader wins level 1 by a lie. The command line that the page shows repeats the run in a terminal.
func TestTraitorWins(t *testing.T) {
	t.Parallel()
	b := open(t, served(t))
	b.says(shown)
	b.follow("#/traitor?level=1")
	b.until(`document.querySelector(".option.lie input")`)
	evaluate[bool](b, `document.querySelector(".option.lie input").click() ?? true`)
	b.until(`document.querySelector(".option.lie.chosen")`)
	b.press("Send, and close the round")
	b.says("Validity is broken")
	b.says("You did it")
	b.says("What can P2 and P3 tell apart?")
	b.until(`document.querySelector(".apart svg")`)
	if hash := evaluate[string](b, "location.hash"); hash != "#/traitor?level=1&moves=P2:1-3-0-1" {
		t.Errorf("the address is %s", hash)
	}
	line := evaluate[string](b, `document.querySelector(".again code").textContent`)
	cmd := exec.Command("sh", "-c", line)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(built.parley)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "P3 decided 0") {
		t.Errorf("%s: %v\n%s", line, err, out)
	}
	b.press("Undo")
	b.press("Send, and close the round")
	b.says("Validity is broken")
	b.press("Change")
	b.press("Start over")
	b.until(`document.querySelector(".option.honest.chosen")`)
	evaluate[bool](b, `dispatchEvent(new KeyboardEvent("keydown", {key: "z", ctrlKey: true})) ?? true`)
	b.until(`document.querySelector(".option.lie.chosen")`)
	b.clean()
}

// Every level ends as it claims, in both forms of the page.
func TestTraitorLevels(t *testing.T) {
	t.Parallel()
	for name, address := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, address(t))
			b.says(shown)
			for _, l := range traitor.Levels {
				b.follow("#/traitor?level=" + l.ID)
				b.until(`document.querySelector("h1")?.textContent === ` + strconv.Quote(l.Title))
				switch {
				case l.Can:
					b.press("Break it for me")
					b.says(" is broken.")
					b.says("It can be done")
				case l.Proof == traitor.Sampled:
					b.press("Try 10,000 runs")
					b.says("Not found in 10,000 runs.")
				default:
					b.press("Prove it")
					b.says("none breaks " + l.Property)
					b.says("Nobody can do it")
				}
				if provable := evaluate[bool](b, "Boolean("+button("Prove it")+")"); provable != (l.Proof == traitor.Searched) {
					t.Errorf("level %s can be proven here: %t", l.ID, provable)
				}
			}
			b.clean()
		})
	}
}

// A search from the second round on keeps what was sent in the first one, and proves nothing about the level.
func TestTraitorBreaksFromHere(t *testing.T) {
	t.Parallel()
	b := open(t, served(t))
	b.says(shown)
	b.follow("#/traitor?level=7&round=1")
	b.says("round 1 of 0..2")
	b.press("Break it for me")
	b.says("From round 1 on, nothing breaks agreement.")
	if text := evaluate[string](b, "document.querySelector('main').innerText"); strings.Contains(text, "Nobody can do it") {
		t.Errorf("the level is done:\n%s", text)
	}
	b.clean()
}

// A search finds a run. The page shows it, also after it is loaded again, and another tab says that it does not have it.
func TestExploreOpensTheRun(t *testing.T) {
	t.Parallel()
	for name, address := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := address(t)
			b := open(t, at)
			b.says(shown)
			b.follow("#/explore")
			const preset = `[...document.querySelectorAll(".preset")].find(a => a.textContent.includes("Two-phase commit blocks"))`
			b.until(preset)
			evaluate[bool](b, preset+`.click() ?? true`)
			b.says("only non-blocking")
			b.press("Search")
			b.until(`document.querySelector(".end.found")`)
			b.press("Open the run")
			b.says("found by a search")
			b.until(`document.querySelector(".picture svg")`)
			hash := evaluate[string](b, "location.hash")
			if !strings.HasPrefix(hash, "#/run?t=") {
				t.Errorf("the address is %s", hash)
			}
			b.do(chromedp.Reload())
			b.says("found by a search")
			other := open(t, at)
			other.says(shown)
			other.follow(hash)
			other.says("drop that file")
			// The link that is copied has the moves, and needs no file.
			_, fragment, _ := strings.Cut(b.copied("Copy link"), "#")
			other.follow("#" + fragment)
			other.until(`document.querySelector(".taken .fares .bad")?.textContent.includes("non-blocking")`)
			other.press("Open in Run")
			other.says("from a walk")
			other.until(`location.hash.startsWith("#/run?t=") && document.querySelector(".foot")`)
			if got := evaluate[string](other, "location.hash"); got[:15] != hash[:15] {
				t.Errorf("the copied link leads to %s, want the run of %s", got, hash)
			}
			other.clean()
			b.clean()
		})
	}
}

// copied presses a button at the top and returns what the page copies.
func (b *tab) copied(label string) string {
	b.t.Helper()
	return evaluate[string](b, `new Promise((done, fail) => {
		Object.defineProperty(navigator, "clipboard", {configurable: true, value: {writeText: async text => done(text)}});
		const found = [...document.querySelectorAll(".top-tools button")].find(b => b.textContent === `+literal(label)+`);
		found ? found.click() : fail(new Error("there is no such button"));
	})`)
}

// A trace file that is dropped on the page opens its run, and a damaged one says which line is wrong.
func TestDroppedTrace(t *testing.T) {
	t.Parallel()
	native := engine.New(catalog.All(), scenarios.Files, "test")
	var trace engine.ExportAnswer
	answer := native.Answer(t.Context(), []byte(`{"ask":"export","form":"trace","run":{"protocol":"om"}}`), nil)
	if err := json.Unmarshal(answer, &trace); err != nil || trace.Text == "" {
		t.Fatalf("%v: %.200s", err, answer)
	}
	b := open(t, served(t))
	b.says(shown)
	drop := func(text string) {
		evaluate[bool](b, `(() => {
			const data = new DataTransfer();
			data.items.add(new File([`+strconv.Quote(text)+`], "run.jsonl"));
			dispatchEvent(new DragEvent("drop", {dataTransfer: data, cancelable: true}));
			return true;
		})()`)
	}
	drop(trace.Text)
	b.says("from a trace file")
	b.until(`document.querySelector(".picture svg")`)
	if link := b.copied("Copy link (needs the file)"); !strings.Contains(link, "#/run?t=") {
		t.Errorf("the link is %s", link)
	}
	drop(strings.Replace(trace.Text, `"at":`, `"at";`, 1))
	b.says("run.jsonl cannot be opened: line ")
	b.clean()
}

// A search that is stopped proves nothing, and says so.
func TestExploreStops(t *testing.T) {
	t.Parallel()
	for name, address := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, address(t))
			b.says(shown)
			b.follow("#/explore?s=eig&m=2&n=7&step=round")
			b.says("It may not end.")
			b.press("Search")
			b.press("Stop")
			b.until(`document.querySelector(".end.interrupted")`)
			b.says("Nothing is proven.")
			b.follow("#/cost?m=1&most=12&quantity=rounds") // the engine answers again
			b.says("Rounds with m = 1")
			b.clean()
		})
	}
}

// The chart of costs follows the form, and the address the chart.
func TestCostView(t *testing.T) {
	t.Parallel()
	b := open(t, served(t))
	b.says(shown)
	b.follow("#/cost?m=2&most=15&quantity=bits")
	b.says("Bits with m = 2")
	b.says("With n = 15 processes and m = 2")
	b.press("messages")
	b.says("Messages with m = 2")
	b.until(`document.querySelector(".costs svg")`)
	if hash := evaluate[string](b, "location.hash"); hash != "#/cost?m=2&most=15&quantity=messages" {
		t.Errorf("the address is %s", hash)
	}
	b.clean()
}
