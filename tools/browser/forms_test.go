package browser_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// built are the command and the static site.
var built struct{ parley, site string }

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "parley-browser-")
	if err == nil {
		built.parley, built.site = filepath.Join(dir, "parley"), filepath.Join(dir, "site")
		err = run(
			[]string{"go", "build", "-o", built.parley, "./cmd/parley"},
			[]string{"go", "run", "./internal/lab/site", "-out", built.site})
	}
	status := 1
	if err == nil {
		status = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(status)
}

// run runs commands at the top of the repository.
func run(commands ...[]string) error {
	for _, words := range commands {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(words, " "), err, out)
		}
	}
	return nil
}

// served starts "parley lab" and returns its address, with the token.
func served(t *testing.T) string {
	t.Helper()
	return servedBy(t, built.parley)
}

// servedBy does so with another command.
func servedBy(t *testing.T, command string) string {
	t.Helper()
	cmd := exec.Command(command, "lab", "--no-open", "--listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("parley lab ended by %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	address, found := strings.CutPrefix(strings.TrimSpace(line), "The lab is at ")
	if err != nil || !found {
		t.Fatalf("parley lab printed %q, %v", line, err)
	}
	return address
}

// static serves the static site below a path, and returns its address.
func static(t *testing.T, path string, around func(http.Handler) http.Handler) string {
	t.Helper()
	h := http.StripPrefix(path, http.FileServer(http.Dir(built.site)))
	if around != nil {
		h = around(h)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL + path
}

// encoded marks compressed files as a server does that takes their endings for an encoding.
func encoded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".gz") {
			w.Header().Set("Content-Encoding", "gzip")
		}
		h.ServeHTTP(w, r)
	})
}

// unpacked has no compressed files.
func unpacked(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".gz") {
			http.NotFound(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}
