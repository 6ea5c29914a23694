package cli_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley/catalog"
	"parley/docs/scenarios"
	"parley/internal/lab/engine"
)

// programVariable makes this test binary a program that takes part in a run.
const programVariable = "PARLEY_TEST_PROGRAM"

// takePart is such a program: with m = 0, the source sends its value, and all decide on what they have.
func takePart(way string) {
	var self string
	var nodes []string
	value := "0"
	say := func(dest string, body map[string]any) {
		b, err := json.Marshal(map[string]any{"src": self, "dest": dest, "body": body})
		if err != nil {
			panic(err)
		}
		fmt.Println(string(b))
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var l struct {
			Body struct {
				Type, Value string
				NodeID      string   `json:"node_id"`
				NodeIDs     []string `json:"node_ids"`
			}
		}
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			panic(err)
		}
		switch l.Body.Type {
		case "init":
			self, nodes = l.Body.NodeID, l.Body.NodeIDs
			say("c1", map[string]any{"type": "init_ok", "in_reply_to": 1})
			say("parley", map[string]any{"type": "set_timer", "timer": 1, "after": 1000})
		case "propose":
			value = l.Body.Value
			for _, n := range nodes {
				if n != self {
					say(n, map[string]any{"type": "value", "value": value})
				}
			}
		case "value":
			value = l.Body.Value
			if way == "garbage" {
				fmt.Println("what?")
			}
		case "timeout":
			if way == "part" {
				value = self
			}
			say("parley", map[string]any{"type": "decide", "value": value})
		}
		if way != "no-done" {
			say("parley", map[string]any{"type": "parley_done"})
		}
	}
}

// programs returns the arguments of a run of programs that go a way.
func programs(t *testing.T, way string, more ...string) []string {
	t.Helper()
	t.Setenv(programVariable, "1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{"run", "om", "-n", "3", "-m", "0", "--values", "seven", "--node", "'" + self + "' " + way}, more...)
}

// A run of programs is reported, judged and traced like any other, and its trace can be shown, also by the lab.
func TestRunPrograms(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.jsonl")
	out, stderr, status := run(programs(t, "right", "--trace", file)...)
	for _, want := range []string{"by programs", "each process runs the program", "│ P3      │ –           │ seven   │", "✓ validity     held"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("status %d, %s: it lacks %q:\n%s", status, stderr, want, out)
		}
	}
	if strings.Contains(out, "cannot be repeated") {
		t.Error("the run can be repeated, and its report says otherwise")
	}
	again, _, _ := run(programs(t, "right")...)
	if hashOf(t, again) != hashOf(t, out) {
		t.Error("the same seed makes another run")
	}
	if out, stderr, status := run("trace", "show", file); status != 0 || !strings.Contains(out, "│ P2      │ –           │ seven   │") {
		t.Errorf("trace show: status %d, %s%s", status, stderr, out)
	}
	if _, stderr, status := run("run", "--replay", file); status != 2 || !strings.Contains(stderr, "a trace of programs") {
		t.Errorf("replay: status %d, %s", status, stderr)
	}
	if out, stderr, status := run("audit", file); status != 0 || !strings.Contains(out, "✓ validity") {
		t.Errorf("audit: status %d, %s%s", status, stderr, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lab := engine.New(catalog.All(), scenarios.Files, "test")
	for _, kind := range []string{"run", "tables", "story", "state", "event"} {
		question := map[string]any{"ask": kind, "run": map[string]any{"trace": string(text)}}
		switch kind {
		case "state":
			question["at"] = 9
		case "event":
			question["event"] = 9
		}
		q, err := json.Marshal(question)
		if err != nil {
			t.Fatal(err)
		}
		a := string(lab.Answer(t.Context(), q, nil))
		if strings.HasPrefix(a, `{"error":`) {
			t.Errorf("the lab answers %s with %.300s", kind, a)
		}
	}
	// The lab starts no programs, whatever a page or a scenario says.
	for _, q := range []string{
		`{"ask":"run","run":{"protocol":"om","flags":{"node":"true"}}}`,
		`{"ask":"run","run":{"scenario":"protocol: om\nnode: true\n"}}`,
	} {
		if a := string(lab.Answer(t.Context(), []byte(q), nil)); !strings.Contains(a, "node") || !strings.HasPrefix(a, `{"error":`) {
			t.Errorf("%s: %.300s", q, a)
		}
	}
}

func hashOf(t *testing.T, report string) string {
	t.Helper()
	_, rest, ok := strings.Cut(report, "events, trace ")
	hash, _, _ := strings.Cut(rest, "\n")
	if !ok {
		t.Fatalf("no hash in %s", report)
	}
	return hash
}

// Programs that disagree break a promise. A program that fails ends the run.
func TestRunWrongPrograms(t *testing.T) {
	if out, _, status := run(programs(t, "part")...); status != 1 || !strings.Contains(out, "✗ agreement") {
		t.Errorf("status %d:\n%s", status, out)
	}
	_, stderr, status := run(programs(t, "garbage")...)
	const want = `--node: the program of P3 (n3) wrote "what?" in its line 4: it is not a JSON object`
	if status != 1 || !strings.Contains(stderr, want) {
		t.Errorf("status %d, %s", status, stderr)
	}
	out, _, status := run("sweep", "om", "--seeds", "1..3", "-n", "3", "-m", "0", "--node", programs(t, "part")[9])
	if status != 1 || !strings.Contains(out, "seed 1 breaks agreement") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

// A run of programs that do not end their answers says in the report, in JSON and in the trace that it cannot be
// repeated.
func TestRunUnrepeatable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.jsonl")
	out, _, status := run(programs(t, "no-done", "--trace", file)...)
	if status != 0 || !strings.Contains(out, "This run cannot be repeated exactly") {
		t.Errorf("status %d:\n%s", status, out)
	}
	if out, _, _ := run("trace", "show", file); !strings.Contains(out, "This run cannot be repeated exactly") {
		t.Error(out)
	}
	head, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(head), `"unrepeatable":true`) {
		t.Errorf("%v: the trace is not marked", err)
	}
	if out, _, _ := run(programs(t, "no-done", "--json")...); !strings.Contains(out, `"unrepeatable": true`) {
		t.Error(out)
	}
}

var foreignExamples = flag.Bool("examples", false, "run the example nodes in Python and JavaScript")

// TestForeignExamples runs the example nodes under examples/foreign. It needs python3. The example in JavaScript runs
// only if node is installed.
func TestForeignExamples(t *testing.T) {
	dir := filepath.Join("..", "examples", "foreign")
	for _, e := range []struct {
		language, file string
		sweep          []string
	}{
		{"python3", "python/om.py", []string{"om", "-n", "4", "-m", "1", "--faulty", "3=random", "--seeds", "1..5"}},
		{"python3", "python/om.py", []string{"om", "-n", "7", "-m", "2", "--faulty", "1=twofaced,5=flip", "--seeds", "1..2"}},
		{"node", "javascript/fifo.js", []string{"fifo", "-n", "4", "--seeds", "1..5"}},
		{"node", "javascript/fifo.js", []string{"fifo", "-n", "4", "--random", "{crashes: 1}", "--seeds", "1..5"}},
	} {
		if _, err := os.Stat(filepath.Join(dir, e.file)); err != nil {
			t.Error(err)
		}
		if !*foreignExamples {
			continue
		}
		if _, err := exec.LookPath(e.language); err != nil {
			if t.Logf("%s is not installed: %s is not tested", e.language, e.file); e.language == "python3" {
				t.Error(err)
			}
			continue
		}
		args := append([]string{"sweep"}, e.sweep...)
		out, stderr, status := run(append(args, "--node", e.language+" "+filepath.Join(dir, e.file))...)
		if status != 0 || !strings.Contains(out, "no promise was broken") || strings.Contains(out, "cannot be repeated") {
			t.Errorf("%s: status %d, %s%s", e.sweep, status, stderr, out)
		}
	}
}
