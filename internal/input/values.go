package input

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Values returns the values that a flag takes, if these are a closed set.
func Values(f *pflag.Flag) []string {
	for _, word := range strings.FieldsFunc(f.Usage, func(r rune) bool {
		return r != '|' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	}) {
		if set := strings.Split(word, "|"); len(set) > 1 && !slices.Contains(set, "") {
			return set
		}
	}
	if kind := f.Value.Type(); strings.Contains(kind, "|") {
		return strings.Split(kind, "|")
	}
	return nil
}
