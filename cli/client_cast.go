package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"parley/cluster"
	"parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
)

// levels are those of the API, by name.
func levelOf(text string) (parleyv1.Level, error) {
	if text == "" {
		return parleyv1.Level_LEVEL_UNSPECIFIED, nil
	}
	if _, err := cluster.ParseLevel(text); err != nil {
		return 0, badFlag("level", "%w", err)
	}
	return parleyv1.Level(parleyv1.Level_value["LEVEL_"+strings.ToUpper(text)]), nil
}

// cast is "parley cast".
func (a *app) cast() *cobra.Command {
	var f clientFlags
	var level string
	cmd := &cobra.Command{
		Use:   "cast GROUP [TEXT...]",
		Short: "Broadcast in a group of a cluster",
		Long: "Cast has a group deliver a text at all of its members, or, without a text, every line of the\n" +
			"standard input. It ends when all is on its way; \"parley listen\" shows what is delivered.",
		Example: "  parley cast total 'first, and the same everywhere' --dir bank\n" +
			"  parley cast byzantine hello --at node3 --dir bank",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := levelOf(level)
			if err != nil {
				return err
			}
			var texts []string
			if len(args) > 1 {
				texts = []string{strings.Join(args[1:], " ")}
			} else {
				lines := bufio.NewScanner(cmd.InOrStdin())
				for lines.Scan() {
					texts = append(texts, lines.Text())
				}
				if err := lines.Err(); err != nil {
					return fmt.Errorf("standard input: %w", err)
				}
			}
			return a.called(f.first(cmd.Context(), func(ctx context.Context, n calledNode) error {
				for len(texts) > 0 {
					_, err := n.Group.Broadcast(ctx, &parleyv1.BroadcastRequest{Group: args[0], Payload: []byte(texts[0]), Level: l})
					if err != nil {
						return err
					}
					texts = texts[1:]
				}
				if f.asJSON {
					return nil
				}
				_, err := fmt.Fprintf(a.out, "on its way from %s\n", n.name)
				return err
			}))
		},
	}
	f.declare(cmd)
	cmd.Flags().StringVar(&level, "level", "", "what is promised for this text, where the group can (default: its level)")
	return cmd
}

// listen is "parley listen".
func (a *app) listen() *cobra.Command {
	var f clientFlags
	var from uint64
	var count int
	cmd := &cobra.Command{
		Use:   "listen GROUP",
		Short: "Print what a node of a cluster delivers in a group",
		Long: "Listen prints what a node's member of a group delivers, in its order, until it is interrupted. If the\n" +
			"node ends it goes on at the next one, where the group's order is the same at all nodes. With --count\n" +
			"it ends after so many deliveries, or when for --timeout there is none, then with status 1.",
		Example: "  parley listen total --from 1 --count 1 --dir bank\n" +
			"  parley listen total --from 1 --count 1 --json --dir bank",
		Args: exactly("GROUP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return a.called(a.listenTo(ctx, &f, args[0], from, count))
		},
	}
	f.declare(cmd)
	cmd.Flags().Uint64Var(&from, "from", 0, "the `position` to begin at, 1 for all that is kept (default: what is new)")
	cmd.Flags().IntVar(&count, "count", 0, "how many `deliveries` to print (default: no end)")
	return cmd
}

// listenTo prints deliveries, of one node after the other.
func (a *app) listenTo(ctx context.Context, f *clientFlags, group string, from uint64, count int) error {
	nodes, err := f.open()
	if err != nil {
		return err
	}
	left := count
	var errs []error
	for _, n := range nodes {
		err := a.listenAt(ctx, f, n, group, &from, count > 0, &left)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		errs = append(errs, said(n, err))
		if !client.Elsewhere(err) {
			break
		}
	}
	return failedCall{errors.Join(errs...)}
}

// errQuiet is the end of listening for so many deliveries.
var errQuiet = errors.New("nothing was delivered for as long as --timeout allows")

// listenAt prints what one node delivers, from a position on. It moves the position.
func (a *app) listenAt(ctx context.Context, f *clientFlags, n calledNode, group string, from *uint64,
	counts bool, left *int,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(f.timeout, func() { cancel(errQuiet) })
	defer quiet.Stop()
	stream, err := n.Group.Subscribe(ctx, &parleyv1.SubscribeRequest{Group: group, From: *from})
	if err != nil {
		return err
	}
	defer stream.Close()
	for stream.Receive() {
		d := stream.Msg().GetDelivery()
		if !counts {
			quiet.Stop() // it is connected
		}
		if d == nil {
			continue
		}
		quiet.Reset(f.timeout)
		if !counts {
			quiet.Stop()
		}
		*from = d.GetPosition() + 1
		if f.asJSON {
			err = a.printProto(d)
		} else {
			_, err = fmt.Fprintf(a.out, "%d  %s  %s\n", d.GetPosition(), d.GetFrom(), d.GetPayload())
		}
		if err != nil {
			return err
		}
		if *left--; *left == 0 {
			return nil
		}
	}
	if cause := context.Cause(ctx); errors.Is(cause, errQuiet) {
		return cause
	}
	return stream.Err()
}
