package cluster

import (
	"parley"
	"parley/membership/expel"
)

// Shut tells what a node takes no more of another one: "nothing", "crash" for what knows of
// crashes alone, or "all".
func Shut(n *Node, id parley.ID) string {
	from, _ := n.members.Expelled(id)
	return map[uint64]string{0: "nothing", expel.Views: "crash", expel.All: "all"}[from]
}

// Break has a node find that it can not go on.
func Break(n *Node, err error) { n.broken(err) }
