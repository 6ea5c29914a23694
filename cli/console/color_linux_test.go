package console

import (
	"os"
	"testing"

	"github.com/spf13/pflag"
)

// Reports are in color on a terminal, unless NO_COLOR or a dumb terminal speaks against it, and as --color says.
func TestColors(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = terminal.Close() }()
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for _, c := range []struct {
		to                  *os.File
		flag, noColor, term string
		want                bool
	}{
		{terminal, "auto", "", "xterm", true}, {terminal, "auto", "1", "xterm", false}, {terminal, "auto", "", "dumb", false},
		{terminal, "never", "", "xterm", false}, {terminal, "always", "1", "dumb", true},
		{file, "auto", "", "xterm", false}, {file, "always", "", "xterm", true},
	} {
		t.Setenv("NO_COLOR", c.noColor)
		t.Setenv("TERM", c.term)
		a := &App{Out: &Output{To: c.to}}
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		a.DeclareColor(fs)
		if err := fs.Parse([]string{"--color", c.flag}); err != nil {
			t.Fatal(err)
		}
		if got := a.Colors(); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}
