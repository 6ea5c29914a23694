// Package demo implements "parley demo": a cluster that agrees while one node lies, and that broadcasts in total
// order after one node was killed.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/child"
	"parley/cli/client"
	"parley/cli/console"
	"parley/cli/local"
	"parley/internal/draw/prose"
	"parley/internal/input"
	"parley/internal/naming"
)

// Command is "parley demo".
func Command(a *console.App) *cobra.Command {
	var d demonstration
	var width int
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch four processes agree although one of them lies",
		Long: "Demo starts a cluster of four processes on this computer, connected by mutual TLS. One of " +
			"the processes lies. The processes agree on a value, and demo shows every message, as the " +
			"traces of the processes recorded it. Then the processes broadcast in total order, and " +
			"meanwhile demo kills one of the processes. After that you can call the cluster, until you " +
			"press Ctrl-C. Then demo removes everything.\n\n" +
			"The exit status is 0 if all promises held, 1 if one broke or a process failed, and 130 if you " +
			"interrupt demo before it has shown everything.",
		Example: "  parley demo --once",
		Args:    console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := child.Allowed("parley demo", "a node starts no cluster"); err != nil {
				return err
			}
			if width < 0 {
				return parley.FlagErrorf("width", "%d: a number of columns from 20 on was expected, or 0 for the terminal's", width)
			}
			d.App, d.width = a, a.Width(width)
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&d.once, "once", false, "remove everything and exit as soon as everything has been "+
		"shown")
	cmd.Flags().IntVar(&width, "width", 0, "fold text to this many `columns`, 20 or more (default: the "+
		"terminal's)")
	console.Common(cmd.Flags(), "width")
	return cmd
}

// demonstration is a running demonstration.
type demonstration struct {
	*console.App
	once   bool
	width  int
	dir    string
	nodes  []*local.Node
	killed *local.Node
	// delivered is how many messages the survivors have delivered, all of which the demonstration shows.
	delivered int
}

// traitor is the index of the node that lies, and doomed that of the node that is killed.
const (
	traitor = 2
	doomed  = 3
)

// longRound is the length of a round. A round ends early when all have sent, and a busy computer may delay a process
// by 1/5 of it.
const longRound = 400 * time.Millisecond

// run starts the cluster, shows the demonstration, and ends the cluster.
func (d *demonstration) run(ctx context.Context) (err error) {
	ctx, stop := console.UntilSignal(ctx)
	defer stop()
	ctx, end := context.WithCancel(ctx)
	defer end()
	if d.dir, err = os.MkdirTemp("", "parley-demo-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.dir)) }()
	if err := d.introduce(); err != nil { // before the nodes start, which takes a while
		return err
	}
	began := time.Now()
	p := local.Plan{N: 4, M: 1, Traces: true, Round: longRound, Traitors: map[string]string{"3": "twofaced"}}
	if err := p.Make(context.WithoutCancel(ctx), d.dir); err != nil {
		return err
	}
	if d.nodes, err = local.Nodes(d.dir); err != nil {
		return err
	}
	defer child.LockThread()()
	defer d.end(end)
	switch in, err := local.Start(ctx, d.App, d.nodes); {
	case err != nil && ctx.Err() == nil:
		return err
	case !in:
		return d.cut(ctx)
	}
	if err := d.show(ctx, time.Since(began)); err != nil {
		if ctx.Err() != nil {
			return d.cut(ctx)
		}
		return err
	}
	if d.once {
		return nil
	}
	select {
	case <-ctx.Done():
	case <-d.ended():
	}
	return nil
}

// cut returns how a demonstration ends that could not be shown. If the user interrupted it, it reports nothing more.
func (d *demonstration) cut(ctx context.Context) error {
	if ctx.Err() != nil {
		return console.ExitError(console.Interrupted)
	}
	for _, n := range d.nodes {
		select {
		case <-n.Ended():
			n.PrintEnd(d.App)
		default:
		}
	}
	return console.ExitError(console.Violated)
}

// ended returns a channel that is closed when no node runs any more.
func (d *demonstration) ended() <-chan struct{} {
	all := make(chan struct{})
	go func() {
		for _, n := range d.nodes {
			<-n.Ended()
		}
		close(all)
	}()
	return all
}

// end ends the nodes and waits for them.
func (d *demonstration) end(end func()) {
	end()
	left := slices.DeleteFunc(slices.Clone(d.nodes), func(n *local.Node) bool { return n == d.killed })
	ended, done := context.WithCancel(context.Background())
	done()
	local.AwaitEnded(ended, d.App, left)
}

// show shows the parts in their order.
func (d *demonstration) show(ctx context.Context, after time.Duration) error {
	if err := d.table(after); err != nil {
		return err
	}
	calls := client.Flags{Dir: d.dir, As: "admin", Timeout: 30 * time.Second}
	clients, err := calls.Open()
	if err != nil {
		return err
	}
	defer client.HangUp(clients)
	if err := d.agreement(ctx, clients[0]); err != nil {
		return err
	}
	if err := d.order(ctx, clients); err != nil {
		return err
	}
	return d.next()
}

// introduce describes the cluster.
func (d *demonstration) introduce() error {
	return d.say("Four processes, one cluster", "Four processes run on this computer. Each has a certificate, "+
		"and every two of them are connected by mutual TLS. The cluster tolerates one faulty process. P3 is "+
		"faulty: it sends one value to P1 and P2, and another value to P4.")
}

// table lists the nodes.
func (d *demonstration) table(after time.Duration) error {
	w := tabwriter.NewWriter(d.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "\tname\tprocess\tlistens at\tserves clients at")
	for i, n := range d.nodes {
		name := naming.Article.Full(parley.ID(i))
		if i == traitor {
			name += " ✗"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", name, n.Name, n.PID, n.Address, n.API)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(d.Out, "created, started, and joined in %.1f s\n\n", after.Seconds())
	return err
}

// say writes a heading and a text below it.
func (d *demonstration) say(title, text string) error {
	line := strings.Repeat("═", len([]rune(title)))
	_, err := fmt.Fprintf(d.Out, "%s\n%s\n\n%s\n\n", title, line, prose.Fold(text, d.width))
	return err
}

// itself returns how a shell calls this command: "parley" if the shell finds it, and otherwise with go run from the
// source.
func itself() string {
	if _, err := exec.LookPath("parley"); err == nil {
		return "parley"
	}
	return "go run ./cmd/parley"
}

// next says what to try with the cluster.
func (d *demonstration) next() error {
	if d.once {
		_, err := io.WriteString(d.Out, prose.Fold("All processes exit now, and demo removes their folder. "+
			"Without --once, the cluster keeps running, so that you can call it.", d.width)+"\n")
		return err
	}
	parley, at := itself(), " --dir "+input.Quote(d.dir)
	all := d.delivered + 1 // with hello
	for _, part := range []string{
		prose.Fold("The cluster keeps running. Three of four processes are a majority, so broadcast in total order "+
			"continues. Try, in another terminal:", d.width),
		"  " + parley + " broadcast " + group + " hello" + at,
		fmt.Sprintf("  %s subscribe %s --from 1 --count %d", parley, group, all) + at,
		prose.Fold("P4 has crashed and P3 lies: two faulty processes are more than m = 1, so agreements are not "+
			"promised until P4 has rejoined. This starts P4 again, until Ctrl-C in its terminal:", d.width),
		"  " + parley + " node --config " + input.Quote(d.killed.Config),
		prose.Fold("A few seconds later, the processes agree again, although P3 lies:", d.width),
		"  " + parley + " agree retreat --evidence" + at,
		prose.Fold("Ctrl-C ends the cluster and removes everything.", d.width),
	} {
		if _, err := fmt.Fprintln(d.Out, part); err != nil {
			return err
		}
	}
	return nil
}
