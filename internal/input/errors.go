// Package input puts errors about input into words: where the wrong value is, what is allowed, and what to do. It
// also writes command lines with the quotation marks that a shell needs.
package input

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

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

// HintError is an error that ends with a hint.
type HintError struct {
	What, Hint string
	Flag       string // the flag that it is about, if it is about one
}

func (e *HintError) Error() string { return e.What + ": " + e.Hint }

// Hint returns an error that says what is wrong, and then what to do.
func Hint(hint, format string, args ...any) error {
	return &HintError{What: fmt.Sprintf(format, args...), Hint: hint}
}
