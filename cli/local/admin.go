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
	return askItself(a, "leave", "Have a node leave a cluster at once",
		"Leave has a node take leave of all its groups and end, without waiting for what is under way.",
		func(ctx context.Context, n client.Node) error {
			_, err := n.Admin.Leave(ctx, &parleyv1.LeaveRequest{})
			return err
		})
}

// drain is "parley cluster drain".
func drain(a *console.App) *cobra.Command {
	return askItself(a, "drain", "Have a node finish what it has begun and leave a cluster",
		"Drain has a node take no new requests, wait for those under way, take leave of all its groups, and end.",
		func(ctx context.Context, n client.Node) error {
			_, err := n.Admin.Drain(ctx, &parleyv1.DrainRequest{})
			return err
		})
}

// expel is "parley cluster expel".
func expel(a *console.App) *cobra.Command {
	return askOthers(a, "expel", "expelled", "Have the others exclude a node from a cluster",
		"Expel asks all other nodes, or those that --at names, to exclude one. A majority excludes it from\n"+
			"groups and tables; from what is to hold in spite of liars it is shut out when m+1 nodes have been\n"+
			"asked, for one of them may lie. It is let in again when it is started anew.",
		func(ctx context.Context, n client.Node, name string) error {
			_, err := n.Admin.Expel(ctx, &parleyv1.ExpelRequest{Name: name})
			return err
		})
}

// forget is "parley cluster forget".
func forget(a *console.App) *cobra.Command {
	return askOthers(a, "forget", "forgotten", "Have the others let in a node again that they refuse",
		"Forget has all other nodes, or those that --at names, forget what they know of the lives and of the\n"+
			"disk of a node that is stopped: they let in whoever comes next with a certificate of that name. Use\n"+
			"it for a node that is refused though its folder is whole, such as after somebody else held its key\n"+
			"(revoke that certificate first). A folder that is lost or an old copy is no case for it: start that\n"+
			"node with an empty folder and --rejoin, or what it had acknowledged may be lost.",
		func(ctx context.Context, n client.Node, name string) error {
			_, err := n.Admin.Forget(ctx, &parleyv1.ForgetRequest{Name: name})
			return err
		})
}

// askOthers returns a command that has all other nodes do something about one node.
func askOthers(a *console.App,
	verb, done, short, long string, call func(context.Context, client.Node, string) error,
) *cobra.Command {
	var f client.Flags
	cmd := &cobra.Command{
		Use:     verb + " NODE",
		Short:   short,
		Long:    long + " The exit status is 1 if\na node could not do it.",
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
					err = errors.Join(err, client.PrintOf(a, n.Name, nil))
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
	return cmd
}

// askItself returns a command that has a node do something about itself.
func askItself(a *console.App,
	verb, short, long string, call func(context.Context, client.Node) error,
) *cobra.Command {
	var f client.Flags
	cmd := &cobra.Command{
		Use:     verb + " NODE",
		Short:   short,
		Long:    long + " NODE is its name, or with --certificates and without --dir where it serves.",
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
				return client.PrintOf(a, left, nil)
			}
			_, err = fmt.Fprintf(a.Out, "%s has left\n", left)
			return err
		},
	}
	f.Declare(cmd)
	return cmd
}
