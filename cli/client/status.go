package client

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cli/console"
	"parley/cluster/api/parleyv1"
	"parley/internal/draw/prose"
)

// Status is "parley status".
func Status(a *console.App) *cobra.Command {
	var f Flags
	var verbose bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the health of each node, and what to do about it",
		Long: "Status asks the nodes of a cluster for their health. It prints a line for each node. Below " +
			"the line of a node that is not healthy, it prints what is wrong and what to do. With --verbose " +
			"it also prints the counters: connections, round-trip times, clocks, positions of groups and " +
			"tables, and refused messages. It changes nothing.\n\n" +
			"A node is healthy if it is ready for clients and is connected to a majority of the members " +
			"of each of its groups and tables. Groups, tables and agreements that nobody has used count " +
			"as healthy. Notes, " +
			"such as a clock that is not in step yet, do not make a node unhealthy.\n\n" +
			"Status also lists nodes that an operator has expelled. An expelled node does not affect the " +
			"exit status if at least m+1 other nodes report that it is expelled. If fewer than m+1 other " +
			"nodes answer, all of the answering nodes must report it.\n\n" +
			"The exit status is 0 if all nodes that were asked are healthy, 1 if a node is not healthy or " +
			"does not answer, 2 if the client lacks the right to read, and 3 if no node answers. Nodes that " +
			"have left the cluster do not answer: name only the other nodes with --at.",
		Example: "  parley status --dir bank\n  parley status --verbose --dir bank\n" +
			"  parley status --at node2 --json --dir bank",
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := console.UntilSignal(cmd.Context())
			defer stop()
			nodes, answers, errs, err := AskAll(ctx, &f, everyNode, statusOf)
			switch {
			case err != nil:
				return err
			case ctx.Err() != nil:
				return console.ExitError(console.Interrupted)
			}
			report := judge(nodes, answers, errs)
			switch {
			case report.answered() == 0:
				return Report(a, Joined(errs))
			case f.AsJSON:
				return report.printJSON(a)
			}
			if err := report.print(a, f.Dir != ""); err != nil {
				return err
			}
			if verbose {
				fmt.Fprintln(a.Out)
				if err := printCounters(a, report.responses()); err != nil {
					return err
				}
			}
			return console.End(report.status(), nil)
		},
	}
	f.Declare(cmd)
	console.Prints(cmd.Flags(), "status", &parleyv1.StatusResponse{})
	cmd.Flags().BoolVar(&verbose, "verbose", false, "also print the counters of the nodes")
	return cmd
}

// statusOf returns a node's status.
func statusOf(ctx context.Context, n Node) (*parleyv1.StatusResponse, error) {
	return n.Admin.Status(ctx, &parleyv1.StatusRequest{})
}

// Health is the health of one node.
type Health struct {
	Name     string
	Response *parleyv1.StatusResponse // nil if it did not answer
	Err      error                    // why it did not answer
	Expelled bool                     // an operator has expelled it
	Problems []string                 // why it is not healthy, each with what to do
	Notes    []string                 // what else an operator should know
}

// Healthy reports whether the node does not make the cluster unhealthy.
func (h *Health) Healthy() bool { return h.Expelled || h.Err == nil && len(h.Problems) == 0 }

// State returns the health in a few words.
func (h *Health) State() string {
	switch {
	case h.Expelled:
		return "expelled by an operator: start it again to let it rejoin"
	case h.Err != nil:
		return "no answer: " + strings.TrimPrefix(h.Err.Error(), h.Name+": ")
	case !h.Response.GetReady():
		return "not ready"
	case len(h.Problems) > 0:
		return "ready, but cut off"
	}
	return "ready"
}

// healthReport is the health of all nodes that were asked.
type healthReport []*Health

// Judge derives the health of nodes from their answers, or from the errors that take their place.
func Judge(nodes []Node, answers []*parleyv1.StatusResponse, errs []error) []*Health {
	return judge(nodes, answers, errs)
}

// judge derives the health of nodes from their answers.
func judge(nodes []Node, answers []*parleyv1.StatusResponse, errs []error) (all healthReport) {
	for i, n := range nodes {
		h := &Health{Name: n.Name, Response: answers[i], Err: errs[i]}
		if r := answers[i]; h.Err == nil {
			h.Name, h.Problems, h.Notes = r.GetNode(), append(r.GetProblems(), cutOff(r)...), notes(r)
		}
		all = append(all, h)
	}
	for _, h := range all {
		h.Expelled = all.expelled(h.Name)
	}
	return all
}

// expelled reports whether an operator has expelled a node: at least m+1 other nodes say so, or all that answered if
// these are fewer.
func (all healthReport) expelled(name string) bool {
	others, say, needed := 0, 0, 1
	for _, h := range all {
		if h.Name == name || h.Err != nil {
			continue
		}
		others++
		needed = max(needed, int(h.Response.GetM())+1)
		for _, m := range h.Response.GetMembers() {
			if m.GetName() == name && m.GetExpelled() {
				say++
			}
		}
	}
	return say > 0 && say >= min(needed, others)
}

// cutOff returns in which groups and tables a node is connected to no majority of its view.
func cutOff(r *parleyv1.StatusResponse) (problems []string) {
	connected := make(map[string]bool)
	for _, m := range r.GetMembers() {
		connected[m.GetName()] = m.GetSelf() || m.GetConnected()
	}
	check := func(what string, v *parleyv1.ViewStatus) {
		reached := 0
		for _, name := range v.GetMembers() {
			if connected[name] {
				reached++
			}
		}
		if n := len(v.GetMembers()); v.GetIn() && n > 0 && 2*reached <= n { // a group without views lists no members
			problems = append(problems, fmt.Sprintf("%s stalls: of its %d members only %d can be reached, which is no "+
				"majority: start the others, or repair the network", what, n, reached))
		}
	}
	for _, g := range r.GetGroups() {
		check("group "+g.GetName(), g.GetView())
	}
	for _, t := range r.GetTables() {
		check("table "+t.GetName(), t.GetView())
	}
	return problems
}

// slowCommit is how long a write to a disk may take before an operator should know.
const slowCommit = time.Second

// notes returns what an operator should know of a node although it is healthy.
func notes(r *parleyv1.StatusResponse) (list []string) {
	if !r.GetClock().GetSynchronized() {
		list = append(list, "its clock is not in step with the others: after a start this takes a few seconds")
	}
	reached, needed := 0, len(r.GetMembers())-int(r.GetM())
	for _, m := range r.GetMembers() {
		if m.GetSelf() || m.GetConnected() {
			reached++
		}
	}
	if reached < needed {
		list = append(list, fmt.Sprintf("it refuses agreements: %d of %d nodes are connected, and with m = %d %d are needed",
			reached, len(r.GetMembers()), r.GetM(), needed))
	}
	for _, t := range r.GetTables() {
		if len(t.GetDiverged()) > 0 {
			list = append(list, fmt.Sprintf("table %s: the replica at %s differs from the majority: see the log there",
				t.GetName(), strings.Join(t.GetDiverged(), ", ")))
		}
	}
	if n := len(r.GetCommit().GetBlocked()); n > 0 {
		list = append(list, prose.Count(uint64(n), "transaction is", "transactions are")+
			" blocked until other nodes recover: start the nodes that are down")
	}
	s := r.GetStore()
	if s.GetLow() != "" {
		list = append(list, "its disk is nearly full: "+s.GetLow())
	}
	if slow := s.GetSlowest(); slow.AsDuration() > slowCommit {
		list = append(list, "its disk is slow: a write took "+short(slow))
	}
	return list
}

// answered returns how many nodes have answered.
func (all healthReport) answered() int { return len(all.responses()) }

// responses returns the answers.
func (all healthReport) responses() (list []*parleyv1.StatusResponse) {
	for _, h := range all {
		if h.Err == nil {
			list = append(list, h.Response)
		}
	}
	return list
}

// status returns the exit status.
func (all healthReport) status() int {
	for _, h := range all {
		if !h.Healthy() {
			return console.Violated
		}
	}
	return console.Fine
}

// printJSON prints the answers as JSON, and why nodes are not healthy on the standard error.
func (all healthReport) printJSON(a *console.App) error {
	var errs []error
	for _, h := range all {
		if h.Err == nil {
			if err := printAnswer(a, h.Name, h.Response); err != nil {
				return err
			}
		}
		switch {
		case h.Healthy():
			errs = append(errs, nil)
		case h.Err != nil:
			errs = append(errs, h.Err)
		default:
			text := h.Name + ": " + h.State() + ": " + strings.Join(h.Problems, "; ")
			errs = append(errs, &rewordedError{text: text, node: h.Name})
		}
	}
	for _, err := range errs {
		if err != nil {
			a.Complain(all.status(), err)
		}
	}
	return console.End(all.status(), nil)
}

// print prints the health of the cluster on one line, and then that of each node. named says whether the nodes are
// known by name, so that a command can expel one.
func (all healthReport) print(a *console.App, named bool) error {
	width, wide, well := min(a.Width(0), 100), 0, 0
	for _, h := range all {
		wide = max(wide, len(h.Name))
		if h.Healthy() && !h.Expelled {
			well++
		}
	}
	form := "healthy: %d of %s"
	if all.status() != console.Fine {
		form = "UNHEALTHY: only %d of %s healthy"
	}
	first := all.responses()[0]
	kept := "not durable: what is delivered is lost if a majority fails"
	if first.GetDurable() {
		kept = "durable"
	}
	expelled := 0
	for _, h := range all {
		if h.Expelled {
			expelled++
		}
	}
	count := fmt.Sprintf(form, well, prose.Count(uint64(len(all)-expelled), "node", "nodes"))
	if expelled > 0 {
		count += fmt.Sprintf(", %d expelled", expelled)
	}
	fmt.Fprintf(a.Out, "%s\n%s\n\n", count,
		prose.Fold(fmt.Sprintf("cluster %s, m = %d; %s", first.GetCluster(), first.GetM(), kept), width))
	indent := strings.Repeat(" ", wide+2)
	line := func(head, text, hang string) {
		text = prose.Fold(text, width-len(indent)-len(hang))
		fmt.Fprintf(a.Out, "%-*s%s\n", len(indent), head, strings.ReplaceAll(text, "\n", "\n"+indent+hang))
	}
	for _, h := range all {
		line(h.Name, h.State(), "")
		if h.Expelled {
			continue
		}
		if h.Err != nil {
			advice := "- start it, or see its log"
			if named {
				advice += fmt.Sprintf("; if it is to stay away: parley cluster expel %s", h.Name)
			}
			line("", advice, "  ")
		}
		for _, p := range h.Problems {
			line("", "- "+p, "  ")
		}
		for _, n := range h.Notes {
			line("", "note: "+n, "      ")
		}
	}
	return nil
}
