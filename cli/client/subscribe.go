package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/console"
	"parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
)

// Subscribe is "parley subscribe".
func Subscribe(a *console.App) *cobra.Command {
	var f Flags
	var from uint64
	var count int
	cmd := &cobra.Command{
		Use:     "subscribe GROUP",
		Aliases: []string{"listen"},
		Short:   "Print the messages that a group delivers",
		Long: "Subscribe prints the position, sender, and text of each message that the group delivers at a " +
			"node, in the group's order, until Ctrl-C. If the node fails, and the group's order is the same " +
			"at all nodes, subscribe continues at the next node. It changes nothing.\n\n" +
			"The exit status is 0 after Ctrl-C or --count deliveries. It is 1 if the nodes no longer keep " +
			"the delivery at --from, or if the node failed and no other node can continue. It is 2 if there " +
			"is no such group or the client lacks the right to read, and 3 if no node answers. With --count " +
			"it is also 3 if the group delivers nothing for longer than --timeout.",
		Example: "  parley subscribe total --from 1 --count 1 --dir bank\n" +
			"  parley subscribe total --from 1 --count 1 --json --dir bank",
		Args: console.Args(1, 1, "one GROUP was expected"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if count < 0 || count == 0 && cmd.Flags().Changed("count") {
				return parley.FlagErrorf("count", "%d: a number above 0 was expected", count)
			}
			ctx, stop := console.UntilSignal(cmd.Context())
			defer stop()
			l := deliveryPrinter{a: a, f: &f, group: args[0], from: from, count: count}
			return Report(a, l.run(ctx))
		},
	}
	f.Declare(cmd)
	console.Prints(cmd.Flags(), "subscribe", &parleyv1.Delivery{})
	cmd.Flags().Uint64Var(&from, "from", 0, "`position` of the first delivery to print (default: new "+
		"deliveries only); the group's first delivery has position 1; if the nodes no longer keep this "+
		"position, the error names the first position that they keep")
	cmd.Flags().IntVar(&count, "count", 0, "number of `deliveries` to print (default: no end)")
	return cmd
}

// deliveryPrinter prints deliveries.
type deliveryPrinter struct {
	a     *console.App
	f     *Flags
	group string
	from  uint64
	count int // deliveries to print; 0: no limit
}

// run subscribes at one node, and at the next if it fails, and prints the deliveries.
func (l *deliveryPrinter) run(ctx context.Context) error {
	nodes, err := l.f.Open()
	if err != nil {
		return err
	}
	defer HangUp(nodes)
	soon, cancel := l.soon(ctx)
	sub, err := anyOf(nodes).Subscribe(soon, l.group, l.from)
	cancel()
	at := nodes[0]
	if err == nil {
		defer func() { _ = sub.Close() }()
		err = l.print(ctx, nodes, sub)
		at = nodeOf(nodes, sub.Node())
	}
	switch {
	case ctx.Err() != nil:
		return nil // it was interrupted
	case errors.Is(err, errQuiet):
		return Failed(Said(at, err))
	}
	return byName(nodes, err)
}

// errQuiet ends a subscription with --count, and the subscribing itself, when --timeout passes without a delivery or
// an answer.
var errQuiet = errors.New("nothing was delivered for as long as --timeout allows")

// soon returns a context that ends after --timeout.
func (l *deliveryPrinter) soon(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, l.f.Timeout, errQuiet)
}

// print prints deliveries. A write error is not blamed on a node.
func (l *deliveryPrinter) print(ctx context.Context, nodes []Node, sub *client.Subscription) error {
	for n := 1; ; n++ {
		soon, cancel := ctx, context.CancelFunc(func() {})
		if l.count > 0 {
			soon, cancel = l.soon(ctx)
		}
		d, err := sub.Next(soon)
		cancel()
		if err != nil {
			return err
		}
		if l.f.AsJSON {
			err = printAnswer(l.a, nodeOf(nodes, sub.Node()).Name, d)
		} else {
			_, err = fmt.Fprintf(l.a.Out, "%d  %s  %s\n", d.GetPosition(), d.GetFrom(), printed(d.GetPayload()))
		}
		if err != nil || n == l.count {
			return err
		}
	}
}
