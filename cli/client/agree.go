// Package client holds the commands that call the nodes of a cluster as a client: agree,
// broadcast, subscribe, table, clock, commit and status.
package client

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"parley"
	"parley/cli/console"
	"parley/cluster"
	"parley/cluster/api/parleyv1"
)

// algorithms lists what --algorithm accepts.
var algorithms = map[string]parleyv1.Algorithm{
	"eig": parleyv1.Algorithm_ALGORITHM_EIG, "om": parleyv1.Algorithm_ALGORITHM_OM,
	"sm": parleyv1.Algorithm_ALGORITHM_SM, "phaseking": parleyv1.Algorithm_ALGORITHM_PHASE_KING,
	"tetra": parleyv1.Algorithm_ALGORITHM_TETRA,
}

// rules lists what --rule accepts.
var rules = map[string]parleyv1.Rule{
	"majority": parleyv1.Rule_RULE_MAJORITY, "median": parleyv1.Rule_RULE_MEDIAN,
	"minimum": parleyv1.Rule_RULE_MINIMUM, "maximum": parleyv1.Rule_RULE_MAXIMUM,
}

// agreeFlags are the flags of "parley agree".
type agreeFlags struct {
	Flags
	algorithm, name, rule, otherwise string
	m                                uint32
	evidence                         bool
}

// Agree is "parley agree".
func Agree(a *console.App) *cobra.Command {
	var f agreeFlags
	cmd := &cobra.Command{
		Use:   "agree VALUE | agree --name NAME NODE=VALUE...",
		Short: "Agree on a value although some nodes lie",
		Long: "Agree makes all correct nodes agree on VALUE. It calls one node: the first node that " +
			"answers, or the node that --at names. The called node is the source: it sends VALUE to the " +
			"other nodes. Agree prints the decision of the called node. The cluster does not store the " +
			"decision: it keeps only the number of the agreement (its slot).\n\n" +
			"The algorithms eig, om, sm and phaseking use rounds: a message that is late counts as missing. " +
			"With tetra, messages may be late by any time, and the nodes still never decide differently. But " +
			"if the value does not get through in time, the nodes decide nothing: ask again then. While " +
			"messages are late, they may not decide at all.\n\n" +
			"With --name, each NODE proposes its VALUE. The nodes agree on the vector, which is the list of " +
			"all nodes' values. With --rule, each node also computes one value from the vector, such as the " +
			"median. Agree prints what each NODE has decided. If no value was proposed at a node, the " +
			"vector has no value for this node. The rule then uses the value of --otherwise.\n\n" +
			"The exit status is 1 if a node refused or failed, and 2 if the request is not allowed. It is 3 " +
			"if no value was decided: no node answered in time, more than m nodes are not connected, " +
			"the called node missed a deadline and therefore took no part, or the nodes decided nothing. If " +
			"the error says that " +
			"the outcome is " +
			"unknown, other nodes may have decided.",
		Example: "  parley agree attack --dir bank\n" +
			"  parley agree attack --at node2 --algorithm om --evidence --dir bank\n" +
			"  parley agree --name temperature --rule median node1=20 node2=21 node4=99 --dir bank",
		Args: console.Args(1, 0, "VALUE was expected"),
		RunE: func(cmd *cobra.Command, args []string) error {
			named := cmd.Flags().Changed("name")
			if err := f.check(named, args); err != nil {
				return err
			}
			if named {
				return Report(a, propose(cmd.Context(), a, &f, args))
			}
			return Report(a, agreeOn(cmd.Context(), a, &f, args[0]))
		},
	}
	f.Declare(cmd)
	console.Prints(cmd.Flags(), "agree", &parleyv1.AgreeResponse{})
	console.Prints(cmd.Flags(), "agree-name", &parleyv1.ProposeResponse{})
	console.Prints(cmd.Flags(), "agree-rule", &parleyv1.ConsensusResponse{})
	flags := cmd.Flags()
	flags.StringVar(&f.algorithm, "algorithm", "eig", "`algorithm` of the agreement: eig|om|sm|phaseking|tetra")
	flags.Uint32VarP(&f.m, "m", "m", 0, "number of `nodes` that may be faulty (0: as many as the algorithm "+
		"tolerates)")
	flags.BoolVar(&f.evidence, "evidence", false, "also print each node's report of the values that it "+
		"received")
	flags.StringVar(&f.name, "name", "", "agree on the vector of several nodes' values; this `name` "+
		"identifies the agreement, and must be new")
	flags.StringVar(&f.rule, "rule", "", "with --name: `rule` that computes one value from the vector: "+
		"majority|median|minimum|maximum")
	flags.StringVar(&f.otherwise, "otherwise", "",
		"with --rule: `value` to use for a node that proposed none (default: 0, or the empty value for "+
			"majority)")
	return cmd
}

// check returns an error if the flags and arguments do not fit together.
func (f *agreeFlags) check(named bool, args []string) error {
	_, known := rules[f.rule]
	switch {
	case algorithms[f.algorithm] == 0:
		return parley.FlagErrorf("algorithm", "%q: allowed are eig, om, sm, phaseking and tetra", f.algorithm)
	case f.rule != "" && !known:
		return parley.FlagErrorf("rule", "%q: allowed are majority, median, minimum and maximum", f.rule)
	case f.otherwise != "" && f.rule == "":
		return parley.FlagErrorf("otherwise", "it needs --rule: add that, or omit --otherwise")
	case !named && f.rule != "":
		return parley.FlagErrorf("rule", "it needs --name: without that, the nodes agree on the value of one node")
	case !named && len(args) > 1:
		return fmt.Errorf("parley agree: one VALUE was expected, and %s given: quote it, or use --name for several values",
			console.Given(len(args)))
	case f.evidence && f.algorithm == "tetra":
		return parley.FlagErrorf("evidence", "tetra has none: omit the flag, or use eig, om, sm or phaseking")
	case !named:
		return nil
	case f.name == "" || len(f.name) > cluster.MaxName:
		return parley.FlagErrorf("name", "%d bytes: allowed are 1 to %d", len(f.name), cluster.MaxName)
	case f.algorithm == "tetra":
		return parley.FlagErrorf("algorithm", "tetra agrees on the value of one node: with --name, allowed are eig, om, "+
			"sm and phaseking")
	case f.evidence:
		return parley.FlagErrorf("evidence", "it is not allowed with --name: omit one of them")
	case !f.numeric():
		return nil
	case !isNumber(f.otherwise) && f.otherwise != "":
		return parley.FlagErrorf("otherwise", "%q: a whole number was expected, as --rule %s takes", f.otherwise, f.rule)
	}
	for _, arg := range args {
		if _, value, given := strings.Cut(arg, "="); given && !isNumber(value) {
			return fmt.Errorf("%q: a whole number was expected behind the =, as --rule %s takes", arg, f.rule)
		}
	}
	return nil
}

// numeric reports whether the rule needs numbers.
func (f *agreeFlags) numeric() bool { return f.rule != "" && f.rule != "majority" }

func isNumber(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}

// agreeOn has the nodes agree on the value of one node.
func agreeOn(ctx context.Context, a *console.App, f *agreeFlags, value string) error {
	nothing := false
	err := f.First(ctx, false, func(ctx context.Context, n Node) error {
		began := time.Now()
		r, err := n.Agree.Agree(ctx, &parleyv1.AgreeRequest{
			Value: []byte(value), Algorithm: algorithms[f.algorithm], M: f.m, Evidence: f.evidence,
		})
		if err != nil {
			return err
		}
		d := r.GetDecision()
		if nothing = d.Value == nil; f.AsJSON {
			return printAnswer(a, n.Name, r)
		}
		printDecision(a.Out, n.Name, f.algorithm, d, time.Since(began))
		return nil
	})
	if err == nil && nothing {
		return console.ExitError(console.Unfinished)
	}
	return err
}

// printDecision prints the decision of a node, and the evidence.
func printDecision(w io.Writer, node, algorithm string, d *parleyv1.Decision, took time.Duration) {
	what := "nothing"
	if d.Value != nil {
		what = valueText(d.Value)
	}
	fmt.Fprintf(w, "%s decides %s: slot %d from %s, %s with m = %d, after %v\n",
		node, what, d.GetSlot(), d.GetSource(), algorithm, d.GetM(), took.Round(100*time.Microsecond))
	if d.Value == nil {
		fmt.Fprintf(w, "The value of %s did not get through in time. No correct node decides on it: ask again.\n",
			d.GetSource())
	}
	for _, account := range d.GetEvidence() {
		printAccount(w, account)
	}
}

// printAccount prints the values that a node reports having received.
func printAccount(w io.Writer, a *parleyv1.Account) {
	fmt.Fprintf(w, "\n%s reports that it received\n", a.GetNode())
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, h := range a.GetHeard() {
		fmt.Fprintf(t, "  in round %d\tfrom %s\t%s\n", h.GetRound(), h.GetFrom(), h.GetText())
	}
	for _, b := range a.GetTree() {
		fmt.Fprintf(t, "  through %s\t%s\tresolves to %s\n",
			strings.Join(b.GetPath(), ", "), valueText(b.In), valueText(b.Out))
	}
	_ = t.Flush() // an error of w shows at the next write
	if a.GetCut() {
		fmt.Fprintln(w, "  and more, which is cut off")
	}
}

// propose has the nodes agree on the vector of the values proposed at some of them.
func propose(ctx context.Context, a *console.App, f *agreeFlags, args []string) error {
	var values map[string]string
	named := func(nodes []Node) (asked []Node, err error) {
		values, err = assigned(args, nodes)
		return slices.DeleteFunc(nodes, func(n Node) bool { _, has := values[n.Name]; return !has }), err
	}
	otherwise := f.otherwise
	if f.numeric() {
		otherwise = cmp.Or(otherwise, "0")
	}
	asked, answers, errs, err := AskAll(ctx, &f.Flags, named, func(ctx context.Context, n Node) (decided, error) {
		p := &parleyv1.ProposeRequest{
			Name: f.name, Value: []byte(values[n.Name]), Algorithm: algorithms[f.algorithm], M: f.m,
		}
		if f.rule != "" {
			return n.Agree.Consensus(ctx, &parleyv1.ConsensusRequest{
				Proposal: p, Rule: rules[f.rule], Otherwise: []byte(otherwise),
			})
		}
		return n.Agree.Propose(ctx, p)
	})
	if err != nil {
		return err
	}
	none := false
	for i, n := range asked {
		if errs[i] != nil {
			continue
		}
		if f.AsJSON {
			if err := printAnswer(a, n.Name, answers[i]); err != nil {
				return err
			}
			continue
		}
		entries := answers[i].GetVector().GetEntries()
		none = none || slices.ContainsFunc(entries, func(e *parleyv1.Entry) bool { return e.Value == nil })
		fmt.Fprintf(a.Out, "%s  %s", n.Name, vectorText(answers[i].GetVector()))
		if r, ok := answers[i].(*parleyv1.ConsensusResponse); ok {
			fmt.Fprintf(a.Out, "  %s %q", f.rule, r.GetValue())
		}
		fmt.Fprintln(a.Out)
	}
	if none && f.numeric() {
		fmt.Fprintf(a.Out, "a node without a value counts as %s in the %s (--otherwise)\n", otherwise, f.rule)
	}
	return Joined(errs)
}

// decided is a node's answer about an agreed vector, with or without a rule.
type decided interface {
	proto.Message
	GetVector() *parleyv1.Vector
}

// vectorText returns a vector on one line.
func vectorText(v *parleyv1.Vector) string {
	var text []string
	for _, e := range v.GetEntries() {
		if e.Value == nil {
			text = append(text, e.GetNode()+" none")
			continue
		}
		text = append(text, fmt.Sprintf("%s %q", e.GetNode(), e.GetValue()))
	}
	return strings.Join(text, ", ")
}
