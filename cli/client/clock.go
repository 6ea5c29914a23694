package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/console"
	"parley/cluster/api/parleyv1"
)

// Clock is "parley clock".
func Clock(a *console.App) *cobra.Command {
	c := clockCall{a: a}
	cmd := &cobra.Command{
		Use:   "clock",
		Short: "Show the time that the nodes agree on",
		Long: "The nodes of a cluster keep their clocks together, even if up to m nodes lie. The " +
			"algorithm is interactive convergence. Clock prints three values for each node: the reading " +
			"of its clock, the largest possible difference to the reading of any other correct node (the " +
			"column \"within\"), and how far the reading is ahead of the computer's clock. It changes " +
			"nothing.\n\n" +
			"After a start, the clocks need a few seconds until they are in step (synchronized). Clock " +
			"waits for that, but at most for --wait. Then it prints the readings, even if some clocks are " +
			"not in step. A node that lies may never get in step: name only the other nodes with --at, or " +
			"use --wait 0.\n\n" +
			"The exit status is 1 if a node does not answer or is not in step, 2 if the client lacks the " +
			"right to read, 3 if no node answers, and 130 after Ctrl-C.",
		Example: "  parley clock --dir bank\n  parley clock --wait 0 --json --dir bank",
		Args:    console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.wait < 0 {
				return parley.FlagErrorf("wait", "%v: a time from 0 on was expected, as in 10s", c.wait)
			}
			ctx, stop := console.UntilSignal(cmd.Context())
			defer stop()
			return c.run(ctx)
		},
	}
	c.Declare(cmd)
	console.Prints(cmd.Flags(), "clock", &parleyv1.NowResponse{})
	cmd.Flags().DurationVar(&c.wait, "wait", 10*time.Second,
		"how long to wait until the clocks are in step; 0: do not wait")
	return cmd
}

// clockCall is a call of "parley clock".
type clockCall struct {
	Flags
	a    *console.App
	wait time.Duration
}

// clockPoll is the time between two questions while clocks are not in step.
const clockPoll = 200 * time.Millisecond

// run asks the nodes until their clocks are in step, or for as long as --wait allows, and prints the last answers.
func (c *clockCall) run(ctx context.Context) error {
	began := time.Now()
	var waiting atomic.Pointer[string]
	done := c.a.Progress(time.Second, func() string {
		if text := waiting.Load(); text != nil {
			return fmt.Sprintf("%s, %.0f s of %v", *text, time.Since(began).Seconds(), c.wait)
		}
		return ""
	})
	defer done()
	for {
		nodes, answers, errs, err := AskAll(ctx, &c.Flags, everyNode, timeOf)
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return console.ExitError(console.Interrupted)
		}
		late := outOfStep(nodes, answers)
		left := c.wait - time.Since(began)
		if len(late) == 0 || left <= 0 {
			done()
			return c.print(nodes, answers, errs)
		}
		text := "waiting until the clock is in step at " + strings.Join(late, ", ")
		waiting.Store(&text)
		select {
		case <-ctx.Done():
		case <-time.After(min(clockPoll, left)):
		}
	}
}

// outOfStep returns the nodes that answer and whose clocks are not in step.
func outOfStep(nodes []Node, answers []*parleyv1.NowResponse) (names []string) {
	for i, r := range answers {
		if r != nil && !r.GetSynchronized() {
			names = append(names, nodes[i].Name)
		}
	}
	return names
}

// print prints the readings, and ends the command.
func (c *clockCall) print(nodes []Node, answers []*parleyv1.NowResponse, errs []error) error {
	var err error
	w := tabwriter.NewWriter(c.a.Out, 0, 8, 2, ' ', 0)
	some := slices.ContainsFunc(answers, func(r *parleyv1.NowResponse) bool { return r != nil })
	if !c.AsJSON && some {
		fmt.Fprintln(w, "node\ttime\twithin\tahead of its computer")
	}
	for i, r := range answers {
		switch {
		case r == nil:
		case c.AsJSON:
			err = errors.Join(err, printAnswer(c.a, nodes[i].Name, r))
		default:
			within := "not in step"
			if r.GetSynchronized() {
				within = short(r.GetBound())
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", nodes[i].Name, r.GetTime().AsTime().Format("2006-01-02 15:04:05.000000"),
				within, short(r.GetOffset()))
		}
	}
	if err := errors.Join(err, w.Flush()); err != nil {
		return err
	}
	return Report(c.a, Joined(errs))
}

// errNotInStep is the error of a node that has answered.
var errNotInStep = errors.New("its clock is not in step with the others")

// timeOf returns a node's reading of the common time. A node whose clock is not synchronized has both a reading and
// an error.
func timeOf(ctx context.Context, n Node) (*parleyv1.NowResponse, error) {
	r, err := n.Clock.Now(ctx, &parleyv1.NowRequest{})
	if err == nil && !r.GetSynchronized() {
		err = errNotInStep
	}
	return r, err
}
