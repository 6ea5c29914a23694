package link

import "strings"

// OfArgs returns the link to the run that arguments of "parley run" make: a protocol, and flags --NAME=VALUE.
func OfArgs(args []string) Run {
	r := Run{Protocol: args[0], Flags: make(map[string]string)}
	for _, arg := range args[1:] {
		name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		r.Flags[name] = value
	}
	return r
}
