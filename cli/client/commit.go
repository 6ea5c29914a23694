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
					return printProto(a, r)
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
	return cmd
}
