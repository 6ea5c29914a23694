package browser_test

import (
	"bufio"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// laboratory is a "parley lab" that a test kills and starts again.
type laboratory struct {
	t       *testing.T
	listen  string
	cmd     *exec.Cmd
	address string
}

// start starts the program. A second start listens at the same address, with another token.
func (l *laboratory) start() {
	l.t.Helper()
	l.cmd = exec.Command(built.parley, "lab", "--no-open", "--listen", l.listen)
	l.cmd.Stderr = os.Stderr
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	address, found := strings.CutPrefix(strings.TrimSpace(line), "The lab is at ")
	at, bad := url.Parse(address)
	if err != nil || !found || bad != nil {
		l.t.Fatalf("parley lab printed %q, %v", line, err)
	}
	l.address, l.listen = address, at.Host
}

// kill ends the program at once, as a crash does.
func (l *laboratory) kill() {
	l.t.Helper()
	if err := l.cmd.Process.Kill(); err != nil {
		l.t.Error(err)
	}
	_ = l.cmd.Wait() // it was killed
}

func newLaboratory(t *testing.T) *laboratory {
	t.Helper()
	l := &laboratory{t: t, listen: net.JoinHostPort("127.0.0.1", "0")}
	l.start()
	t.Cleanup(l.kill)
	return l
}

// The program is killed in the middle of a search. The page says so and keeps its place. When the program runs again, and
// the reader has opened its new address in another tab, the search begins again by itself.
func TestServerIsKilled(t *testing.T) {
	t.Parallel()
	lab := newLaboratory(t)
	b := open(t, lab.address)
	b.says(shown)
	const search = "#/explore?s=bracha&n=5" // it takes hours
	b.follow(search)
	b.until(`document.querySelector(".model-words li")`)
	b.press("Search")
	b.until(`document.querySelector(".counts, #counts")`)
	b.says("Stop")
	lab.kill()
	b.says("The program that serves this page does not answer.")
	if hash := evaluate[string](b, "location.hash"); hash != search {
		t.Errorf("the page is at %s", hash)
	}
	lab.start()
	b.says("this tab has no valid token") // a new program has a new token
	// The reader opens the new address in the same browser.
	evaluate[bool](b, `(location.hash = `+literal(strings.TrimPrefix(lab.address, "http://"+lab.listen+"/")+search[1:])+`, true)`)
	b.until(`!document.querySelector(".notice.trouble")`)
	if hash := evaluate[string](b, "location.hash"); hash != search {
		t.Errorf("with the new token the page is at %s", hash)
	}
	b.press("Stop")
	b.says("Nothing is proven.")
	b.follow("#/run?g=article&at=100")
	b.at("event 100 of 270")
}

// The program is killed while a run is shown: the cursor still moves, and the place is the same when it runs again.
func TestRunSurvivesTheServer(t *testing.T) {
	t.Parallel()
	lab := newLaboratory(t)
	b := open(t, lab.address)
	b.says(shown)
	b.follow("#/run?g=article&at=100&sel=r1/P3/P5")
	b.at("event 100 of 270")
	b.until(`document.querySelector(".tables .picked")`)
	lab.kill()
	b.to(120)
	b.at("event 120 of 270")
	b.says("The program that serves this page does not answer.")
	lab.start()
	b.until(`location.hash.includes("at=120")`)
	fragment := evaluate[string](b, "location.hash")
	b.do(chromedp.Navigate(lab.address + fragment[1:]))
	b.at("event 120 of 270")
	b.until(`!document.querySelector(".notice.trouble") && document.querySelector(".state .processes:not(.late)")`)
}

// Two tabs ask the same program at the same time, and neither disturbs the other. A tab that is loaded again is where it
// was.
func TestTwoTabs(t *testing.T) {
	t.Parallel()
	address := served(t)
	first := open(t, address)
	first.says(shown)
	ctx, end := chromedp.NewContext(first.ctx)
	defer end()
	second := &tab{t: t, ctx: ctx}
	second.do(chromedp.Navigate(strings.Split(address, "#")[0] + "#/run?g=bank-causal&at=12"))
	first.follow("#/explore?s=eig&m=2&n=7&step=round")
	first.says("It may not end.")
	first.press("Search")
	second.at("event 12 of ")
	first.follow("#/run?g=article&at=100&sel=P5/1.2")
	first.at("event 100 of 270")
	first.do(reload)
	first.at("event 100 of 270")
	first.until(`document.querySelector(".tables .picked")`)
	second.do(reload)
	second.at("event 12 of ")
	first.clean()
}
