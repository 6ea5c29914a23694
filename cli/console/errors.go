package console

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"parley"
	"parley/internal/draw/prose"
)

// Plain returns the text of an error on one line. An error about the value of a flag is reworded for the user.
func Plain(err error) string {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		err = &parley.FlagError{Flag: bad.GetFlag().Name, Err: ValueError(bad)}
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

// ValueError says which value a flag got and which it expects.
func ValueError(bad *pflag.InvalidValueError) error {
	want := bad.Unwrap().Error()
	switch bad.GetFlag().Value.Type() {
	case "bool":
		want = "allowed are true and false"
	case "int":
		want = "a whole number was expected"
		if tooLarge(bad) {
			want = fmt.Sprintf("allowed are whole numbers up to %d", math.MaxInt)
		}
	case "uint64", "uint32":
		want = "a whole number from 0 on was expected"
		if tooLarge(bad) {
			most := uint64(math.MaxUint64)
			if bad.GetFlag().Value.Type() == "uint32" {
				most = math.MaxUint32
			}
			want = fmt.Sprintf("allowed are whole numbers from 0 to %d", most)
		}
	case "duration":
		want = "a time with its unit was expected, as in 100ms or 1.5s"
		if tooLong(bad.GetValue()) {
			want = fmt.Sprintf("the largest that is allowed is %dh", math.MaxInt64/int64(time.Hour))
		}
	}
	value := fmt.Sprintf("%.200q", bad.GetValue())
	if strings.Contains(want, value) {
		return errors.New(want)
	}
	return fmt.Errorf("%s: %s", value, want)
}

// tooLarge reports whether a value is a number beyond the range of its type. Package flag says so only in words.
func tooLarge(bad *pflag.InvalidValueError) bool {
	return errors.Is(bad.Unwrap(), strconv.ErrRange) || strings.Contains(bad.Unwrap().Error(), "out of range")
}

// tooLong reports whether a text that is no duration would be one if its numbers were smaller.
func tooLong(text string) bool {
	_, err := time.ParseDuration(strings.Map(func(r rune) rune {
		if r >= '1' && r <= '9' {
			return '0'
		}
		return r
	}, text))
	return err == nil && strings.ContainsAny(text, "smh") // a 0 needs no unit
}

// FileError is an error in a line of a file.
type FileError struct {
	File string
	Line int
	Err  error
}

func (e *FileError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns the error without its place.
func (e *FileError) Unwrap() error { return e.Err }

// Place returns the file and the line.
func (e *FileError) Place() (file string, line int) { return e.File, e.Line }

// hinted is an error that ends with a hint.
type hinted struct {
	what, hint string
	flag       string // the flag that it is about, if it is about one
}

func (e *hinted) Error() string { return e.what + ": " + e.hint }

// Hint returns an error that says what is wrong, and then what to do.
func Hint(hint, format string, args ...any) error {
	return &hinted{what: fmt.Sprintf(format, args...), hint: hint}
}

// CallError is an error of a node.
type CallError interface {
	error
	// Call returns what is known of it: fields that are not known are empty.
	Call() (node, code, reason, outcome string)
}
