package console

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"parley"
	"parley/internal/input"
	"parley/internal/lists"
)

// App is the state that all commands share.
type App struct {
	Protocols []parley.Protocol
	Out, Err  io.Writer
	JSON      bool   // errors are printed as JSON
	Version   string // of the program

	variables map[string]string // the environment variables that have set flags, by flag

	color colorFlag
}

// Width returns the width for folding text, in columns: given if it is positive, but at least 20; otherwise the
// terminal's; otherwise 100.
func (a *App) Width(given int) int {
	if given > 0 {
		return max(given, 20)
	}
	if f := a.terminal(); f != nil {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return max(w, 20)
		}
	}
	return 100
}

// ErrorWidth returns the width of the terminal in columns if the standard error is one, and 0
// otherwise.
func (a *App) ErrorWidth() int {
	f, ok := a.Err.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// DeclareColor adds --color to fs, with "auto" as its default.
func (a *App) DeclareColor(fs *pflag.FlagSet) {
	a.color = autoColor
	fs.Var(&a.color, "color", "`when` to color reports: auto|always|never; auto colors on a terminal, "+
		"unless NO_COLOR is set")
}

// Colors reports whether reports are in color.
func (a *App) Colors() bool {
	if a.color != autoColor {
		return a.color == alwaysColor
	}
	f := a.terminal()
	return f != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// terminal returns the standard output if it is a terminal.
func (a *App) terminal() *os.File {
	out, ok := a.Out.(*Output)
	if !ok {
		return nil
	}
	if f, ok := out.To.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// Busy writes every two seconds that the command is still running, if the standard error is a terminal. It stops when
// the returned function is called.
func (a *App) Busy() (stop func()) {
	seconds := 0
	return a.Progress(2*time.Second, func() string {
		seconds += 2
		return fmt.Sprintf("running, %d s", seconds)
	})
}

// Progress shows a line on the standard error, if that is a terminal, and checks at the given interval whether to
// rewrite it. The returned function stops this and wipes the line.
func (a *App) Progress(every time.Duration, line func() string) (stop func()) {
	f, ok := a.Err.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	var work sync.WaitGroup
	done := make(chan struct{})
	work.Go(func() {
		for shown, more := "", true; more; {
			text := ""
			select {
			case <-done:
				more = false
			case <-time.After(every):
				text = line()
			}
			if text != shown {
				shown = text
				fmt.Fprint(f, "\r\x1b[K"+text)
			}
		}
	})
	return sync.OnceFunc(func() {
		close(done)
		work.Wait()
	})
}

// Names returns the names of all protocols.
func (a *App) Names() []string {
	return lists.Of(a.Protocols, func(p parley.Protocol) string { return p.Name })
}

// Find returns the protocol with the given name.
func (a *App) Find(name string) (parley.Protocol, error) { return input.Protocol(a.Protocols, name) }

// SetFromEnvironment sets the flags of a command that were not given and have a variable.
func (a *App) SetFromEnvironment(command string, fs *pflag.FlagSet) error {
	a.variables = make(map[string]string)
	var wrong error
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Changed || wrong != nil {
			return
		}
		for _, name := range Variables(command, f) {
			text := os.Getenv(name)
			if text == "" {
				continue
			}
			a.variables[f.Name] = name
			wrong = fs.Set(f.Name, text)
			return
		}
	})
	return wrong
}
