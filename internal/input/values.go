package input

import (
	"regexp"
	"strings"

	"github.com/spf13/pflag"
)

// aSet is a closed set of values in a usage.
var aSet = regexp.MustCompile(`[a-z0-9-]+(\|[a-z0-9-]+)+`)

// Values returns the values that a flag takes, if these are a closed set.
func Values(f *pflag.Flag) []string {
	if set := aSet.FindString(f.Usage); set != "" {
		return strings.Split(set, "|")
	}
	if kind := f.Value.Type(); strings.Contains(kind, "|") {
		return strings.Split(kind, "|")
	}
	return nil
}
