package client

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"parley/cli/console"
	"parley/cluster"
	"parley/cluster/api/parleyv1"
)

// Commit is "parley commit".
func Commit(a *console.App) *cobra.Command {
	var f Flags
	cmd := &cobra.Command{
		Use:   "commit TRANSACTION NODE=WHAT...",
		Short: "Commit a transaction on several nodes, or abort it on all",
		Long: "Commit carries out a transaction with a part on each NODE. A node's " +
			"participant is a service that the configuration of the node names. WHAT tells the participant what to do. " +
			"Each participant " +
			"first prepares its part, and its node votes yes or no. Then either all participants carry " +
			"out their parts, or " +
			"none does. A node without a participant in its configuration votes no. Each TRANSACTION needs " +
			"a new name. A second commit with the same name, at a node that took part, returns the outcome " +
			"of the first commit.\n\n" +
			"The exit status is 0 if the transaction is committed, 1 if it is aborted, and 2 if the request " +
			"is not allowed. It is 3 if no outcome is known: there was no answer in time, or the " +
			"transaction is blocked until other nodes recover. To get the outcome later, repeat the command " +
			"with the same name.",
		Example: "  parley commit transfer-1 'node1=withdraw 100' 'node2=deposit 100' --dir bank",
		Args:    console.Args(2, 0, "TRANSACTION and NODE=WHAT were expected"),
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
