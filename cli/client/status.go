package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"parley/cli/console"
	"parley/cluster"
	"parley/cluster/api/parleyv1"
)

// Status is "parley status".
func Status(a *console.App) *cobra.Command {
	var f Flags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the health of each node",
		Long: "Status asks every node how it is: who it takes for a member, what its groups and tables have\n" +
			"delivered, how far messages are to the others, its clock, and what it has refused. The exit status is\n" +
			"1 if a node does not answer or is not ready, and 3 if none answers.",
		Example: "  parley status --dir bank\n  parley status --at node2 --json --dir bank",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			nodes, answers, errs, err := AskAll(cmd.Context(), &f, everyNode, statusOf)
			if err != nil {
				return err
			}
			for i, r := range answers {
				if r != nil && f.AsJSON {
					err = errors.Join(err, printAnswer(a, nodes[i].Name, r))
				}
			}
			if !f.AsJSON {
				err = printStatus(a, slices.DeleteFunc(answers, func(r *parleyv1.StatusResponse) bool { return r == nil }))
			}
			if err != nil {
				return err
			}
			return Report(a, Joined(errs))
		},
	}
	f.Declare(cmd)
	console.Prints(cmd.Flags(), "status", &parleyv1.StatusResponse{})
	return cmd
}

// printStatus prints the status of nodes.
func printStatus(a *console.App, nodes []*parleyv1.StatusResponse) error {
	if len(nodes) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	kept := "; not durable: what is delivered is lost if no majority lives"
	if nodes[0].GetDurable() {
		kept = "; durable"
	}
	fmt.Fprintf(w, "cluster %s, m = %d%s\n\n", nodes[0].GetCluster(), nodes[0].GetM(), kept)
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
	printDisks(w, nodes)
	printRefused(w, nodes)
	return w.Flush()
}

// printView prints a node's view of a group or table.
func printView(w io.Writer, n *parleyv1.StatusResponse, name, level string, v *parleyv1.ViewStatus, at string) {
	view, members := "", ""
	if v != nil {
		view, members = strconv.FormatUint(v.GetView(), 10), strings.Join(v.GetMembers(), " ")
		if !v.GetIn() {
			members = "this node is out"
		}
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", n.GetNode(), name, level, view, members, at)
}

// printDisks prints which nodes have disks that are slow or nearly full.
func printDisks(w io.Writer, nodes []*parleyv1.StatusResponse) {
	head := "\nnode\tdisk\n"
	line := func(n *parleyv1.StatusResponse, what string) {
		fmt.Fprintf(w, "%s%s\t%s\n", head, n.GetNode(), what)
		head = ""
	}
	for _, n := range nodes {
		s := n.GetStore()
		if what := s.GetLow(); what != "" {
			line(n, "warning: "+what)
		}
		if what := s.GetFull(); what != "" {
			line(n, "requests that write are refused: "+what)
		}
		if slow := s.GetSlowest(); slow.AsDuration() > time.Second {
			line(n, "the slowest commit took "+short(slow))
		}
	}
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
	return cmp.Or(strings.Join(names, " "), "nobody")
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

// Clock is "parley clock".
func Clock(a *console.App) *cobra.Command {
	var f Flags
	cmd := &cobra.Command{
		Use:   "clock",
		Short: "Show the time that the nodes keep in common",
		Long: "Clock asks every node for the time that the nodes keep in common by interactive convergence, although\n" +
			"some of them lie, with how far any other correct node's may be from it. The exit status is 1 if a node\n" +
			"does not answer or is not in step.",
		Example: "  parley clock --dir bank\n  parley clock --json --dir bank",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			nodes, answers, errs, err := AskAll(cmd.Context(), &f, everyNode, timeOf)
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
			if !f.AsJSON {
				fmt.Fprintln(w, "node\ttime\twithin\tahead of its machine")
			}
			for i, r := range answers {
				switch {
				case r == nil:
				case f.AsJSON:
					err = errors.Join(err, printAnswer(a, nodes[i].Name, r))
				default:
					within := "not in step"
					if r.GetSynchronized() {
						within = short(r.GetBound())
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", nodes[i].Name, r.GetTime().AsTime().Format("2006-01-02 15:04:05.000000"),
						within, short(r.GetOffset()))
				}
			}
			if err := errors.Join(err, w.Flush()); err != nil {
				return err
			}
			return Report(a, Joined(errs))
		},
	}
	f.Declare(cmd)
	console.Prints(cmd.Flags(), "clock", &parleyv1.NowResponse{})
	return cmd
}

// Commit is "parley commit".
func Commit(a *console.App) *cobra.Command {
	var f Flags
	cmd := &cobra.Command{
		Use:   "commit TRANSACTION NODE=WHAT...",
		Short: "Commit a transaction on several nodes, or abort it on all",
		Long: "Commit has the participants at the nodes named prepare what each is to do, and then all carry it out,\n" +
			"or none. A transaction's name is used once; who asks again under it, at a node that took part, is told\n" +
			"what was decided. A node whose configuration names no participant says no. The exit status is 1 if the\n" +
			"transaction was aborted.",
		Example: "  parley commit transfer-1 'node1=withdraw 100' 'node2=deposit 100' --dir bank",
		Args:    console.Args(2, 0, "TRANSACTION and NODE=WHAT was expected"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if n := len(args[0]); n == 0 || n > cluster.MaxTx {
				return fmt.Errorf("parley commit: TRANSACTION has %d bytes: allowed are 1 to %d", n, cluster.MaxTx)
			}
			bodies := make(map[string][]byte)
			for _, arg := range args[1:] {
				name, what, ok := strings.Cut(arg, "=")
				if _, twice := bodies[name]; !ok || name == "" || twice {
					return fmt.Errorf("%q: NODE=WHAT was expected, each node once", arg)
				}
				bodies[name] = []byte(what)
			}
			aborted := false
			err := f.First(cmd.Context(), false, func(ctx context.Context, n Node) error {
				r, err := n.Commit.Commit(ctx, &parleyv1.CommitRequest{Transaction: args[0], Bodies: bodies})
				if err != nil {
					return err
				}
				aborted = !r.GetCommitted()
				if f.AsJSON {
					return printAnswer(a, n.Name, r)
				}
				word := "committed"
				if aborted {
					word = "aborted"
				}
				if aborted && r.GetWhy() != "" {
					word += ": " + printed([]byte(r.GetWhy()))
				}
				_, err = fmt.Fprintf(a.Out, "%s: %s\n", args[0], word)
				return err
			})
			if err == nil && aborted {
				return console.ExitError(console.Violated)
			}
			return Report(a, err)
		},
	}
	f.Declare(cmd)
	console.Prints(cmd.Flags(), "commit", &parleyv1.CommitResponse{})
	return cmd
}

// statusOf returns a node's status. A node that is not ready has both a status and an error.
func statusOf(ctx context.Context, n Node) (*parleyv1.StatusResponse, error) {
	r, err := n.Admin.Status(ctx, &parleyv1.StatusRequest{})
	if err == nil && !r.GetReady() {
		err = errors.New("not ready: " + strings.Join(r.GetProblems(), ", and "))
	}
	return r, err
}

// timeOf returns a node's reading of the common time. A node whose clock is not synchronized has both a reading and
// an error.
func timeOf(ctx context.Context, n Node) (*parleyv1.NowResponse, error) {
	r, err := n.Clock.Now(ctx, &parleyv1.NowRequest{})
	if err == nil && !r.GetSynchronized() {
		err = errors.New("the clock is not in step with the others'")
	}
	return r, err
}
