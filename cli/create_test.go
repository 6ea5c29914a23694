package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// made has "parley new" write a module in a new folder, and returns that folder and what runs the go command there.
func made(t *testing.T, kind, name string) (dir string, goTool func(args ...string) string) {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	out, stderr, status := run("new", kind, name, "--source", root)
	if status != 0 || !strings.Contains(out, "\n  go test ./...\n") {
		t.Fatalf("status %d, %s%s", status, out, stderr)
	}
	if _, stderr, status := run("new", kind, name, "--source", root); status != 2 || !strings.Contains(stderr, "exists already") {
		t.Errorf("once more: status %d, %s", status, stderr)
	}
	dir, err = filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return dir, goIn(t, dir)
}

// A designer's protocol in a module of its own, of about eighty lines, gets the command line and the suite.
func TestNewProtocol(t *testing.T) {
	dir, goTool := made(t, "protocol", "mine")
	if out := goTool("test", "-v", "./..."); !strings.Contains(out, "--- PASS: TestSuite/promises") {
		t.Errorf("the suite did not run:\n%s", out)
	}
	goTool("build", "-o", "mine.exe", "./cmd/mine")
	run := func(args ...string) string {
		out, err := exec.Command(filepath.Join(dir, "mine.exe"), args...).CombinedOutput()
		if err != nil {
			t.Fatalf("mine %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	for _, want := range []string{"agreement by flooding", "\nmine ", "\neig "} {
		if out := run("list"); !strings.Contains(out, want) {
			t.Errorf("list lacks %q:\n%s", want, out)
		}
	}
	out := run("run", "mine", "-n", "5", "-m", "2", "--values", "7", "--faulty", "1=crash@r0:1")
	for _, want := range []string{"✓ agreement", "│ P5      │ –           │ 7       │ correct"} {
		if !strings.Contains(out, want) {
			t.Errorf("run lacks %q:\n%s", want, out)
		}
	}
	out = run("explore", "mine", "-n", "3", "-m", "1", "--crashes", "1")
	for _, want := range []string{"at most 1 crash", "exhausted: no promise breaks. In every state: agreement, "} {
		if !strings.Contains(out, want) {
			t.Errorf("explore lacks %q:\n%s", want, out)
		}
	}
	// A lost message is worse than a crash, and one round is too few to tolerate it.
	beyond := exec.Command(filepath.Join(dir, "mine.exe"), "explore", "mine", "-n", "3", "-m", "0", "--losses", "1",
		"--beyond-bound", "--property", "agreement")
	b, err := beyond.CombinedOutput()
	if code := beyond.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(b), "found: agreement breaks, which is not promised") {
		t.Errorf("explore finds nothing beyond the bound: status %d, %v\n%s", code, err, b)
	}
	if out := run("run", "mine", "--faulty", "1=twofaced"); !strings.Contains(out, "tolerates crash faults, but a fault was worse") {
		t.Errorf("a liar is beyond the model, and the run does not say so:\n%s", out)
	}
}

// outside creates another module from some files. It returns its folder and a function that runs the go command
// there.
func outside(t *testing.T, files map[string]string) (dir string, goTool func(args ...string) string) {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for from, to := range files {
		copyFile(t, filepath.Join("testdata", "outside", from), filepath.Join(dir, to))
	}
	copyFile(t, filepath.Join(root, "go.sum"), filepath.Join(dir, "go.sum"))
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(mod), "module parley\n", "module example.org/mine\n", 1) +
		"\nrequire parley v0.0.0\n\nreplace parley => " + root + "\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, goIn(t, dir)
}

// goIn returns what runs the go command in a folder, and ends the test if it fails.
func goIn(t *testing.T, dir string) func(args ...string) string {
	return func(args ...string) string {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOPROXY=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
}

// A new service compiles, and its test kills a node.
func TestNewService(t *testing.T) {
	_, goTool := made(t, "service", "tally")
	goTool("vet", "./...")
	if out := goTool("test", "-v", "."); !strings.Contains(out, "--- PASS: TestCountSurvivesCrash") {
		t.Errorf("its test did not run:\n%s", out)
	}
}

// A module is written only under a name that is free and can be a package, and only with a checkout at hand.
func TestNewRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	for line, want := range map[string]string{
		"new":                            "parley new: name a command: allowed are protocol, service",
		"new protocol":                   "parley new protocol: one NAME is needed, and none is given",
		"new protocol My-Own":            `parley new protocol: "My-Own" is not a name: write at most 31 lower-case letters`,
		"new protocol eig":               `parley new protocol: there is a protocol "eig" already`,
		"new service mine":               "is not a checkout of Parley: name the folder with its go.mod",
		"new service mine --source none": "--source: ",
	} {
		if _, stderr, status := run(strings.Fields(line)...); status != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %s", line, status, stderr)
		}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
