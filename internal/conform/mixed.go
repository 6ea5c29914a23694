package conform

import (
	"encoding/json"
	"fmt"

	"parley/internal/conform/form"
)

// mixed is a list of two values: a text and an integer.
type mixed [2]json.RawMessage

// textFirst reads a text followed by a number. An error begins with what.
func (x mixed) textFirst(what string) (text string, number uint64) {
	check(what, form.Strict(x[0], &text))
	check(what, form.Strict(x[1], &number))
	return text, number
}

// numberFirst reads a number followed by a text.
func (x mixed) numberFirst(what string) (number uint64, text string) {
	text, number = mixed{x[1], x[0]}.textFirst(what)
	return number, text
}

// mixedList reads a list of texts and numbers into the form in which it is printed.
func mixedList(what string, list []mixed) (out [][2]any) {
	for i, x := range list {
		text, number := x.textFirst(fmt.Sprintf("%s: entry %d", what, i))
		out = append(out, [2]any{text, number})
	}
	if list != nil && out == nil {
		return [][2]any{}
	}
	return out
}
