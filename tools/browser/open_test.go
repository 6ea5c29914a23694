package browser_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/internal/lab/link"
)

// openedBy starts a command with --open, and returns the address that it prints, and a function that ends it with Ctrl-C
// and returns its report and its exit status. No browser opens by itself, because there is no display.
func openedBy(t *testing.T, line string) (address string, end func() (report string, status int)) {
	t.Helper()
	cmd := exec.Command(built.parley, strings.Fields(line)...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "DISPLAY=", "WAYLAND_DISPLAY=")
	var report strings.Builder
	cmd.Stdout = &report
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	ended := false
	end = func() (string, int) {
		if !ended {
			ended = true
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Error(err)
			}
			_, _ = io.Copy(io.Discard, lines)
			_ = cmd.Wait() // the exit status says how it ended
		}
		return report.String(), cmd.ProcessState.ExitCode()
	}
	t.Cleanup(func() { end() })
	first, err := lines.ReadString('\n')
	address, found := strings.CutPrefix(strings.TrimSpace(first), "The lab shows it at ")
	if err != nil || !found {
		t.Fatalf("%s printed %q, %v", line, first, err)
	}
	return address, end
}

// A command with --open opens the lab at its run: the page shows the trace that the command has printed, and says
// nothing about another version.
func TestOpen(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "run.jsonl")
	for _, c := range []struct {
		line, says string
		status     int
	}{
		{"run eig -n 4 -m 1 --faulty 3=twofaced --values 0 --seed 9 --trace " + file + " --open", "n = 4", 0},
		{"run --scenario docs/scenarios/bank-causal.yaml --open", "n = ", 0},
		{"run --replay " + file + " --open", "from a trace file", 0},
		{"trace show " + file + " --open", "from a trace file", 0},
		{"explore om -n 3 -m 1 --step round --beyond-bound --property validity --open", "from a trace file", 1},
	} {
		t.Run(c.line, func(t *testing.T) {
			address, end := openedBy(t, c.line)
			b := open(t, address)
			b.says(c.says)
			b.until(`document.querySelector(".picture svg")`)
			if notice := evaluate[string](b, `document.querySelector(".notice")?.textContent ?? ""`); notice != "" {
				t.Errorf("the page says %s", notice)
			}
			to, err := link.Read(evaluate[string](b, "location.hash"))
			if err != nil {
				t.Fatal(err)
			}
			b.do(reload)
			b.says(c.says)
			b.clean()
			if report, status := end(); status != c.status || to.Hash == "" ||
				!strings.Contains(c.line, "explore") && !strings.Contains(report, "trace "+to.Hash) {
				t.Errorf("hash %q, status %d, want %d, report\n%s", to.Hash, status, c.status, report)
			}
		})
	}
}

// A search that has found nothing opens the form of the search, as it was.
func TestOpenSearch(t *testing.T) {
	t.Parallel()
	address, _ := openedBy(t, "explore om -n 4 -m 1 --step round --property agreement,validity --open")
	b := open(t, address)
	b.until(`document.querySelector(".model-words")`)
	if line := evaluate[string](b, `document.querySelector(".again code").textContent`); line !=
		"parley explore om -m=1 -n=4 --property=agreement,validity --step=round" {
		t.Errorf("the same in a terminal: %s", line)
	}
	b.clean()
}
