package cluster

import (
	"parley"
	"parley/membership/expel"
)

// Shut returns which frames a node drops of another one: "nothing", "crash" for services that tolerate only
// crashes, or "all".
func Shut(n *Node, id parley.ID) string {
	from, _ := n.members.Expelled(id)
	return map[uint64]string{0: "nothing", expel.Views: "crash", expel.All: "all"}[from]
}

// Break makes a node fail.
func Break(n *Node, err error) { n.broken(err) }
