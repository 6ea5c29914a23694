package browser_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
)

// killable starts "parley lab" and returns its process and its address. The test must end it.
func killable(t *testing.T, flags ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(built.parley, append([]string{"lab", "--no-open", "--listen", "127.0.0.1:0"}, flags...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	address, found := strings.CutPrefix(strings.TrimSpace(line), "The lab is at ")
	if err != nil || !found {
		t.Fatalf("parley lab printed %q, %v", line, err)
	}
	return cmd, address
}

// children returns the processes that a process has started and that run.
func children(t *testing.T, parent int) (all []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if state, of := status(file); of == parent && state != "Z" {
			id, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			all = append(all, id)
		}
	}
	return all
}

// status returns the state of a process, and its parent; "" if there is none.
func status(file string) (state string, parent int) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	parent, _ = strconv.Atoi(fields[1])
	return fields[0], parent
}

// start starts a cluster of three nodes on the page, and waits until all are ready.
func start(b *tab) {
	b.t.Helper()
	evaluate[bool](b, `(location.hash = "#/live", true)`)
	b.says("Start a cluster on this computer")
	b.press("Start")
	b.until(states("ready", "ready", "ready"))
}

// pressNamed presses the button with a name that is not its text.
func (b *tab) pressNamed(name string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`(b => b && !b.disabled && (b.click(), true))(document.querySelector('button[aria-label="%s"]'))`, name))
}

// running brings the view Live into the state in which three nodes run.
func running(b *tab) {
	b.t.Helper()
	b.until(`document.querySelector("#start, #nodes")`)
	if evaluate[bool](b, `Boolean(document.querySelector("#start"))`) {
		b.press("Start")
	}
	b.until(`document.querySelectorAll(".live-state").length === 3 && document.querySelector(".live-picture svg .lane")`)
}

// stopped brings it into the state without a cluster.
func stopped(b *tab) {
	b.t.Helper()
	b.until(`document.querySelector("#start, #nodes")`)
	if evaluate[bool](b, `Boolean(document.querySelector("#nodes"))`) {
		b.press("Stop")
	}
	b.until(`document.querySelector("#start")`)
}

// paused brings it into the state in which the nodes broadcast, and one has been paused for some seconds.
func paused(b *tab) {
	b.t.Helper()
	running(b)
	if evaluate[bool](b, `!document.querySelector('button[aria-label="Resume node3"]')`) { // nor while the nodes start
		b.until(states("ready", "ready", "ready"))
		b.until(`(box => box.checked || (box.click(), true))(document.querySelector(".check input"))`)
		b.until(`document.querySelectorAll(".live-picture svg .deliver").length > Math.min(10, innerWidth / 120)`)
		b.pressNamed("Pause node3")
		b.press("Do it")
	}
	b.until(laneShows("paused"))
	b.until(`document.querySelector('.live-picture svg [data-value="paused"]').getBBox().width > Math.min(220, innerWidth / 8)`)
}

// states returns the condition that the nodes have these states.
func states(want ...string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".live-state")].map(e => e.innerText.trim().split(/\s+/).slice(1).join(" ")).join() === %q`,
		strings.Join(want, ","))
}

// laneShows returns the condition that the picture shows a value, such as paused.
func laneShows(value string) string {
	return fmt.Sprintf(`document.querySelector('.live-picture svg [data-value="%s"]')`, value)
}

// The page starts three real nodes. They can be paused, killed, started again, and cut off, and the picture shows it
// within seconds. When the lab is killed, no node survives.
func TestLive(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	lab, address := killable(t)
	killed := false
	defer func() {
		if !killed {
			_ = lab.Process.Kill()
			_ = lab.Wait()
		}
	}()
	b := open(t, address)
	b.says(shown)
	start(b)
	nodes := children(t, lab.Process.Pid)
	if len(nodes) != 3 {
		t.Fatalf("the lab has the processes %v, want 3", nodes)
	}
	b.press("Broadcast")
	b.says(`has delivered "hello"`)
	b.until(`document.querySelectorAll(".live-picture svg .deliver").length > 1`) // one is in the legend

	b.pressNamed("Pause node3")
	b.says("This really stops the process of node3.")
	began := time.Now()
	b.press("Do it")
	b.until(laneShows("paused"))
	if took := time.Since(began); took > 6*time.Second {
		t.Errorf("the lane was hatched after %v, want at most 6 s", took)
	}
	b.until(states("ready", "ready", "paused"))
	b.pressNamed("Resume node3")
	b.until(states("ready", "ready", "ready"))

	b.pressNamed("Kill node2") // without another question
	b.until(states("ready", "killed", "ready"))
	b.until(laneShows("down") + ` && document.querySelectorAll(".live-picture svg .ended").length > 1`)
	if left := children(t, lab.Process.Pid); len(left) != 2 {
		t.Errorf("after a kill the lab has the processes %v, want 2", left)
	}
	b.pressNamed("Start again node2")
	b.until(states("ready", "ready", "ready"))

	b.pressNamed("Cut the link between node1 and node2, which is up")
	b.until(`document.querySelector("button.link.cut")`)
	b.pressNamed("Mend the link between node1 and node2, which is cut")
	b.until(`document.querySelectorAll("button.link.up").length === 3`)
	b.clean()

	nodes = children(t, lab.Process.Pid)
	killed = true
	if err := lab.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = lab.Wait()
	for _, id := range nodes {
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			state, _ := status(fmt.Sprintf("/proc/%d/stat", id))
			if state == "" || state == "Z" || state == "X" {
				break
			}
			if time.Now().After(end) {
				t.Errorf("node %d survives the lab, in state %s", id, state)
				break
			}
		}
	}
	b.says("The program that serves this page does not answer")

	if n := folders(t); n != 1 {
		t.Errorf("the killed lab has left %d folders, want 1", n)
	}
	b = one(t)
	start(b)
	if n := folders(t); n != 1 {
		t.Errorf("with the next cluster there are %d folders, want its own", n)
	}
}

// folders returns the number of folders of clusters.
func folders(t *testing.T) int {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(os.TempDir(), "parley-lab-*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// Stop, and the end of the lab, end all nodes and remove their folder.
func TestLiveStops(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	lab, address := killable(t)
	b := open(t, address)
	b.says(shown)
	start(b)
	if folders(t) != 1 {
		t.Error("the cluster has no folder, or several")
	}
	b.press("Stop")
	b.says("Start a cluster on this computer")
	if left := children(t, lab.Process.Pid); len(left) != 0 || folders(t) != 0 {
		t.Errorf("after Stop there are the processes %v and %d folders", left, folders(t))
	}
	b.press("Start")
	b.until(states("ready", "ready", "ready"))
	nodes := children(t, lab.Process.Pid)
	if err := lab.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := lab.Wait(); err != nil {
		t.Errorf("the lab ended by %v", err)
	}
	for _, id := range nodes {
		if state, _ := status(fmt.Sprintf("/proc/%d/stat", id)); state != "" && state != "Z" {
			t.Errorf("node %d survives the lab", id)
		}
	}
	if folders(t) != 0 {
		t.Error("the folder remains")
	}
}

// Without the token, and from another origin, nothing acts on the cluster.
func TestLiveStrangers(t *testing.T) {
	t.Parallel()
	address, _, _ := strings.Cut(served(t), "#")
	const do = `fetch("ADDRESSlive/WHAT", {method: "POST", headers: {"Content-Type": "application/json"},
		body: '{"do":"start","n":3,"level":"total"}', credentials: "include"}).then(r => r.status, err => 0)`
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for _, what := range []string{"do", "watch"} {
		text := strings.NewReplacer("ADDRESS", address, "WHAT", what).Replace(do)
		if status := evaluate[int](open(t, address), text); status != 401 {
			t.Errorf("%s without the token: status %d", what, status)
		}
		if status := evaluate[int](open(t, other.URL), text); status != 0 {
			t.Errorf("%s from another origin: status %d", what, status)
		}
	}
}

// The static page has no view Live.
func TestLiveIsServed(t *testing.T) {
	t.Parallel()
	b := open(t, static(t, "/", nil))
	b.says(shown)
	if evaluate[bool](b, `[...document.querySelectorAll("nav a")].some(a => a.innerText === "Live")`) {
		t.Error("the static page leads to Live")
	}
	b.clean()
}

// With the keyboard alone a cluster is started, a node is killed and started again, and a link is cut and mended.
func TestLiveByKeyboard(t *testing.T) {
	b := one(t)
	b.screen(1440, 900, "light")
	b.tabTo("nav a", "Live")
	b.keys(kb.Enter)
	b.says("Start a cluster on this computer")
	b.tabTo("button.primary", "Start")
	b.keys(kb.Enter)
	b.until(states("ready", "ready", "ready"))
	b.tabTo(".live-buttons button", "Kill")
	b.keys(kb.Enter)
	b.says("This really ends the process of node1.")
	b.keys(kb.Escape) // nothing happens
	b.until(`!document.querySelector("dialog[open]") && document.activeElement.ariaLabel === "Kill node1"`)
	b.keys(kb.Enter)
	b.says("This really ends the process of node1.")
	b.keys(kb.Enter) // Do it
	b.until(states("killed", "ready", "ready"))
	b.backTo(".live-buttons button", "Start again")
	b.keys(kb.Enter)
	b.until(states("ready", "ready", "ready"))
	b.tabTo("button.link", "●")
	b.keys(kb.Enter)
	b.until(`document.activeElement.matches("button.link.cut")`)
	b.keys(kb.Enter)
	b.until(`document.activeElement.matches("button.link.up")`)
	b.clean()
}

// A cluster that somebody else has started is shown without buttons, and the lab refuses to act on it.
func TestLiveOther(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bank")
	cluster := exec.Command(built.parley, "cluster", "up", "-n", "3", "--dir", dir)
	out, err := cluster.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cluster.Process.Signal(os.Interrupt)
		_ = cluster.Wait()
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil { // when all have joined
		t.Fatalf("parley cluster up printed %q, %v", line, err)
	}
	lab, address := killable(t, "--dir", dir)
	defer func() {
		_ = lab.Process.Signal(os.Interrupt)
		if err := lab.Wait(); err != nil {
			t.Errorf("the lab ended by %v", err)
		}
	}()
	b := open(t, address)
	b.says(shown)
	b.follow("#/live")
	b.says("A cluster that was started elsewhere: 3 nodes.")
	b.until(states("ready", "ready", "ready"))
	b.until(`document.querySelectorAll(".live-picture svg .lane").length === 3`)
	if n := evaluate[int](b, `document.querySelectorAll("main button").length`); n != 1 { // which holds the picture
		t.Errorf("the view has %d buttons", n)
	}
	b.clean()
	got := evaluate[string](b, `fetch("live/do", {method: "POST", headers: {"Content-Type": "application/json"},
		body: '{"do":"kill","node":"node1"}'}).then(r => r.text())`)
	if !strings.Contains(got, "this cluster was started elsewhere, so the lab only shows it") {
		t.Errorf("a kill was answered by %s", got)
	}
}
