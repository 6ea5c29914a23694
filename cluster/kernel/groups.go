package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/cluster/protocols"
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
const Packs = protocols.Packs

// Window is [protocols.Window].
func Window(n, payload int) int { return protocols.Window(n, payload) }

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
