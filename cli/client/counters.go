package client

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"parley/cli/console"
	"parley/cluster/api/parleyv1"
)

// printCounters prints what the nodes count: their links, groups, tables, and refused messages.
func printCounters(a *console.App, nodes []*parleyv1.StatusResponse) error {
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "node\tstate\tup\tconnected to\tslowest round trip\tclock within\tagreements\tabstained")
	for _, n := range nodes {
		clock := "not in step"
		if n.GetClock().GetSynchronized() {
			clock = short(n.GetClock().GetBound())
		}
		var agreements, abstained uint64
		for _, s := range n.GetStreams() {
			agreements, abstained = agreements+s.GetSlots().GetDone(), abstained+s.GetSlots().GetAbstained()
		}
		fmt.Fprintf(w, "%s\t%s\t%v\t%s\t%s\t%s\t%d\t%d\n", n.GetNode(), word(n.GetState().String(), "NODE_STATE_"),
			time.Since(n.GetStarted().AsTime()).Round(time.Second), connected(n.GetMembers()), slowest(n.GetMembers()), clock,
			agreements, abstained)
	}
	fmt.Fprintln(w, "\nnode\tgroup or table\tlevel\tview\tmembers\tat")
	for _, n := range nodes {
		for _, g := range n.GetGroups() {
			at := "nothing yet"
			if g.GetPosition() > 0 {
				at = fmt.Sprintf("position %d", g.GetPosition())
			}
			if s := g.GetSlots(); s != nil {
				at += fmt.Sprintf(", slot %d", s.GetDone())
			}
			printView(w, n, g.GetName(), word(g.GetLevel().String(), "LEVEL_"), g.GetView(), at)
		}
		for _, t := range n.GetTables() {
			printView(w, n, t.GetName(), "table", t.GetView(), fmt.Sprintf("command %d", t.GetPosition()))
		}
	}
	printRefused(w, nodes)
	return w.Flush()
}

// printView prints a node's view of a group or table.
func printView(w io.Writer, n *parleyv1.StatusResponse, name, level string, v *parleyv1.ViewStatus, at string) {
	view, members := "", ""
	if v != nil {
		view, members = strconv.FormatUint(v.GetView(), 10), strings.Join(v.GetMembers(), " ")
		if !v.GetIn() {
			members = "not a member"
		}
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", n.GetNode(), name, level, view, members, at)
}

// printRefused prints, by reason, how much the nodes have refused.
func printRefused(w io.Writer, nodes []*parleyv1.StatusResponse) {
	head := "\nnode\trefused of\tby\twhy\ttimes\n"
	line := func(node, of, by, why string, times uint64) {
		fmt.Fprintf(w, "%s%s\t%s\t%s\t%s\t%d\n", head, node, of, by, why, times)
		head = ""
	}
	for _, n := range nodes {
		for _, r := range n.GetRefused() {
			line(n.GetNode(), r.GetFrom(), r.GetMachine(), r.GetWhy(), r.GetTimes())
		}
		for _, m := range n.GetMembers() {
			for _, why := range slices.Sorted(maps.Keys(m.GetDropped())) {
				line(n.GetNode(), m.GetName(), "the connection", why, m.GetDropped()[why])
			}
		}
		for _, why := range slices.Sorted(maps.Keys(n.GetStrangers())) {
			line(n.GetNode(), "strangers", "the connection", why, n.GetStrangers()[why])
		}
	}
}

// word returns a value of an enumeration in lower-case words.
func word(value, prefix string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(value, prefix)), "_", " ")
}

// connected returns the peers that a node is connected to.
func connected(members []*parleyv1.MemberStatus) string {
	var names []string
	for _, m := range members {
		if m.GetConnected() && !m.GetSelf() {
			names = append(names, m.GetName())
		}
	}
	return cmp.Or(strings.Join(names, " "), "none")
}

// slowest returns the connected peer with the longest median round trip.
func slowest(members []*parleyv1.MemberStatus) string {
	text, most := "", time.Duration(0)
	for _, m := range members {
		if rtt := m.GetRoundTrip().GetMedian(); m.GetConnected() && rtt.AsDuration() > most {
			text, most = short(rtt)+" to "+m.GetName(), rtt.AsDuration()
		}
	}
	return text
}

// short returns a duration as short text.
func short(d *durationpb.Duration) string {
	t := d.AsDuration()
	switch {
	case t < time.Millisecond:
		return t.Round(time.Microsecond).String()
	case t < time.Second:
		return t.Round(10 * time.Microsecond).String()
	}
	return t.Round(time.Millisecond).String()
}
