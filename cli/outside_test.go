package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A protocol of about 80 lines in a module of its own gets the command line and the test suite.
func TestOutsideModule(t *testing.T) {
	dir, goTool := outside(t, map[string]string{
		"mine.go.txt": "mine.go", "mine_test.go.txt": "mine_test.go", "main.go.txt": "cmd/mine/main.go",
	})
	if out := goTool("test", "-v", "."); !strings.Contains(out, "--- PASS: TestSuite/promises") {
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
	for _, want := range []string{"agreement by flooding", "\nflood ", "\neig "} {
		if out := run("list"); !strings.Contains(out, want) {
			t.Errorf("list lacks %q:\n%s", want, out)
		}
	}
	out := run("run", "flood", "-n", "5", "-m", "2", "--values", "7", "--faulty", "1=crash@r0:1")
	for _, want := range []string{"✓ agreement", "│ P5      │ –           │ 7       │ correct"} {
		if !strings.Contains(out, want) {
			t.Errorf("run lacks %q:\n%s", want, out)
		}
	}
	out = run("explore", "flood", "-n", "3", "-m", "1", "--crashes", "1")
	for _, want := range []string{"at most 1 crash", "exhausted: no promise breaks. In every state: agreement, "} {
		if !strings.Contains(out, want) {
			t.Errorf("explore lacks %q:\n%s", want, out)
		}
	}
	// A lost message is worse than a crash, and one round is too few to tolerate it.
	beyond := exec.Command(filepath.Join(dir, "mine.exe"), "explore", "flood", "-n", "3", "-m", "0", "--losses", "1",
		"--beyond-bound", "--property", "agreement")
	b, err := beyond.CombinedOutput()
	if code := beyond.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(b), "found: agreement breaks, which is not promised") {
		t.Errorf("explore finds nothing beyond the bound: status %d, %v\n%s", code, err, b)
	}
	if out := run("run", "flood", "--faulty", "1=twofaced"); !strings.Contains(out, "a fault worse than crash faults") {
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
	return dir, func(args ...string) string {
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
