package explore

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"parley/cli/console"
	"parley/explore"
)

// A terminal gets no output before there is progress to show.
func TestExploreProgressToTerminal(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	if err := unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(*testing.T) {
		show, clear := searchProgress(&console.App{Err: program}, 0)
		time.Sleep(time.Second)
		show(explore.Progress{States: 4, Took: time.Second})
		time.Sleep(time.Second)
		clear()
		clear()
	})
	if err := program.Close(); err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(terminal) // it ends with an error
	if !strings.HasPrefix(string(text), "\r\x1b[K4 states, ") || !strings.HasSuffix(string(text), " MiB\r\x1b[K") {
		t.Errorf("got %q, want lines about 4 states that are wiped at the end", text)
	}
}
