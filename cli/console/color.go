package console

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// colors are the values of --color. The first is the default.
const (
	autoColor   = "auto"
	alwaysColor = "always"
	neverColor  = "never"
)

// colorFlag is the value of --color.
type colorFlag string

// Set and String and Type make it a flag.
func (c *colorFlag) Set(text string) error {
	if text != autoColor && text != alwaysColor && text != neverColor {
		return fmt.Errorf("allowed are %s, %s and %s", autoColor, alwaysColor, neverColor)
	}
	*c = colorFlag(text)
	return nil
}

func (c *colorFlag) String() string { return string(*c) }

// Type is what the help calls the value.
func (c *colorFlag) Type() string { return "string" }

// DeclareColor declares --color.
func (a *App) DeclareColor(fs *pflag.FlagSet) {
	a.color = autoColor
	fs.Var(&a.color, "color", "color reports: `auto|always|never`; auto colors them on a terminal, unless NO_COLOR is set")
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
