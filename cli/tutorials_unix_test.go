//go:build unix

package cli_test

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/internal/golden"
)

var tutorials = flag.Bool("tutorials", false, "run the tutorials with a shell and real processes")

// TestTutorials runs the blocks "console" of pages under docs with bash. The pages of a tutorial share a shell and a
// folder, in the order of their names, after index.md; every other page has a shell of its own. Without -tutorials it
// demands only that the pages can be read.
//
// The command parley is this module's, and PARLEY the repository. A block whose first line names a file, such as
// "```go tally/tally.go", writes that file; "```diff tally/tally.go" changes it. A command must exit with 0, or as its
// comment says: "# exits with 1". A command that ends with & runs until the end; the page shows how its output begins.
// Ports of 127.0.0.1, and so on, in commands and files stand for free ones. "..." in a line stands for any text within the line, and
// as a line of its own for any number of lines.
func TestTutorials(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	all := pages(t, root, func(e example) bool { return e.real })
	sessions := make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		of := strings.TrimSuffix(name, ".md")
		if path.Dir(path.Dir(name)) == "docs/tutorials" {
			of = path.Dir(name)
		}
		sessions[of] = append(sessions[of], name)
	}
	if !*tutorials {
		return
	}
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "../cmd/parley").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, of := range slices.Sorted(maps.Keys(sessions)) {
		t.Run(strings.ReplaceAll(strings.TrimPrefix(of, "docs/"), "/", "-"), func(t *testing.T) {
			s := startShell(t, root, bin)
			slices.SortStableFunc(sessions[of], func(a, b string) int { // index.md first
				return boolInt(path.Base(b) == "index.md") - boolInt(path.Base(a) == "index.md")
			})
			for _, name := range sessions[of] {
				s.page(root, name, all[name])
			}
		})
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// shell is a bash that runs the commands of pages in an empty folder.
type shell struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.Writer
	out    *bufio.Reader
	dir    string
	jobs   int
	ports  map[string]string // of the page, and the real ones
	shown  map[string]string // the reverse
	folder string            // in which the last command ended
}

func startShell(t *testing.T, root, bin string) *shell {
	t.Helper()
	s := &shell{t: t, dir: t.TempDir(), ports: make(map[string]string), shown: make(map[string]string)}
	s.folder = s.dir
	s.cmd = exec.Command("bash", "--noprofile", "--norc")
	s.cmd.Dir = s.dir
	s.cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "PARLEY="+root,
		"GOWORK=off", "GOPROXY=off", "NO_COLOR=1", "PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stdout, s.cmd.Stderr = w, w
	s.out = bufio.NewReader(r)
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close() // so that reading ends with the shell
	t.Cleanup(func() {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // all that the page has started
		_ = s.cmd.Wait()
		_ = r.Close()
	})
	return s
}

// page runs the examples of a page, and with -update writes what they have printed, also if one fails.
func (s *shell) page(root, name string, p page) {
	s.t.Helper()
	defer func() {
		if golden.Updating() {
			if err := os.WriteFile(filepath.Join(root, name), []byte(p.write()), 0o644); err != nil {
				s.t.Error(err)
			}
		}
	}()
	for i := range p.examples {
		if e := &p.examples[i]; e.real {
			s.example(name, e)
		}
	}
}

// exits matches the comment of a command that does not exit with 0.
var exits = regexp.MustCompile(` +# exits with ([0-9]+)$`)

// example writes a file, or runs a command and compares its output with what the page shows.
func (s *shell) example(name string, e *example) {
	s.t.Helper()
	if e.file != "" {
		s.file(name, e)
		return
	}
	want := "0"
	if m := exits.FindStringSubmatch(e.command); m != nil {
		want = m[1]
	}
	command, background := strings.CutSuffix(e.command, " &")
	var got []string
	status := "0"
	if background {
		s.jobs++
		log := filepath.Join(s.dir, fmt.Sprintf(".job%d", s.jobs))
		if out, bad := s.run(fmt.Sprintf("%s >%s 2>&1 </dev/null &", s.real(command), log)); bad != "0" {
			s.t.Fatalf("%s: %s: status %s, %s", name, command, bad, out)
		}
		s.await(e, log, &got)
	} else {
		out, is := s.run("{ " + s.real(command) + "\n} </dev/null")
		got, status = s.lines(out), is
	}
	switch ok := same(e.prints, got, background); {
	case status != want:
		s.t.Fatalf("%s: %s\nexits with %s, prints\n%s", name, e.command, status, strings.Join(got, "\n"))
	case ok:
	case golden.Updating():
		e.prints = renewed(e.prints, got)
	default:
		s.t.Fatalf("%s: %s\nprints\n%s\nand not\n%s", name, e.command, strings.Join(got, "\n"), strings.Join(e.prints, "\n"))
	}
}

// await waits until a command in the background has printed what the page shows.
func (s *shell) await(e *example, log string, got *[]string) {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		b, err := os.ReadFile(log)
		if err != nil && !os.IsNotExist(err) {
			s.t.Fatal(err)
		}
		if *got = s.lines(string(b)); same(e.prints, *got, true) || time.Now().After(end) || golden.Updating() && len(*got) > len(e.prints) {
			return
		}
	}
}

// patience is how long a command may take: it ends a test that hangs, and builds on a busy computer take minutes.
const patience = 5 * time.Minute

// endMark separates the output of commands.
const endMark = "=== end of the command, in "

// run has the shell run a command, and returns its output and exit status.
func (s *shell) run(command string) (out, status string) {
	s.t.Helper()
	hung := time.AfterFunc(patience, func() { _ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) })
	defer hung.Stop()
	// Like a shell at its prompt, it forgets the jobs that have ended.
	fmt.Fprintf(s.in, "%s\nprintf '\\n%s%%s %%s\\n' \"$PWD\" $?\njobs >/dev/null\n", command, endMark)
	var b strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			s.t.Fatalf("%s: it has not ended within %v: %v after %s", command, patience, err, b.String())
		}
		if rest, ok := strings.CutPrefix(line, endMark); ok {
			at := strings.LastIndex(rest, " ")
			s.folder = rest[:at]
			return strings.TrimSuffix(b.String(), "\n"), strings.TrimSpace(rest[at:])
		}
		b.WriteString(line)
	}
}

// killed matches what bash says about a command in the background that was killed, at a time that is left to chance.
var killed = regexp.MustCompile(`(?m)^bash: line [0-9]+: +[0-9]+ (Killed|Terminated) .*(\n|$)`)

// lines returns the lines of output, with the ports of the page. JSON objects have no white space
// then, because nodes write some or none.
func (s *shell) lines(out string) []string {
	out = killed.ReplaceAllString(out, "")
	if out = strings.TrimSuffix(out, "\n"); out == "" {
		return nil
	}
	out = ports.ReplaceAllStringFunc(out, func(at string) string {
		if shown := s.shown[at]; shown != "" {
			return shown
		}
		return at
	})
	lines := strings.Split(out, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t\r")
		if strings.HasPrefix(lines[i], "{") {
			lines[i] = compact(lines[i])
		}
	}
	return lines
}

var ports = regexp.MustCompile(`127\.0\.0\.[0-9]+:[0-9]+`)

// real returns a text of a page with free ports in place of those of the page.
func (s *shell) real(text string) string {
	return ports.ReplaceAllStringFunc(text, func(at string) string {
		if s.ports[at] == "" {
			host, _, _ := strings.Cut(at, ":")
			l, err := net.Listen("tcp", host+":0")
			if err != nil {
				s.t.Fatal(err)
			}
			s.ports[at] = host + ":" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
			s.shown[s.ports[at]] = at
			_ = l.Close()
		}
		return s.ports[at]
	})
}

// file writes the file that a page contains, below the shell's folder, or changes it.
func (s *shell) file(name string, e *example) {
	s.t.Helper()
	file := filepath.Join(s.folder, e.file)
	text := s.real(strings.Join(e.prints, "\n") + "\n")
	if e.change {
		b, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		text = changed(s.t, name, string(b), text)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// changed returns a text with a change. Lines of the change begin with -, + or a space; an empty line separates places.
// The lines without + must be in the text once, together.
func changed(t *testing.T, name, text, change string) string {
	t.Helper()
	for place := range strings.SplitSeq(strings.Trim(change, "\n"), "\n\n") {
		var old, now strings.Builder
		for line := range strings.Lines(place + "\n") {
			if line[0] != '+' {
				old.WriteString(line[1:])
			}
			if line[0] != '-' {
				now.WriteString(line[1:])
			}
		}
		if n := strings.Count("\n"+text, "\n"+old.String()); n != 1 {
			t.Fatalf("%s: the file has %d times\n%s", name, n, old.String())
		}
		text = strings.Replace("\n"+text, "\n"+old.String(), "\n"+now.String(), 1)[1:]
	}
	return text
}

// Changes of files apply once.
func TestTutorialChanges(t *testing.T) {
	if got := changed(t, "", "a\nb\nc\nd\n", " a\n-b\n+B\n\n d\n+e\n"); got != "a\nB\nc\nd\ne\n" {
		t.Errorf("changed to %q", got)
	}
}
