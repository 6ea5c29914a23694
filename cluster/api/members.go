package api

import (
	"strings"

	"connectrpc.com/connect"

	"parley"
	"parley/cluster"
)

// members are the nodes of the cluster, by process.
type members []cluster.Member

// name is the name of a node, nothing if there is none.
func (m members) name(id parley.ID) string {
	if int(id) >= len(m) {
		return ""
	}
	return m[id].Name
}

func (m members) names(ids []parley.ID) []string {
	var out []string
	for _, id := range ids {
		out = append(out, m.name(id))
	}
	return out
}

// check tells that there is none of a name.
func (m members) check(name string) error {
	var names []string
	for _, one := range m {
		if one.Name == name {
			return nil
		}
		names = append(names, one.Name)
	}
	return refuse(connect.CodeNotFound, "no member", "there is no member %q: they are %s", name, strings.Join(names, ", "))
}
