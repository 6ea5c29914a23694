package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"parley"
	"parley/cli/console"
	"parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
)

// Listen is "parley listen".
func Listen(a *console.App) *cobra.Command {
	var f Flags
	var from uint64
	var count int
	cmd := &cobra.Command{
		Use:   "listen GROUP",
		Short: "Print what a node of a cluster delivers in a group",
		Long: "Listen prints what a node's member of a group delivers, in its order, until it is interrupted. If the\n" +
			"node ends it goes on at the next one, where the group's order is the same at all nodes. With --count\n" +
			"it ends after so many deliveries, or when for --timeout there is none, then with status 3.",
		Example: "  parley listen total --from 1 --count 1 --dir bank\n" +
			"  parley listen total --from 1 --count 1 --json --dir bank",
		Args: console.Exactly("GROUP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if count < 0 || count == 0 && cmd.Flags().Changed("count") {
				return parley.FlagErrorf("count", "%d: a number above 0 was expected", count)
			}
			ctx, stop := console.UntilSignal(cmd.Context())
			defer stop()
			l := listening{a: a, f: &f, group: args[0], begin: from, from: from, left: count, counts: count > 0}
			return Report(a, l.run(ctx))
		},
	}
	f.Declare(cmd)
	cmd.Flags().Uint64Var(&from, "from", 0, "the `position` to begin at, 1 for the group's first delivery; what is "+
		"kept no more is an error, which says where that which is kept begins (default: what is new)")
	cmd.Flags().IntVar(&count, "count", 0, "how many `deliveries` to print (default: no end)")
	return cmd
}

// listening prints deliveries.
type listening struct {
	a      *console.App
	f      *Flags
	group  string
	begin  uint64 // the position that was asked for
	from   uint64 // where to go on
	moved  bool   // something has been delivered
	counts bool   // so many are wanted:
	left   int
}

// run prints what one node after the other delivers.
func (l *listening) run(ctx context.Context) error {
	nodes, err := l.f.Open()
	if err != nil {
		return err
	}
	defer HangUp(nodes)
	var errs []error
	for i, n := range nodes {
		var err error
		if i > 0 {
			err = l.resume(ctx, n)
		}
		if err == nil {
			err = l.at(ctx, n)
		}
		if err == nil || ctx.Err() != nil {
			return nil
		}
		var here *printError
		if errors.As(err, &here) {
			return here.error // no other node can help
		}
		errs = append(errs, inWords(n, err, false)) // who listens changes nothing
		if errors.Is(err, errQuiet) || errors.Is(err, errOwnOrder) || !client.Elsewhere(err) {
			break
		}
	}
	return failedCall{errors.Join(errs...)}
}

var (
	// errQuiet is the end of listening for so many deliveries.
	errQuiet = errors.New("nothing was delivered for as long as --timeout allows")
	// errOwnOrder is the end of listening where positions are each node's own.
	errOwnOrder = errors.New("the group has another order at each node: where to go on at this one is not known")
)

// printError is an error of printing what a node delivered, which is none of the node.
type printError struct{ error }

// resume makes sure that a node has the positions of the one before, if that matters.
func (l *listening) resume(ctx context.Context, n Node) error {
	if l.from == l.begin && l.begin <= 1 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.f.Timeout)
	defer cancel()
	st, err := n.Admin.Status(ctx, &parleyv1.StatusRequest{})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(st.GetGroups(), func(g *parleyv1.GroupStatus) bool {
		return g.GetName() == l.group && slices.Contains(oneOrder, g.GetLevel())
	}) {
		return nil
	}
	if l.moved || l.begin > 1 {
		return errOwnOrder
	}
	l.from = l.begin
	return nil
}

// oneOrder are the levels with positions that are the same at all nodes.
var oneOrder = []parleyv1.Level{
	parleyv1.Level_LEVEL_TOTAL, parleyv1.Level_LEVEL_ATOMIC, parleyv1.Level_LEVEL_BYZANTINE,
}

// at prints what one node delivers.
func (l *listening) at(ctx context.Context, n Node) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(l.f.Timeout, func() { cancel(errQuiet) })
	defer quiet.Stop()
	stream, err := n.Group.Subscribe(ctx, &parleyv1.SubscribeRequest{Group: l.group, From: l.from})
	if err != nil {
		return err
	}
	defer stream.Close()
	for stream.Receive() {
		l.from = stream.Msg().GetNext()
		d := stream.Msg().GetDelivery()
		if !l.counts {
			quiet.Stop() // it is connected
		}
		if d == nil {
			continue
		}
		if l.counts {
			quiet.Reset(l.f.Timeout)
		}
		l.moved = true
		if l.f.AsJSON {
			err = printProto(l.a, d)
		} else {
			_, err = fmt.Fprintf(l.a.Out, "%d  %s  %s\n", d.GetPosition(), d.GetFrom(), printed(d.GetPayload()))
		}
		if err != nil {
			return &printError{err}
		}
		if l.left--; l.left == 0 {
			return nil
		}
	}
	if cause := context.Cause(ctx); errors.Is(cause, errQuiet) {
		return cause
	}
	return cmp.Or(stream.Err(), errEnded)
}

// errEnded is the error of a stream that ends without one.
var errEnded error = connect.NewError(connect.CodeUnavailable, errors.New("the node has ended the stream"))
