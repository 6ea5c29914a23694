package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/console"
	"parley/cluster"
	"parley/cluster/api/client"
	"parley/cluster/api/parleyv1"
	"parley/internal/lists"
)

// levelOf returns the level with a name. An empty name means the group's level.
func levelOf(text string) (parleyv1.Level, error) {
	if text == "" {
		return parleyv1.Level_LEVEL_UNSPECIFIED, nil
	}
	if _, err := cluster.ParseLevel(text); err != nil {
		return 0, parley.FlagErrorf("level", "%w", err)
	}
	return parleyv1.Level(parleyv1.Level_value["LEVEL_"+strings.ToUpper(text)]), nil
}

// maxText is the API's limit for a broadcast text, in bytes.
const maxText = 60 << 10

// Broadcast is "parley broadcast".
func Broadcast(a *console.App) *cobra.Command {
	var f Flags
	var level string
	cmd := &cobra.Command{
		Use:     "broadcast GROUP [TEXT...]",
		Aliases: []string{"cast"},
		Short:   "Broadcast messages in a group",
		Long: "Broadcast sends TEXT to all members of a group. Without TEXT, it reads the standard input, " +
			"and sends each line as soon as the line arrives. It returns when the called node has delivered " +
			"all texts. It prints the position of the last text: \"parley subscribe --from\" can begin at " +
			"this position. --timeout limits the wait for each text.\n\n" +
			"The exit status is 1 if a node failed, and 3 if there was no answer in time. It is 2 if the " +
			"group does not exist, a text is too long, or the client lacks the right to write. The error " +
			"says how many lines were delivered, and whether the outcome of the last line is unknown.",
		Example: "  parley broadcast total 'first, and the same everywhere' --dir bank\n" +
			"  parley broadcast byzantine hello --at node3 --dir bank",
		Args: console.Args(1, 0, "GROUP was expected"),
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
					return Report(a, err)
				}
				return delivered(a, &f, at, 1)
			}
			return Report(a, castLines(cmd.Context(), a, &f, r, cmd.InOrStdin()))
		},
	}
	f.Declare(cmd)
	console.Prints(cmd.Flags(), "broadcast", broadcastOutput{})
	cmd.Flags().StringVar(&level, "level", "",
		"`level` of the messages, which says what the broadcast promises (default: the level of the group): "+
			"reliable|uniform|fifo|causal|atomic|total|byzantine")
	return cmd
}

// place is where a text was delivered: the node and the position.
type place struct {
	node     string
	position uint64
}

// send broadcasts one text and returns where it was delivered.
func (c *Flags) send(ctx context.Context, r *parleyv1.BroadcastRequest) (at place, err error) {
	err = c.First(ctx, false, func(ctx context.Context, n Node) error {
		answer, err := n.Group.Broadcast(ctx, r)
		at = place{n.Name, answer.GetPosition()}
		return err
	})
	return at, err
}

// broadcastOutput is the JSON output of "parley broadcast".
type broadcastOutput struct {
	Node     string `json:"node"`
	Sent     int    `json:"sent"`
	Position uint64 `json:"position,string"` // a string, as in "parley subscribe --json"
}

// delivered prints where the last of the texts was delivered.
func delivered(a *console.App, f *Flags, at place, texts int) error {
	if f.AsJSON {
		return a.PrintLine(broadcastOutput{at.node, texts, at.position})
	}
	what := ""
	if texts > 1 {
		what = fmt.Sprintf("%d texts, the last ", texts)
	}
	_, err := fmt.Fprintf(a.Out, "%sdelivered at %d, by %s\n", what, at.position, at.node)
	return err
}

// castLines broadcasts a text line by line.
func castLines(ctx context.Context, a *console.App, f *Flags, r *parleyv1.BroadcastRequest, in io.Reader) error {
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
			return errors.New("parley broadcast: the standard input is empty, and there is no TEXT: nothing was sent")
		case err != nil && len(line) == 0:
			return delivered(a, f, at, texts)
		}
		r.Payload = []byte(strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r"))
		if at, err = f.send(ctx, r); err != nil {
			if failed, ok := errors.AsType[failedCall](err); ok {
				failed.error = errors.Join(lists.Of(eachOf(failed.error), func(one error) error {
					if texts == 0 && client.Unknown(one) {
						return fmt.Errorf("line 1: %w", one)
					}
					return wrong(texts, one)
				})...)
				return failed
			}
			return err
		}
	}
}
