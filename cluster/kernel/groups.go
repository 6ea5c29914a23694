package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ViewStatus is the last installed view of a machine that has views.
type ViewStatus struct {
	In      bool     `json:"in"` // this node is a member now
	View    uint64   `json:"view,omitempty"`
	Members []string `json:"members,omitempty"`
	// Suspected are the members that this node suspects.
	Suspected []string `json:"suspected,omitempty"`
}

// Packs is how many batches of a node may be in flight before further payloads gather in one.
const Packs = 4

// Window returns how many batches of each of n members may be in flight in an order with views. The message that
// ends a view holds all of them, and must fit into a frame of the links (16 MiB).
func Window(n, payload int) int { return min(4*Packs, max(1, 8<<20/(n*payload))) }

// ErrNotConfigured is the error of every call to a group or table that is not configured.
var ErrNotConfigured = errors.New("not configured")

// NotConfigured returns an error that names what is missing, and what is configured.
func NotConfigured[T any](what, name string, all map[string]T) error {
	const long = 64
	if len(name) > long {
		name = name[:long] + "..."
	}
	names := cmp.Or(strings.Join(slices.Sorted(maps.Keys(all)), ", "), "none")
	return fmt.Errorf("%w: %w: there is no %s %q: configured are %s", ErrRefused, ErrNotConfigured, what, name, names)
}
