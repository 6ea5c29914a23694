package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/client"
	"parley/cli/console"
	"parley/cluster/api/parleyv1"
	"parley/internal/lists"
)

// leave is "parley cluster leave".
func leave(a *console.App) *cobra.Command {
	return askItself(a, "leave", "Make a node leave the cluster at once",
		"Leave makes a node leave all its groups and tables, and exit. The node does not wait for requests "+
			"in flight. It refuses to leave if the remaining nodes would be fewer than a majority of "+
			"all nodes.",
		func(ctx context.Context, n client.Node) error {
			_, err := n.Admin.Leave(ctx, &parleyv1.LeaveRequest{})
			return err
		})
}

// drain is "parley cluster drain".
func drain(a *console.App) *cobra.Command {
	return askItself(a, "drain", "Make a node finish its requests and leave the cluster",
		"Drain makes a node refuse new requests, wait for the requests in flight, leave all its groups and "+
			"tables, and exit. The node refuses to leave if the remaining nodes would be fewer than a "+
			"majority of all nodes.",
		func(ctx context.Context, n client.Node) error {
			_, err := n.Admin.Drain(ctx, &parleyv1.DrainRequest{})
			return err
		})
}

// expel is "parley cluster expel".
func expel(a *console.App) *cobra.Command {
	return askOthers(a, "expel", "expelled", "Make the other nodes exclude a node from the cluster",
		"Expel asks all other nodes, or the nodes that --at names, to exclude NODE. Groups and tables "+
			"exclude NODE if a majority agrees. Services that tolerate Byzantine faults exclude NODE only "+
			"after m+1 nodes have been asked, of which at least one is correct. NODE rejoins when "+
			"it is started again.",
		func(ctx context.Context, n client.Node, name string) error {
			_, err := n.Admin.Expel(ctx, &parleyv1.ExpelRequest{Name: name})
			return err
		})
}

// forget is "parley cluster forget".
func forget(a *console.App) *cobra.Command {
	return askOthers(a, "forget", "forgotten", "Make the other nodes admit a node that they refuse",
		"The nodes remember the starts (incarnations) and the disk of each other node. Forget makes all "+
			"other nodes, or the nodes that --at names, delete what they remember about NODE. NODE must "+
			"be stopped. The other nodes then admit the next connection with a certificate of that name.\n\n"+
			"Use forget if the other nodes refuse NODE although its data folder is intact, for example "+
			"because somebody else used its key. In that case, revoke the certificate first. Do not use "+
			"forget if the data folder is lost or is an old copy, because the cluster may then lose "+
			"acknowledged data. Instead, start NODE with an empty folder and --rejoin.",
		func(ctx context.Context, n client.Node, name string) error {
			_, err := n.Admin.Forget(ctx, &parleyv1.ForgetRequest{Name: name})
			return err
		})
}

// doneOutput is the JSON output of the commands for nodes: a node that did what was asked.
type doneOutput struct {
	Node string `json:"node"`
}

// askOthers returns a command that has all other nodes do something about one node.
func askOthers(a *console.App,
	verb, done, short, long string, call func(context.Context, client.Node, string) error,
) *cobra.Command {
	var f client.Flags
	cmd := &cobra.Command{
		Use:   verb + " NODE",
		Short: short,
		Long: long + "\n\n" +
			"The exit status is 1 if one of the called nodes failed, 2 if there is no such node or the " +
			"client lacks the right admin, and 3 if no node answers.",
		Example: "  parley cluster " + verb + " node3 --dir bank",
		Args:    console.Args(1, 1, "one NODE was expected"),
		RunE: func(cmd *cobra.Command, args []string) error {
			others := func(nodes []client.Node) ([]client.Node, error) {
				names := lists.Of(nodes, func(n client.Node) string { return n.Name })
				if f.Dir != "" && len(f.At) == 0 && !slices.Contains(names, args[0]) {
					return nil, fmt.Errorf("%s: NODE: %q: allowed are %s", cmd.CommandPath(), args[0], strings.Join(names, ", "))
				}
				return slices.DeleteFunc(nodes, func(n client.Node) bool { return n.Name == args[0] }), nil
			}
			nodes, _, errs, err := client.AskAll(cmd.Context(), &f, others,
				func(ctx context.Context, n client.Node) (any, error) { return nil, call(ctx, n, args[0]) })
			for i, n := range nodes {
				switch {
				case errs[i] != nil:
				case f.AsJSON:
					err = errors.Join(err, a.PrintLine(doneOutput{n.Name}))
				default:
					fmt.Fprintf(a.Out, "%s has %s %s\n", n.Name, done, args[0])
				}
			}
			if err != nil {
				return err
			}
			return client.Report(a, client.Joined(errs))
		},
	}
	f.Declare(cmd)
	console.Prints(cmd.Flags(), "cluster-node", doneOutput{})
	return cmd
}

// askItself returns a command that has a node do something about itself.
func askItself(a *console.App,
	verb, short, long string, call func(context.Context, client.Node) error,
) *cobra.Command {
	var f client.Flags
	cmd := &cobra.Command{
		Use:   verb + " NODE",
		Short: short,
		Long: long + "\n\n" +
			"With --dir, NODE is the name of the node. Without --dir, it is the HOST:PORT of the node's " +
			"API. The exit status is 1 if the node refused or failed, 2 if there is no such node or the " +
			"client lacks the right admin, and 3 if the node does not answer.",
		Example: "  parley cluster " + verb + " node3 --dir bank",
		Args:    console.Args(1, 1, "one NODE was expected"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(f.At) > 0 {
				return parley.FlagErrorf("at", "it is not allowed here: %s itself is called", args[0])
			}
			f.At = args
			left := ""
			err := f.First(cmd.Context(), false, func(ctx context.Context, n client.Node) error {
				left = n.Name
				return call(ctx, n)
			})
			bad, ok := errors.AsType[*parley.FlagError](err)
			switch {
			case ok && bad.Flag == "at": // the user gave it as NODE
				return fmt.Errorf("%s: NODE: %w", cmd.CommandPath(), bad.Err)
			case err != nil:
				return client.Report(a, err)
			case f.AsJSON:
				return a.PrintLine(doneOutput{left})
			}
			_, err = fmt.Fprintf(a.Out, "%s has left\n", left)
			return err
		},
	}
	f.Declare(cmd)
	cmd.Flag("at").Hidden = true               // NODE says which node is called
	cmd.Flags().Lookup("at").Annotations = nil // PARLEY_AT is for calls of any node
	console.Prints(cmd.Flags(), "cluster-node", doneOutput{})
	return cmd
}
