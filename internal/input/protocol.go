package input

import (
	"slices"

	"parley"
	"parley/internal/lists"
	"parley/internal/nearest"
)

// Protocol returns the protocol with the given name.
func Protocol(protocols []parley.Protocol, name string) (parley.Protocol, error) {
	all := lists.Of(protocols, func(p parley.Protocol) string { return p.Name })
	if i := slices.Index(all, name); i >= 0 {
		return protocols[i], nil
	}
	hint := `"parley list" names all`
	if list := nearest.Similar(name, all); len(list) > 0 {
		hint = nearest.Meant(list) + " " + hint
	}
	return parley.Protocol{}, Hint(hint, "unknown protocol %.200q", name)
}
