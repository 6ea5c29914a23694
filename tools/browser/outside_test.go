package browser_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/lab/engine"
)

// outsideMain is the command of a module outside: the protocols of Parley, the protocol that "parley new protocol" has
// written, and one that tolerates liars.
const outsideMain = `package main

import (
	"flag"

	"example.org/mine"

	"parley"
	"parley/agreement/eig"
	"parley/catalog"
	"parley/cli"
	"parley/lockstep"
)

func main() {
	cli.Main(append(catalog.All(), mine.New(mine.Config{N: 5, M: 2, Default: []byte("0")}),
		hearsay(eig.New(eig.Config{N: 4, M: 1, Default: []byte("0")}, lockstep.Simulated))))
}

// hearsay is a protocol under another name.
func hearsay(p parley.Protocol) parley.Protocol {
	flags := p.Flags
	p.Name, p.Title = "hearsay", "agreement by hearsay"
	p.Flags = func(fs *flag.FlagSet) func(parley.Naming) (parley.Protocol, error) {
		build := flags(fs)
		return func(n parley.Naming) (parley.Protocol, error) {
			made, err := build(n)
			made.Name, made.Title = p.Name, p.Title
			return made, err
		}
	}
	return p
}
`

// outsideCommand builds the command of a module outside, and returns its file.
func outsideCommand(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "mine")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	in := func(where string, words ...string) {
		t.Helper()
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = where
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOPROXY=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
		}
	}
	in(filepath.Dir(dir), built.parley, "new", "protocol", "mine", "--source", root)
	if err := os.WriteFile(filepath.Join(dir, "cmd", "mine", "main.go"), []byte(outsideMain), 0o600); err != nil {
		t.Fatal(err)
	}
	in(dir, "go", "build", "-o", "command", "./cmd/mine")
	return filepath.Join(dir, "command")
}

// A protocol of a module outside gets all views of the lab, although nobody writes JavaScript for it.
func TestOutsideProtocol(t *testing.T) {
	t.Parallel()
	command := outsideCommand(t)
	b := open(t, servedBy(t, command))
	b.says(shown)

	// A run: pictures, tables, verdict, story and state; its form, and its file.
	b.follow("#/run?s=mine&n=5&m=2&f=1:crash@r0:2&at=12&lab=1")
	b.says("greement by flooding, when processes crash")
	b.until(`document.querySelector(".picture svg") && document.querySelector(".tables [data-ref]") &&
		document.querySelector(".story .line") && document.querySelector(".state .process dd")`)
	b.says("VALUE")
	b.says("in one of m+1 rounds no process crashes")
	b.press("Change…")
	b.until(`document.querySelector(".form .theorem")`)

	// A protocol with liars also has its information tree, and the vote of a node.
	b.follow("#/run?s=hearsay&n=4&m=1&f=3:twofaced&sel=P2/1&lab=1")
	b.says("greement by hearsay")
	b.until(`document.querySelectorAll(".picture svg").length >= 2 && document.querySelector(".selected-card .ballots")`)
	b.says("The information tree of P2")

	// A search that finds a run, and one that visits everything.
	b.follow("#/explore?s=mine&n=3&m=0&losses=1&beyond-bound=true&property=agreement")
	b.until(`document.querySelector(".model-words li")`)
	b.press("Search")
	b.until(`document.querySelector(".end.found")`)
	b.press("Open the run")
	b.until(`location.hash.startsWith("#/run?t=") && document.querySelector(".picture svg")`)
	b.follow("#/explore?s=hearsay&n=4&m=1&step=round")
	b.until(`document.querySelector(".model-words li")?.textContent.includes("hearsay")`)
	b.press("Search")
	b.until(`document.querySelector(".end.exhausted")`)

	// The seat of a traitor.
	b.follow("#/traitor?s=hearsay&n=4&m=1&seats=P2&property=validity")
	b.until(`document.querySelector(".option.lie input")`)
	evaluate[bool](b, `document.querySelector(".option.lie input").click() ?? true`)
	b.until(`document.querySelector(".option.lie.chosen")`)
	b.press("Send, and close the round")
	b.says("hearsay")

	// What it costs, beside the others.
	b.follow("#/cost?m=1&most=10&quantity=messages")
	b.until(`document.querySelector(".costs svg")?.textContent.includes("hearsay")`)
	b.clean()

	// Its link is written and read as any other, and its command makes the same run.
	hash := b.runHash("#/run?s=hearsay&n=4&m=1&f=3:twofaced&seed=5&lab=1")
	out, err := exec.Command(command, "run", "hearsay", "-n", "4", "-m", "1", "--faulty", "3=twofaced", "--seed", "5", "--json").Output()
	var report engine.RunAnswer
	if err := json.Unmarshal(out, &report.Report); err != nil || report.Report.Trace == "" {
		t.Fatalf("%v: %.300s", err, out)
	}
	if err != nil || !strings.HasPrefix(report.Report.Trace, hash) {
		t.Errorf("the page made the trace %s, the command %s, %v", hash, report.Report.Trace, err)
	}
}

// runHash follows a link to a run and returns the beginning of the hash of its trace.
func (b *tab) runHash(fragment string) string {
	b.t.Helper()
	b.follow("#/about")
	b.until(`document.querySelector("h1")?.textContent.includes("About")`)
	b.follow(fragment)
	return b.hash()
}
