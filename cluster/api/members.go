package api

import (
	"slices"
	"strings"

	"connectrpc.com/connect"

	"parley"
	"parley/cluster"
	"parley/internal/lists"
)

// members are the nodes of the cluster, by process ID.
type members []cluster.Member

// name returns the name of a node, empty if there is none.
func (m members) name(id parley.ID) string {
	if int(id) >= len(m) {
		return ""
	}
	return m[id].Name
}

// check returns an error if no member has the name.
func (m members) check(name string) error {
	names := lists.Of(m, func(one cluster.Member) string { return one.Name })
	if slices.Contains(names, name) {
		return nil
	}
	return refuse(connect.CodeNotFound, "no member", "there is no member %q: they are %s", name, strings.Join(names, ", "))
}
