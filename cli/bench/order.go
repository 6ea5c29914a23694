package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/console"
	"parley/cluster"
	"parley/internal/bench/order"
)

// orderHelp is the long help of "parley bench order".
const orderHelp = `Order measures ordered broadcast. It starts a cluster with all nodes in this process,
connected over loopback by mutual TLS. The phases of the measurement are:
  latl   latency of a single message that the first node sends
  latf   latency of a single message that the second node sends
  one    messages per second while one node sends
  many   messages per second while all nodes send
  open   latencies while one node sends at --rate, without waiting for deliveries
  openm  latencies while all nodes send at --rate, without waiting for deliveries
  kill   messages per second while the first node sends, before and after the last
         m nodes end, and the longest time without deliveries; only with --level byzantine

In the phases one and many, each sender keeps --window messages in flight. In the phases open
and openm, a latency counts from the time at which the message was due according to --rate.

The command prints the results. The line that begins with RESULT has one JSON object, for
programs that compare systems. The flags also work with one dash, as in -nodes 3. Run nothing
else on the computer during the measurement. The exit status is 0, or 130 after Ctrl-C.`

// orderCommand is "parley bench order".
func orderCommand(a *console.App) *cobra.Command {
	s := order.Spec{M: -1}
	var level, secured string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "order",
		Short: "Measure ordered broadcast between real nodes",
		Long:  orderHelp,
		Example: "  parley bench order --dur 100ms\n" +
			"  parley bench order --level byzantine --nodes 4 --dur 100ms --phases latl,one\n" +
			"  parley bench order --level byzantine --nodes 4 --silent 1 --dur 500ms --phases one\n" +
			"  parley bench order --phases open,openm --rate 20000 --dur 200ms",
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, release := console.UntilSignal(cmd.Context())
			defer release()
			if err := orderSpec(&s, level, secured); err != nil {
				return err
			}
			stop := a.Busy()
			r, err := order.Run(ctx, s)
			stop()
			var removed error
			if s.Dir != "" {
				removed = os.RemoveAll(s.Dir)
			}
			if ctx.Err() != nil {
				return console.End(console.Interrupted, removed)
			}
			if err = errors.Join(err, removed); err != nil {
				return fmt.Errorf("parley bench order: %w", err)
			}
			if asJSON {
				return a.PrintJSON(r)
			}
			return printOrder(a.Out, s, r)
		},
	}
	f := cmd.Flags()
	f.StringVar(&level, "level", "total", "level of the order: `total|byzantine`; total tolerates crashes, "+
		"byzantine tolerates lies")
	f.IntVar(&s.N, "nodes", 3, "number of `nodes`, 2 to 13")
	f.IntVarP(&s.M, "m", "m", -1, "number of `nodes` that may lie, with --level byzantine (default: the most "+
		"that n > 3m allows)")
	f.IntVar(&s.Silent, "silent", 0, "`number` of silent nodes, with --level byzantine")
	f.IntVar(&s.Size, "sizes", 64, "size of a message in `bytes`, 10 to 32768")
	f.IntVar(&s.Window, "window", 1024, "maximum `number` of messages that a sender has in flight")
	f.DurationVar(&s.Duration, "dur", 2*time.Second, "`duration` of each phase, up to 1h")
	f.StringSliceVar(&s.Phases, "phases", order.Usual,
		"`phases` to measure, separated by commas: "+strings.Join(order.Phases, "|"))
	f.IntVar(&s.Rate, "rate", 50_000, "`messages` per second of all senders together, in the phases open "+
		"and openm")
	f.StringVar(&s.Dir, "dir", "", "store messages durably in this `folder`, and remove the files at the "+
		"end (default: keep messages in memory)")
	f.StringVar(&secured, "tls", "on", "mutual TLS, always `on`")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	console.Prints(f, "bench-order", order.Result{})
	return cmd
}

// orderSpec completes and checks the specification of a measurement.
func orderSpec(s *order.Spec, level, secured string) (err error) {
	if secured != "on" {
		return parley.FlagErrorf("tls", "%q: allowed is on, because nodes always use mutual TLS", secured)
	}
	if s.Level, err = cluster.ParseLevel(level); err != nil || s.Level != cluster.Total && s.Level != cluster.Byzantine {
		return parley.FlagErrorf("level", "unknown level %q: allowed are total and byzantine", level)
	}
	switch {
	case s.Level == cluster.Total && s.M > 0:
		return parley.FlagErrorf("m", "%d: allowed with --level total is 0, because it tolerates no lies", s.M)
	case s.Level == cluster.Total:
		s.M = 0
	case s.M < 0:
		s.M = max(0, (s.N-1)/3)
	case s.N <= 3*s.M && s.N > 0:
		return parley.FlagErrorf("m",
			"%d of %d nodes may lie: allowed are 0 to %d, because n > 3m is necessary", s.M, s.N, (s.N-1)/3)
	}
	if err := s.Check(); err != nil {
		return err
	}
	if s.Dir != "" {
		if s.Dir, err = os.MkdirTemp(s.Dir, "order-"); err != nil {
			return parley.FlagErrorf("dir", "%w", err)
		}
	}
	return nil
}

// printOrder prints the measurements, first as text and then as key=value pairs.
func printOrder(w io.Writer, s order.Spec, r order.Result) error {
	kept := "in memory"
	if s.Dir != "" {
		kept = "durable"
	}
	fmt.Fprintf(w, "%s order, %d nodes, %d bytes, window %d, %s", s.Level, s.N, s.Size, s.Window, kept)
	if s.Level == cluster.Byzantine {
		fmt.Fprintf(w, ", m = %d, %d silent", s.M, s.Silent)
	}
	fmt.Fprintln(w)
	for _, one := range []struct {
		what string
		*order.Rate
	}{{"one sender", r.One}, {"all nodes sending", r.Many}} {
		if one.Rate != nil {
			fmt.Fprintf(w, "%-18s %8.0f messages/s, %.2f s of CPU a million, %s\n",
				one.what, one.PerSecond, one.CPU, sameOrder(one.Rate))
		}
	}
	for _, one := range []struct {
		what string
		*order.Latency
	}{{"from the first", r.First}, {"from the second", r.Second}} {
		if one.Latency != nil {
			fmt.Fprintf(w, "%-18s delivered by the sender after %.0f us (99 %%: %.0f), "+
				"by all after %.0f us (99 %%: %.0f), of %d\n",
				one.what, one.OwnP50, one.OwnP99, one.AllP50, one.AllP99, one.Count)
		}
	}
	for _, one := range []struct {
		what string
		*order.Open
	}{{"open, one sender", r.Open}, {"open, all sending", r.OpenMany}} {
		if o := one.Open; o != nil {
			fmt.Fprintf(w, "%-18s %8.0f messages/s of %.0f, by all after %.0f us (99 %%: %.0f, 99.9 %%: %.0f, most %.0f), "+
				"%.2f s of CPU a million%s\n", one.what, o.Got, o.Offered, o.All.P50, o.All.P99, o.All.P999, o.All.Most, o.CPU,
				map[bool]string{false: ", NOT ALL DELIVERED"}[o.Drained])
		}
	}
	if k := r.Kill; k != nil {
		fmt.Fprintf(w, "%-18s %8.0f messages/s before %d nodes ended, %.0f after, at most %.0f ms without deliveries, "+
			"then a lone message in %.0f us (99 %%: %.0f)\n", "ends", k.Before, s.M, k.After, k.Silent, k.Lone, k.Lone99)
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "RESULT %s\n", b)
	return err
}

func sameOrder(r *order.Rate) string {
	switch {
	case !r.Drained:
		return "NOT ALL DELIVERED"
	case !r.Same:
		return "IN DIFFERENT ORDERS"
	}
	return "one order everywhere"
}

// LongFlags gives the flags of "parley bench order" a second dash, because programs that compare systems write only
// one.
func LongFlags(args []string) []string {
	if len(args) < 2 || args[0] != "bench" || args[1] != "order" {
		return args
	}
	args = slices.Clone(args)
	flags := orderCommand(new(console.App)).Flags()
	for i, arg := range args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		known := name == "help" || len(name) > 1 && flags.Lookup(name) != nil
		if strings.HasPrefix(arg, "-") && known { // not a value such as -5s
			args[i] = "-" + arg
		}
	}
	return args
}
