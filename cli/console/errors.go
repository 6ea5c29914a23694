package console

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"

	"parley"
	"parley/internal/draw/prose"
	"parley/internal/input"
)

// Plain returns the text of an error on one line. An error about the value of a flag is reworded for the user.
func Plain(err error) string {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		err = &parley.FlagError{Flag: bad.GetFlag().Name, Err: input.ValueError(bad)}
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

// FoldError folds an error for a terminal of the given width, with all lines but the first indented. A width of 0
// means no terminal: the error stays one line.
func FoldError(text string, width int) string {
	const indent = 2
	if width <= 0 || prose.Width(text) <= width {
		return text
	}
	return strings.ReplaceAll(prose.Fold(text, max(width-indent, 20)), "\n", "\n"+strings.Repeat(" ", indent))
}

// CallError is an error of a node.
type CallError interface {
	error
	// Call returns what is known about the call. Fields that are not known are empty.
	Call() (node, code, reason, outcome string)
}
