package browser_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// dropFiles drops several files on the page.
func (b *tab) dropFiles(files map[string]string) {
	b.t.Helper()
	evaluate[bool](b, `(() => {
		const data = new DataTransfer();
		for (const [name, text] of Object.entries(`+literal(files)+`)) data.items.add(new File([text], name));
		dispatchEvent(new DragEvent("drop", {dataTransfer: data, cancelable: true}));
		return true;
	})()`)
}

// nodeTraces returns the traces of four nodes, the first of which is two-faced.
func nodeTraces(t *testing.T) map[string]string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("..", "..", "testdata", "traces", "*.jsonl"))
	if err != nil || len(found) != 8 {
		t.Fatal(found, err)
	}
	files := make(map[string]string)
	for _, file := range found {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(file)] = string(b)
	}
	return files
}

// The program merges the traces of several nodes into one run. The reader chooses the machine and the agreement, and a
// link leads back to the choice. What the page exports opens again. The static form names the command that can.
func TestTracesOfNodes(t *testing.T) {
	files := nodeTraces(t)
	t.Run("static", func(t *testing.T) {
		b := open(t, forms["static"](t))
		b.says(shown)
		b.dropFiles(files)
		b.says("8 files cannot be opened: these are traces of nodes of a cluster")
		b.clean()
	})
	b := open(t, forms["served"](t))
	b.says(shown)
	b.dropFiles(files)
	b.until(`document.querySelector("#machine")?.value === "agree/eig/1/1"`)
	b.says("P1 is node1, as the others heard it")
	first := b.hash()
	b.until(`document.querySelectorAll(".verdicts .ok").length === 4`)
	b.pressNamed("Next agreement")
	b.until(`/slot=2/.test(location.hash) && document.querySelector("#slot")?.value === "2" && document.querySelector('[aria-label="Next agreement"]').disabled`)
	second := b.hash()
	if second == first {
		t.Error("the second agreement is the first")
	}
	evaluate[bool](b, `(() => {
		const machine = document.querySelector("#machine");
		machine.value = "group/order";
		return machine.dispatchEvent(new Event("change", {bubbles: true}));
	})()`)
	b.until(`/machine=group\/order/.test(location.hash) && document.querySelector(".verdicts")?.textContent.includes("total order")`)
	order := b.hash()
	link := evaluate[string](b, `location.hash`)
	name, text := b.exported("Trace")
	if name != "group-order.jsonl" {
		t.Errorf("the export is %s", name)
	}
	evaluate[bool](b, `(history.back(), true)`)
	b.until(`document.querySelector("#slot")?.value === "2"`)
	if got := b.hash(); got != second {
		t.Errorf("back: got %s, want %s", got, second)
	}
	b.drop(name, text)
	b.until(`document.querySelector("code#machine")?.textContent === "group/order"`)
	if got := b.hash(); got != order {
		t.Errorf("exported and opened: got %s, want %s", got, order)
	}
	b.follow(link)
	b.until(`document.querySelector("select#machine")?.value === "group/order"`)
	const broken = "agree-eig-1-1.node2.jsonl"
	files[broken] = strings.Replace(files[broken], `"op":"send"`, `"op":"sand"`, 1)
	b.dropFiles(files)
	b.says("8 files cannot be opened: " + broken + ", line ")
	b.clean()
}
