package browser_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"parley/trace"
)

// exported presses a button of the menu Export and returns the text of the file that the page saves.
func (b *tab) exported(kind string) (name, text string) {
	b.t.Helper()
	got := evaluate[[2]string](b, `new Promise(done => {
		const create = URL.createObjectURL;
		URL.createObjectURL = blob => {
			URL.createObjectURL = create;
			HTMLAnchorElement.prototype.click = function () { // the browser saves nothing
				delete HTMLAnchorElement.prototype.click;
				blob.text().then(text => done([this.download, text]));
			};
			return create(blob);
		};
		document.querySelector("details.menu").open = true;
		[...document.querySelectorAll(".menu-body button")].find(b => b.innerText.startsWith(`+literal(kind)+`)).click();
	})`)
	return got[0], got[1]
}

// drop drops a file on the page.
func (b *tab) drop(name, text string) {
	b.t.Helper()
	evaluate[bool](b, `(() => {
		const data = new DataTransfer();
		data.items.add(new File([`+strconv.Quote(text)+`], `+literal(name)+`));
		dispatchEvent(new DragEvent("drop", {dataTransfer: data, cancelable: true}));
		return true;
	})()`)
}

// hash waits for a run in the address, and returns the beginning of the hash of its trace.
func (b *tab) hash() string {
	b.t.Helper()
	b.until(`/&h=[0-9a-f]{8}/.test(location.hash) && !document.querySelector(".busy") && document.querySelector(".foot")`)
	return evaluate[string](b, `/&h=([0-9a-f]{8})/.exec(location.hash)[1]`)
}

// What the page exports, as a trace or as a scenario, opens as the same run, in both forms. The command reads the trace.
func TestExportedFilesOpen(t *testing.T) {
	t.Parallel()
	for name, address := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, address(t))
			b.says(shown)
			for _, run := range []string{"#/run?g=article", "#/run?g=bank-causal", "#/run?s=om&f=2:flip&seed=7", "#/run?g=threephase-partition"} {
				for _, kind := range []string{"Trace", "Scenario"} {
					b.follow("#/about")
					b.until(`document.querySelector("h1")?.textContent.includes("About")`)
					b.follow(run)
					want := b.hash()
					file, text := b.exported(kind)
					b.drop(file, text)
					b.until(`/run\?[ty]=/.test(location.hash)`)
					if got := b.hash(); got != want {
						t.Errorf("%s as a %s: got the trace %s, want %s", run, kind, got, want)
					}
					if kind != "Trace" {
						continue
					}
					if _, log, err := trace.Read(strings.NewReader(text)); err != nil || !strings.HasPrefix(log.Hash(), want) {
						t.Errorf("%s: the command reads %v", run, err)
					}
				}
			}
			b.clean()
		})
	}
}

// A file that cannot be opened says why, and at which line; the page keeps what it showed.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile(record(t, "run", "om"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(good), "\n")
	for name, address := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, address(t))
			b.says(shown)
			b.follow("#/run?g=article")
			before := b.hash()
			for _, c := range []struct{ name, text, says string }{
				{"a.jsonl", strings.Replace(string(good), `"at":`, `"at";`, 1), "a.jsonl cannot be opened: line "},
				{"b.jsonl", strings.Join(append(lines[:3:3], lines[4:]...), ""), "b.jsonl cannot be opened: line 4: event "},
				{"c.jsonl", strings.Join(lines[:len(lines)-2], ""), "its last line is missing"},
				{"d.jsonl", "{}", "d.jsonl cannot be opened: line 1: "},
				{"e.jsonl", "<script>alert(1)</script>", "e.jsonl cannot be opened: line 1: "},
			} {
				b.drop(c.name, c.text)
				b.says(c.says)
				if got := b.hash(); got != before {
					t.Errorf("%s: the page shows %s, want %s", c.name, got, before)
				}
			}
			b.drop("bad.yaml", "protocol: om\nn: 4\nm: lots\n")
			b.says("line 3")
			b.clean()
		})
	}
}

// record makes a run in a shell and returns the file of its trace.
func record(t *testing.T, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.jsonl")
	if err := run(append(append([]string{built.parley}, args...), "--trace", file)); err != nil {
		t.Fatal(err)
	}
	return file
}
