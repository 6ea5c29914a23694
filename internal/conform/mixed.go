package conform

import (
	"encoding/json"
	"fmt"

	"parley/internal/conform/form"
)

// mixed is a list of two, of which one is a text and the other a whole number.
type mixed [2]json.RawMessage

// textFirst reads it as a text and a number.
func (x mixed) textFirst() (text string, number uint64, err error) {
	return read2(x[0], x[1])
}

// numberFirst reads it as a number and a text.
func (x mixed) numberFirst() (number uint64, text string, err error) {
	text, number, err = read2(x[1], x[0])
	return number, text, err
}

func read2(first, second json.RawMessage) (text string, number uint64, err error) {
	if err = form.Strict(first, &text); err == nil {
		err = form.Strict(second, &number)
	}
	return text, number, err
}

// mixedList reads a list of texts and numbers into the form in which it is shown.
func mixedList(key string, list []mixed) ([][2]any, error) {
	out := [][2]any{}
	for i, x := range list {
		text, number, err := x.textFirst()
		if err != nil {
			return nil, fmt.Errorf("%s: entry %d: %w", key, i, err)
		}
		out = append(out, [2]any{text, number})
	}
	return out, nil
}
