package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"parley/cluster/api/parleyv1"
)

// algorithms are what --algorithm may say.
var algorithms = map[string]parleyv1.Algorithm{
	"eig": parleyv1.Algorithm_ALGORITHM_EIG, "om": parleyv1.Algorithm_ALGORITHM_OM,
	"sm": parleyv1.Algorithm_ALGORITHM_SM, "phaseking": parleyv1.Algorithm_ALGORITHM_PHASE_KING,
}

// rules are what --rule may say.
var rules = map[string]parleyv1.Rule{
	"majority": parleyv1.Rule_RULE_MAJORITY, "median": parleyv1.Rule_RULE_MEDIAN,
	"minimum": parleyv1.Rule_RULE_MINIMUM, "maximum": parleyv1.Rule_RULE_MAXIMUM,
}

// agreeFlags are those of "parley agree".
type agreeFlags struct {
	clientFlags
	algorithm, name, rule string
	m                     uint32
	evidence              bool
}

// agree is "parley agree".
func (a *app) agree() *cobra.Command {
	var f agreeFlags
	cmd := &cobra.Command{
		Use:   "agree VALUE | agree --name NAME NODE=VALUE...",
		Short: "Have the nodes of a cluster agree on a value, although some lie",
		Long: "Agree has all correct nodes agree on a value that one node gives them as the source: the first one\n" +
			"that answers, or the one that --at names.\n\n" +
			"With --name it hands in a value at each node named, and has them agree on the vector of all nodes'\n" +
			"values and, with --rule, on one value made of it. It prints what every node asked has decided.",
		Example: "  parley agree attack --dir bank\n" +
			"  parley agree attack --at node2 --algorithm om --evidence --dir bank\n" +
			"  parley agree --name temperature --rule median node1=20 node2=21 node4=99 --dir bank",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if algorithms[f.algorithm] == 0 {
				return badFlag("algorithm", "%q: allowed are eig, om, sm and phaseking", f.algorithm)
			}
			if _, known := rules[f.rule]; f.rule != "" && !known {
				return badFlag("rule", "%q: allowed are majority, median, minimum and maximum", f.rule)
			}
			switch {
			case f.name != "":
				return a.called(a.propose(cmd.Context(), &f, args))
			case f.rule != "":
				return badFlag("rule", "it is for --name: without, one node's value is agreed on")
			case len(args) > 1:
				return fmt.Errorf("parley agree: one VALUE was expected, and %s given: --name is for several nodes' values",
					number(len(args)))
			}
			return a.called(a.agreeOn(cmd.Context(), &f, args[0]))
		},
	}
	f.declare(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.algorithm, "algorithm", "eig", "eig, om, sm or phaseking")
	flags.Uint32VarP(&f.m, "m", "m", 0, "how many `nodes` may lie (default: as many as the algorithm tolerates)")
	flags.BoolVar(&f.evidence, "evidence", false, "print what nodes say they heard")
	flags.StringVar(&f.name, "name", "", "agree on the nodes' values under this `name`, one never used before")
	flags.StringVar(&f.rule, "rule", "", "with --name: majority, median, minimum or maximum")
	return cmd
}

// agreeOn has the nodes agree on one node's value.
func (a *app) agreeOn(ctx context.Context, f *agreeFlags, value string) error {
	return f.first(ctx, func(ctx context.Context, n calledNode) error {
		began := time.Now()
		r, err := n.Agree.Agree(ctx, &parleyv1.AgreeRequest{
			Value: []byte(value), Algorithm: algorithms[f.algorithm], M: f.m, Evidence: f.evidence,
		})
		if err != nil {
			return err
		}
		if f.asJSON {
			return a.printProto(r)
		}
		d := r.GetDecision()
		fmt.Fprintf(a.out, "%s decides %q: slot %d from %s, %s with m = %d, after %v\n",
			n.name, d.GetValue(), d.GetSlot(), d.GetSource(), f.algorithm, d.GetM(),
			time.Since(began).Round(100*time.Microsecond))
		for _, account := range d.GetEvidence() {
			printAccount(a.out, account)
		}
		return nil
	})
}

// printAccount prints what one node says it heard.
func printAccount(w io.Writer, a *parleyv1.Account) {
	fmt.Fprintf(w, "\n%s says it heard\n", a.GetNode())
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, h := range a.GetHeard() {
		fmt.Fprintf(t, "  in round %d\tfrom %s\t%s\n", h.GetRound(), h.GetFrom(), h.GetText())
	}
	for _, b := range a.GetTree() {
		fmt.Fprintf(t, "  by way of %s\t%q\tresolves to %q\n", strings.Join(b.GetPath(), ", "), b.GetIn(), b.GetOut())
	}
	_ = t.Flush() // an error of w shows when the next is written
	if a.GetCut() {
		fmt.Fprintln(w, "  and more")
	}
}

// propose has the nodes agree on the vector of what is handed in at some.
func (a *app) propose(ctx context.Context, f *agreeFlags, args []string) error {
	nodes, err := f.open()
	if err != nil {
		return err
	}
	values, err := assigned(args, nodes)
	if err != nil {
		return err
	}
	var asked []calledNode
	for _, n := range nodes {
		if _, has := values[n.name]; has {
			asked = append(asked, n)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	answers := make([]*parleyv1.ConsensusResponse, len(asked))
	errs := all(ctx, asked, func(ctx context.Context, i int, n calledNode) error {
		p := &parleyv1.ProposeRequest{
			Name: f.name, Value: []byte(values[n.name]), Algorithm: algorithms[f.algorithm], M: f.m,
		}
		if f.rule != "" {
			r, err := n.Agree.Consensus(ctx, &parleyv1.ConsensusRequest{Proposal: p, Rule: rules[f.rule]})
			answers[i] = r
			return err
		}
		r, err := n.Agree.Propose(ctx, p)
		answers[i] = &parleyv1.ConsensusResponse{Vector: r.GetVector()}
		return err
	})
	for i, n := range asked {
		if errs[i] != nil {
			continue
		}
		if f.asJSON {
			if err := a.printProto(answers[i]); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(a.out, "%s  %s", n.name, vectorText(answers[i].GetVector()))
		if f.rule != "" {
			fmt.Fprintf(a.out, "  %s %q", f.rule, answers[i].GetValue())
		}
		fmt.Fprintln(a.out)
	}
	return joined(errs)
}

// vectorText is a vector on one line.
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

// printProto prints an answer as JSON, as the API itself would write it.
func (a *app) printProto(m proto.Message) error {
	b, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(m)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s\n", b)
	return err
}
