package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"parley"
	"parley/cli/console"
	"parley/cluster"
	"parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
)

// levelOf reads a level, by its name; none stands for that of the group.
func levelOf(text string) (parleyv1.Level, error) {
	if text == "" {
		return parleyv1.Level_LEVEL_UNSPECIFIED, nil
	}
	if _, err := cluster.ParseLevel(text); err != nil {
		return 0, parley.FlagErrorf("level", "%w", err)
	}
	return parleyv1.Level(parleyv1.Level_value["LEVEL_"+strings.ToUpper(text)]), nil
}

// maxText is how long what is broadcast may be, as the API has it.
const maxText = 60 << 10

// castCommand is "parley cast".
func castCommand(a *console.App) *cobra.Command {
	var f clientFlags
	var level string
	cmd := &cobra.Command{
		Use:   "cast GROUP [TEXT...]",
		Short: "Broadcast in a group of a cluster",
		Long: "Cast has a group deliver a text at all of its members, or, without a text, every line of the\n" +
			"standard input, as it comes; --timeout is for each. It ends when the node that was called has\n" +
			"delivered all, and prints the position of the last, which \"parley listen --from\" takes.",
		Example: "  parley cast total 'first, and the same everywhere' --dir bank\n" +
			"  parley cast byzantine hello --at node3 --dir bank",
		Args: console.Needs(1, "GROUP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := levelOf(level)
			if err != nil {
				return err
			}
			r := &parleyv1.BroadcastRequest{Group: args[0], Level: l}
			if len(args) > 1 {
				r.Payload = []byte(strings.Join(args[1:], " "))
				at, err := f.send(cmd.Context(), r)
				if err != nil {
					return called(a, err)
				}
				return delivered(a, &f, at, 1)
			}
			return called(a, castLines(cmd.Context(), a, &f, r, cmd.InOrStdin()))
		},
	}
	f.declare(cmd)
	cmd.Flags().StringVar(&level, "level", "", "what is promised for this text, where the group can (default: its level)")
	return cmd
}

// place is where a text was delivered: by which node, and at which position.
type place struct {
	node     string
	position uint64
}

// send broadcasts one text, and returns where it was delivered.
func (c *clientFlags) send(ctx context.Context, r *parleyv1.BroadcastRequest) (at place, err error) {
	err = c.first(ctx, false, func(ctx context.Context, n calledNode) error {
		answer, err := n.Group.Broadcast(ctx, r)
		at = place{n.name, answer.GetPosition()}
		return err
	})
	return at, err
}

// delivered says where the last of some texts was delivered.
func delivered(a *console.App, f *clientFlags, at place, texts int) error {
	if f.asJSON {
		return a.PrintLine(struct {
			Node     string `json:"node"`
			Sent     int    `json:"sent"`
			Position uint64 `json:"position,string"` // as "parley listen --json" has it
		}{at.node, texts, at.position})
	}
	what := ""
	if texts > 1 {
		what = fmt.Sprintf("%d texts, the last ", texts)
	}
	_, err := fmt.Fprintf(a.Out, "%sdelivered at %d, by %s\n", what, at.position, at.node)
	return err
}

// castLines broadcasts line after line.
func castLines(ctx context.Context, a *console.App, f *clientFlags, r *parleyv1.BroadcastRequest, in io.Reader) error {
	lines := bufio.NewReaderSize(in, maxText+2)
	at, wrong := place{}, func(texts int, err error) error {
		if texts > 0 {
			return fmt.Errorf("line %d: %w; the %d before it are delivered", texts+1, err, texts)
		}
		return fmt.Errorf("line 1: %w; nothing was sent", err)
	}
	for texts := 0; ; texts++ {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return wrong(texts, fmt.Errorf("it is longer than the %d bytes that are allowed", maxText))
		case err != nil && !errors.Is(err, io.EOF):
			return wrong(texts, err)
		case err != nil && len(line) == 0 && texts == 0:
			return errors.New("parley cast: the standard input is empty, and there is no TEXT: nothing was sent")
		case err != nil && len(line) == 0:
			return delivered(a, f, at, texts)
		}
		r.Payload = []byte(strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r"))
		if at, err = f.send(ctx, r); err != nil {
			if failed := (failedCall{}); errors.As(err, &failed) {
				return failedCall{wrong(texts, err)}
			}
			return err
		}
	}
}

// listenCommand is "parley listen".
func listenCommand(a *console.App) *cobra.Command {
	var f clientFlags
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
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			l := listening{a: a, f: &f, group: args[0], begin: from, from: from, left: count, counts: count > 0}
			return called(a, l.run(ctx))
		},
	}
	f.declare(cmd)
	cmd.Flags().Uint64Var(&from, "from", 0, "the `position` to begin at, 1 for the group's first delivery; what is "+
		"kept no more is an error, which says where that which is kept begins (default: what is new)")
	cmd.Flags().IntVar(&count, "count", 0, "how many `deliveries` to print (default: no end)")
	return cmd
}

// listening prints deliveries.
type listening struct {
	a      *console.App
	f      *clientFlags
	group  string
	begin  uint64 // the position that was asked for
	from   uint64 // where to go on
	moved  bool   // something has been delivered
	counts bool   // so many are wanted:
	left   int
}

// run prints what one node after the other delivers.
func (l *listening) run(ctx context.Context) error {
	nodes, err := l.f.open()
	if err != nil {
		return err
	}
	defer hangUp(nodes)
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
func (l *listening) resume(ctx context.Context, n calledNode) error {
	if l.from == l.begin && l.begin <= 1 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.f.timeout)
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
func (l *listening) at(ctx context.Context, n calledNode) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(l.f.timeout, func() { cancel(errQuiet) })
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
			quiet.Reset(l.f.timeout)
		}
		l.moved = true
		if l.f.asJSON {
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
