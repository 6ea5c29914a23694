package console

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"parley"
)

// Plain returns the text of an error on one line. An error about the value of a flag is reworded for the user.
func Plain(err error) string {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		err = &parley.FlagError{Flag: bad.GetFlag().Name, Err: ValueError(bad)}
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

// ValueError says which value a flag got and which it expects.
func ValueError(bad *pflag.InvalidValueError) error {
	want := bad.Unwrap().Error()
	switch bad.GetFlag().Value.Type() {
	case "bool":
		want = "allowed are true and false"
	case "int":
		want = "a whole number was expected"
	case "uint64", "uint32":
		want = "a whole number from 0 on was expected"
	case "duration":
		want = "a time with its unit was expected, as in 100ms or 1.5s"
	case "stringToString":
		want = "NAME=VALUE was expected"
	}
	return fmt.Errorf("%q: %s", bad.GetValue(), want)
}
