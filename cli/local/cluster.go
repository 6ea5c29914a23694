// Package local implements "parley cluster": clusters whose nodes are all processes on this computer.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/child"
	"parley/cli/client"
	"parley/cli/console"
)

// Command is "parley cluster".
func Command(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Run a local cluster, and manage the nodes of any cluster",
		Long: "A local cluster is a folder with a certificate authority, certificates, and a configuration " +
			"for each node. Each node is a process of its own: it runs \"parley node\". Use a local cluster " +
			"for trials and tests. The commands leave, drain, expel, and forget work on any cluster.",
		Example: "  parley cluster up -n 4\n  parley cluster up -n 3 --dir bank --durable\n  parley cluster down --dir bank",
		Args:    cobra.ArbitraryArgs, RunE: console.OneOf,
	}
	cmd.AddCommand(up(a), down(a), leave(a), drain(a), expel(a), forget(a))
	return cmd
}

// up is "parley cluster up".
func up(a *console.App) *cobra.Command {
	var p Plan
	var dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a local cluster and keep it running",
		Long: "Up creates the folder of a cluster, starts its nodes, and keeps them running until Ctrl-C or " +
			"\"parley cluster down\". If a node ends, up reports this and does not restart the node.\n\n" +
			"If the folder already has a cluster, up uses the configuration in the folder. A durable " +
			"cluster starts with its data. If the cluster is not durable, up removes the data, and the " +
			"nodes start from scratch. If the cluster is running already, up only prints its nodes. Without " +
			"--dir the folder is temporary: up removes it at the end, except after a failure of a node.\n\n" +
			"The exit status is 0 if the cluster ended in order or is running already, and 1 if a node " +
			"failed. It is 2 if a flag has a wrong value, or contradicts the folder. It is 3 if a node has " +
			"not joined after a minute.",
		Example: "  parley cluster up -n 4\n  parley cluster up -n 3 --dir bank --durable\n" +
			"  parley cluster up -n 7 -m 2 --traitor 3=twofaced,6=silent",
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := child.Allowed("parley cluster up", "a node starts no cluster"); err != nil {
				return err
			}
			if err := p.check(cmd.Flags().Changed("m")); err != nil {
				return err
			}
			ctx, stop := console.UntilSignal(cmd.Context()) // before there is a folder to remove
			defer stop()
			if dir != "" {
				if running, err := p.mayMake(ctx, dir, cmd.Flags().Changed); err != nil || running {
					if err == nil {
						err = printRunning(a, dir, asJSON)
					}
					return err
				}
				return run(ctx, a, dir, p, asJSON)
			}
			dir, err := os.MkdirTemp("", "parley-cluster-")
			if err != nil {
				return err
			}
			if err = run(ctx, a, dir, p, asJSON); errors.As(err, new(console.ExitError)) {
				return err // a node failed or did not join: its log is in the folder
			}
			return errors.Join(err, os.RemoveAll(dir))
		},
	}
	cmd.Flags().IntVarP(&p.N, "n", "n", 4, "number of `nodes`, 1 to 32")
	cmd.Flags().IntVarP(&p.M, "m", "m", 0, "number of `nodes` that may be faulty (default: as many as n > 3m allows)")
	cmd.Flags().Var(&p.Traitors, "traitor", "`node=behavior` of nodes that lie, as in 3=twofaced,6=silent")
	cmd.Flags().BoolVar(&p.Durable, "durable", false,
		"sync deliveries to disk before acknowledging them")
	cmd.Flags().DurationVar(&p.Round, "round", 0,
		"`duration` of a round of agreements, 10ms to 1h; a busy computer needs longer rounds (default: 100ms)")
	cmd.Flags().StringVar(&p.participant, "participant", "",
		"`address` of the service that carries out all nodes' parts of transactions, as in "+
			"http://127.0.0.1:8090")
	cmd.Flags().StringVar(&dir, "dir", "", "`folder` of the cluster (default: a temporary one)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the nodes as JSON when all have joined")
	console.Prints(cmd.Flags(), "cluster-up", upOutput{})
	console.Common(cmd.Flags(), "dir")
	return cmd
}

// mayMake reports whether the cluster in a folder is running. It returns an error if no cluster can be started there:
// the folder contains something else, or a cluster with other settings.
func (p *Plan) mayMake(ctx context.Context, dir string, changed func(flag string) bool) (running bool, err error) {
	if _, err := os.Stat(client.ConfigOf(dir, client.NodeName(0))); err != nil {
		entries, err := os.ReadDir(dir)
		if err == nil && len(entries) > 0 {
			return false, parley.FlagErrorf("dir", "%s has %s: a folder that \"parley cluster up\" has made, or an empty one, "+
				"was expected; delete what an \"up\" that was killed has left", dir, entries[0].Name())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, parley.FlagErrorf("dir", "%w", err)
		}
		return false, nil
	}
	there, err := planOf(dir)
	if err != nil {
		return false, err
	}
	for _, one := range []struct {
		flag      string
		want, has any
	}{
		{"n", p.N, there.N}, {"m", p.M, there.M}, {"durable", p.Durable, there.Durable}, {"round", p.Round, there.Round},
		{"traitor", fmt.Sprint(p.Traitors), fmt.Sprint(there.Traitors)}, {"participant", p.participant, there.participant},
	} {
		if changed(one.flag) && one.want != one.has {
			return false, parley.FlagErrorf(one.flag, "%v, but %s holds a cluster that keeps its configuration, with %v: "+
				"omit the flag, or delete %[2]s for a new cluster", one.want, dir, one.has)
		}
	}
	c, err := dialControl(ctx, dir)
	if err != nil {
		return false, nil
	}
	defer func() { _ = c.Close() }()
	return c.runs() == nil, nil
}

// defaultRound is the length of a round that a configuration without one has.
const defaultRound = 100 * time.Millisecond

// planOf returns the plan of the cluster in a folder, without the fields that no flag sets.
func planOf(dir string) (Plan, error) {
	nodes, err := Nodes(dir)
	if err != nil {
		return Plan{}, err
	}
	first := nodes[0].file
	p := Plan{
		N: len(nodes), M: first.M, Round: cmp.Or(first.Round, defaultRound),
		Durable: first.Durable, participant: first.Participant,
	}
	p.Traitors = make(map[string]string)
	for i, n := range nodes {
		if lab := n.file.Lab; lab != nil && lab.Traitor.Name != "" {
			p.Traitors[strconv.Itoa(i+1)] = lab.Traitor.Name
		}
	}
	return p, nil
}

// printRunning prints the nodes of a cluster that another process runs.
func printRunning(a *console.App, dir string, asJSON bool) error {
	nodes, err := Nodes(dir)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		n.State = "runs"
	}
	if asJSON {
		return printUp(a, dir, nodes, true)
	}
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(a.Out, "the cluster in %s runs already; \"parley cluster down --dir %s\" ends it\n", dir, dir)
	fmt.Fprintln(w, "node\taddress\tapi\tmetrics")
	for _, n := range nodes {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", n.Name, n.Address, n.API, n.Metrics)
	}
	return w.Flush()
}

// run starts the nodes of a cluster and waits for their end. If the context ends during the start, the folder is whole
// all the same, and there is no error.
func run(ctx context.Context, a *console.App, dir string, p Plan, asJSON bool) error {
	if _, err := os.Stat(client.ConfigOf(dir, client.NodeName(0))); err != nil {
		if err := p.Make(context.WithoutCancel(ctx), dir); err != nil {
			return parley.FlagErrorf("dir", "%w", err)
		}
	}
	nodes, err := Nodes(dir)
	if err != nil {
		return err
	}
	if err := renew(nodes); err != nil {
		return err
	}
	if err := writeCurl(dir, nodes); err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	closeControl, err := openControl(context.WithoutCancel(ctx), dir, end)
	if err != nil {
		return err
	}
	defer closeControl()
	defer child.LockThread()()
	in, err := Start(ctx, a, nodes)
	if ctx.Err() != nil {
		err = nil
	}
	if !in || printUp(a, dir, nodes, asJSON) != nil {
		end()
	}
	status := console.Violated
	switch well := AwaitEnded(ctx, a, nodes); {
	case errors.Is(err, console.ExitError(console.Unfinished)):
		status = console.Unfinished
	case err != nil || well:
		return err
	}
	a.Complain(status, fmt.Errorf("the logs of the nodes are in %s", dir))
	return console.ExitError(status)
}

// upOutput is the JSON output of "parley cluster up".
type upOutput struct {
	Dir   string  `json:"dir"`
	Nodes []*Node `json:"nodes"`
}

// printUp prints the nodes, and where their files are.
func printUp(a *console.App, dir string, nodes []*Node, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(upOutput{dir, nodes})
	}
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "node\tpid\taddress\tapi\tmetrics\tstate")
	for _, n := range nodes {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\n", n.Name, n.PID, n.Address, n.API, n.Metrics, n.State)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Out, "%s: the authority and all certificates; that of client admin may do everything\n"+
		"%s: a folder for each node, with its configuration, data and log\n"+
		"call it: curl -K %s https://%s/parley.v1.AdminService/Status -d '{}'\n"+
		"watch it: curl http://%s/metrics\n"+
		"Ctrl-C ends it, and so does: parley cluster down --dir %s\n",
		filepath.Join(dir, "certs"), filepath.Join(dir, "NODE"), curlFile(dir), nodes[0].API, nodes[0].Metrics, dir)
	return err
}

// down is "parley cluster down".
func down(a *console.App) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "down --dir DIR",
		Short: "End a local cluster",
		Long: "Down ends the cluster that \"parley cluster up\" runs in a folder. It returns\n" +
			"when all nodes have ended, after at most 45 s. It keeps the folder. The exit\n" +
			"status is 2 if no cluster runs there.",
		Example: "  parley cluster down --dir bank",
		Args:    console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return parley.FlagErrorf("dir", "it is missing: the folder of a running cluster was expected")
			}
			c, err := dialControl(cmd.Context(), dir)
			if err != nil {
				return parley.FlagErrorf("dir", "%w", err)
			}
			defer func() { _ = c.Close() }()
			if err := c.awaitEnd(); err != nil {
				return parley.FlagErrorf("dir", "the cluster in %s does not end: %w", dir, err)
			}
			_, err = fmt.Fprintf(a.Out, "the cluster in %s has ended\n", dir)
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "",
		"`folder` of the cluster (default: the environment variable "+client.DirVariable+")")
	console.Common(cmd.Flags(), "dir")
	return cmd
}
