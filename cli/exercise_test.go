package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley/exercises/model"
)

// variant is what a student may write: the model solution with some code replaced.
type variant struct {
	exercise, name string
	from, to       string
	broken         string // the promise that it breaks first; empty: none
	points         int
}

// variants are the model solutions, and typical mistakes.
var variants = []variant{
	{exercise: "om", name: "solution", points: 20},
	{exercise: "om", name: "believes", from: "if len(path) == p.c.Last() {", to: "if len(path) <= p.c.Last() {",
		broken: "agreement", points: 12},
	{exercise: "om", name: "forgets", from: "p.store(path, value)\n", to: "_ = value\n", broken: "validity"},
	{exercise: "om", name: "shallow", from: "p.fold(append(bytes.Clone(path), byte(id)))", to: "p.along(append(bytes.Clone(path), byte(id)))",
		broken: "agreement", points: 12},
	{exercise: "om", name: "selfless", from: "\tvotes.Vote(p.self, p.along(path))\n", to: "", broken: "agreement"},
	{exercise: "fifo", name: "solution", points: 20},
	{exercise: "fifo", name: "hasty", from: "\tp.put(early{from, m.Seq, m.Body})\n",
		to: "\tp.deliver(s, from, m.Body)\n\treturn\n", broken: "FIFO order", points: 10},
	{exercise: "fifo", name: "drops", from: "\tp.put(early{from, m.Seq, m.Body})\n",
		to: "\tif m.Seq == p.next[from] {\n\tp.put(early{from, m.Seq, m.Body})\n\t}\n", broken: "validity"},
	{exercise: "priorities", name: "solution", points: 20},
	{exercise: "priorities", name: "impatient", from: "if v.from.Len() < s.N {", to: "if v.from.Len() < 2 {",
		broken: "total order"},
	{exercise: "priorities", name: "hasty", from: "\t\tif !first.final {\n\t\t\treturn\n\t\t}\n", to: "",
		broken: "total order", points: 10},
	{exercise: "twophase", name: "solution", points: 20},
	{exercise: "twophase", name: "majority", from: "if p.yes.Len() < s.N {", to: "if p.yes.Len() <= s.N/2 {",
		broken: "atomicity", points: 9},
	{exercise: "twophase", name: "mute", from: "\ts.SendAll(parley.Msg{Kind: Decision, Value: outcome.Bit()})\n",
		to:     "\tif yes {\n\t\ts.SendAll(parley.Msg{Kind: Decision, Value: outcome.Bit()})\n\t}\n",
		broken: "termination"},
	{exercise: "twophase", name: "guesses", from: "\tif p.done {\n\t\treturn\n\t}\n\t// hole: A vote is missing",
		to:     "\tif p.done {\n\t\treturn\n\t}\n\tp.decide(s, problem.Commit)\n\t// hole: A vote is missing",
		broken: "atomicity", points: 9},
}

// TestExerciseGrades grades what "parley exercise new" writes, the model solutions, and typical mistakes. All machines
// are in one program, because the linker takes seconds.
func TestExerciseGrades(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	all := variants
	for _, name := range []string{"om", "fifo", "priorities", "twophase"} {
		if out, stderr, status := run("exercise", "new", name, "new-"+name, "--source", root); status != 0 {
			t.Fatalf("status %d, %s%s", status, out, stderr)
		}
		all = append(all, variant{exercise: name, name: "holes", broken: "validity"})
	}
	var imports, cases bytes.Buffer
	for _, v := range all {
		text, err := os.ReadFile(filepath.Join("new-"+v.exercise, v.exercise+".go"))
		if v.name != "holes" {
			text, err = model.Sources.ReadFile(v.exercise + "/" + v.exercise + ".go")
		} else if tidied, wrong := format.Source(text); wrong != nil || !bytes.Equal(tidied, text) {
			t.Errorf("%s: gofmt changes what is written: %v", v.exercise, wrong)
		} else if n := strings.Count(string(text), "TODO(you)"); n < 2 || strings.Contains(string(text), "// | ") {
			t.Errorf("%s has %d holes:\n%s", v.exercise, n, text)
		}
		if err != nil || strings.Count(string(text), v.from) != 1 && v.from != "" {
			t.Fatalf("%s %s: %v, and the code to replace is there %d times", v.exercise, v.name, err,
				strings.Count(string(text), v.from))
		}
		alias := v.exercise + v.name
		write(t, filepath.Join("new-om", alias, v.exercise+".go"), strings.Replace(string(text), v.from, v.to, 1))
		fmt.Fprintf(&imports, "\t%s %q\n", alias, "example.org/om/"+alias)
		make := map[string]string{"om": "OM", "fifo": "FIFO", "priorities": "Priorities", "twophase": "TwoPhase"}[v.exercise]
		fmt.Fprintf(&cases, "\tcase %q: p = exercises.%s(%s.New)\n", alias, make, alias)
	}
	write(t, "new-om/grade/main.go", "package main\n\nimport (\n\t\"os\"\n\n\t\"parley\"\n\t\"parley/cli\"\n\t\"parley/exercises\"\n"+
		imports.String()+")\n\nfunc main() {\n\tvar p parley.Protocol\n\tswitch os.Getenv(\"VARIANT\") {\n"+cases.String()+
		"\t}\n\tcli.Main([]parley.Protocol{p})\n}\n")
	goIn(t, filepath.Join(dir, "new-om"))("build", "-o", filepath.Join(dir, "grade.exe"), "./grade")
	for _, v := range all {
		t.Run(v.exercise+" "+v.name, func(t *testing.T) { v.check(t, filepath.Join(dir, "grade.exe")) })
	}
}

// check grades a variant.
func (v variant) check(t *testing.T, program string) {
	file := filepath.Join(t.TempDir(), "failing.jsonl")
	cmd := exec.Command(program, "exercise", "grade", v.exercise, "--json", "--trace", file)
	cmd.Env = append(os.Environ(), "VARIANT="+v.exercise+v.name)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	var got struct {
		Points, Of int
		Failed     string
		Promises   []struct {
			Promise, Outcome, Why, Again string
			Points, Runs                 int
		}
	}
	checkJSON(t, []string{"exercise", "check"}, out.String())
	if json.Unmarshal(out.Bytes(), &got) != nil {
		t.Fatalf("%v: %s%s", err, out.String(), stderr.String())
	}
	if full := got.Points == got.Of; full != (cmd.ProcessState.ExitCode() == 0) || full != (v.name == "solution") ||
		got.Points != v.points || got.Of != 20 || got.Failed != "" {
		t.Errorf("status %d, %s", cmd.ProcessState.ExitCode(), out.String())
	}
	if v.name == "holes" {
		return // nothing is delivered, or only the default
	}
	var first, again string
	for _, p := range got.Promises {
		if p.Outcome == "VIOLATED" && first == "" {
			first, again = p.Promise, p.Again
		}
		if v.name == "solution" && p.Runs < 10 {
			t.Errorf("%s is put to the test in %d runs", p.Promise, p.Runs)
		}
	}
	if first != v.broken {
		t.Errorf("it breaks %q first, want %q: %s", first, v.broken, out.String())
	}
	if v.broken == "" {
		return
	}
	// The command shows the run, and the trace holds it.
	args := words(strings.TrimPrefix(again, "go run ./cmd/"+v.exercise+" "))
	cmd = exec.Command(program, append(args, "--width", "200")...)
	cmd.Env = append(os.Environ(), "VARIANT="+v.exercise+v.name)
	shown, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(shown), first) {
		t.Errorf("%s: status %d, %s", again, cmd.ProcessState.ExitCode(), shown)
	}
	cmd = exec.Command(program, "trace", "show", file, "--show", "verdict")
	cmd.Env = append(os.Environ(), "VARIANT="+v.exercise+v.name)
	if shown, _ := cmd.CombinedOutput(); !strings.Contains(string(shown), "✗ "+first) {
		t.Errorf("the trace shows %s", shown)
	}
}

// TestExerciseCheck checks a folder as a student does.
func TestExerciseCheck(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if _, stderr, status := run("exercise", "new", "twophase", "mine", "--source", root); status != 0 {
		t.Fatal(stderr)
	}
	solution, err := model.Sources.ReadFile("twophase/twophase.go")
	if err != nil {
		t.Fatal(err)
	}
	write(t, "mine/twophase.go", string(solution))
	out, stderr, status := run("exercise", "check", "mine")
	for _, want := range []string{"promise          outcome    points\n", "atomicity        held       6 of 6\n", "20 of 20\n",
		"all promises hold, and all were tested"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("status %d, %s: it lacks %q:\n%s", status, stderr, want, out)
		}
	}
	sums, err := os.ReadFile("mine/go.sum")
	if err != nil {
		t.Fatal(err)
	}
	write(t, "mine/go.sum", "")
	_, stderr, status = run("exercise", "check", "mine")
	if left, err := os.ReadFile("mine/go.sum"); status != 2 || err != nil || len(left) > 0 ||
		!strings.Contains(stderr, "missing go.sum entry") || !strings.Contains(stderr, "lacks what the lines above name") {
		t.Errorf("status %d, %s: %v, go.sum has %d bytes", status, stderr, err, len(left))
	}
	write(t, "mine/go.sum", string(sums))
	write(t, "mine/twophase.go", "package twophase\n\nvar New = missing\n")
	if _, stderr, status := run("exercise", "check", "mine"); status != 2 ||
		!strings.Contains(stderr, "undefined: missing") || !strings.Contains(stderr, "does not compile: check the lines above") {
		t.Errorf("status %d, %s", status, stderr)
	}
	write(t, "mine/cmd/twophase/main.go", "package main\n\nfunc main() {}\n")
	if _, stderr, status := run("exercise", "check", "mine"); status != 2 || !strings.Contains(stderr, "was changed, and grades depend on it") {
		t.Errorf("status %d, %s", status, stderr)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
