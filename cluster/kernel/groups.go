package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ViewStatus is the last view that was installed, of a machine that has views.
type ViewStatus struct {
	In      bool     `json:"in"` // this node is a member now
	View    uint64   `json:"view,omitempty"`
	Members []string `json:"members,omitempty"`
	// Suspected are members that this node suspects to have failed.
	Suspected []string `json:"suspected,omitempty"`
}

// Packs is how many packs of a node are under way at most before what is asked for gathers.
const Packs = 4

// Window is how many packs of each of n members an order with views has under way at most: what
// ends a view has them all in it, and must be a frame that links take, of 16 MiB.
func Window(n, payload int) int { return min(4*Packs, max(1, 8<<20/(n*payload))) }

// ErrNotConfigured is the error of every call to a group or table that the configuration does
// not have.
var ErrNotConfigured = errors.New("not configured")

// NotConfigured says what there is no such thing of, and what there is.
func NotConfigured[T any](what, name string, all map[string]T) error {
	const long = 64
	if len(name) > long {
		name = name[:long] + "..."
	}
	names := cmp.Or(strings.Join(slices.Sorted(maps.Keys(all)), ", "), "none")
	return fmt.Errorf("%w: %w: there is no %s %q: configured are %s", ErrRefused, ErrNotConfigured, what, name, names)
}
