package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/child"
	"parley/cli/client"
	"parley/cli/console"
	"parley/cluster/nodefile"
)

// clusterCommand is "parley cluster".
func clusterCommand(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Run a cluster of processes on this machine",
		Long: "A local cluster is a folder with an authority, certificates and the configuration of each node,\n" +
			"and a process for each node, as \"parley node\" runs it. It is for trying things out.",
		Example: "  parley cluster up -n 4\n  parley cluster up -n 3 --dir bank --durable\n  parley cluster down --dir bank",
		Args:    cobra.ArbitraryArgs, RunE: console.OneOf,
	}
	cmd.AddCommand(clusterUp(a), clusterDown(a), clusterLeave(a), clusterDrain(a), clusterExpel(a),
		clusterForget(a))
	return cmd
}

// clusterUp is "parley cluster up".
func clusterUp(a *console.App) *cobra.Command {
	var p localPlan
	var dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a local cluster and keep it running",
		Long: "Up makes a folder for a cluster, starts its nodes, and keeps them running until it is interrupted or\n" +
			"\"parley cluster down\" ends it. A node that ends is told of, and not started again. A folder that\n" +
			"an earlier up has made is started from again: with the configuration that it has, and with the data\n" +
			"if it is durable; without --durable the data of the nodes is removed, and they begin anew. Without\n" +
			"--dir it is a temporary folder, and removed unless a node failed. The exit status is 1 if one did.\n" +
			"If the cluster in the folder runs already, up prints its nodes and ends with status 0.",
		Example: "  parley cluster up -n 4\n  parley cluster up -n 3 --dir bank --durable\n" +
			"  parley cluster up -n 7 -m 2 --traitor 3=twofaced,6=silent",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := child.Allowed("parley cluster up", "a node starts no cluster"); err != nil {
				return err
			}
			if err := p.check(cmd.Flags().Changed("m")); err != nil {
				return err
			}
			if dir != "" {
				if running, err := p.mayMake(cmd.Context(), dir, cmd.Flags().Changed); err != nil || running {
					if err == nil {
						err = printRunning(a, dir, asJSON)
					}
					return err
				}
				return runCluster(cmd.Context(), a, dir, p, asJSON)
			}
			dir, err := os.MkdirTemp("", "parley-cluster-")
			if err != nil {
				return err
			}
			if err := runCluster(cmd.Context(), a, dir, p, asJSON); err != nil {
				return err
			}
			return os.RemoveAll(dir)
		},
	}
	cmd.Flags().IntVarP(&p.n, "n", "n", 4, "number of `nodes`")
	cmd.Flags().IntVarP(&p.m, "m", "m", 0, "how many `nodes` may lie (default: as many as n > 3m allows)")
	cmd.Flags().StringToStringVar(&p.traitors, "traitor", nil, "nodes that lie, and how, as in `3=twofaced`")
	cmd.Flags().BoolVar(&p.durable, "durable", false,
		"have on the disk what is delivered before anybody is told, except in the group byzantine, which is in memory")
	cmd.Flags().StringVar(&p.participant, "participant", "",
		"the `address` of a service, as in http://127.0.0.1:8090, that does all nodes' parts of transactions")
	cmd.Flags().StringVar(&dir, "dir", "", "the `folder` of the cluster (default: a temporary one)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the nodes as JSON when all are in")
	return cmd
}

// mayMake tells whether the cluster in a folder runs, and why none can be started there:
// something else is in there, or a cluster that is not the one that is asked for.
func (p *localPlan) mayMake(ctx context.Context, dir string, changed func(flag string) bool) (running bool, err error) {
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
		{"n", p.n, there.n}, {"m", p.m, there.m}, {"durable", p.durable, there.durable},
		{"traitor", fmt.Sprint(p.traitors), fmt.Sprint(there.traitors)}, {"participant", p.participant, there.participant},
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

// planOf is the plan of the cluster in a folder, as far as flags say it.
func planOf(dir string) (localPlan, error) {
	first, err := nodefile.Read(client.ConfigOf(dir, client.NodeName(0)))
	if err != nil {
		return localPlan{}, err
	}
	p := localPlan{n: len(first.Members), m: first.M, durable: first.Durable, participant: first.Participant}
	p.traitors = make(map[string]string)
	for i, m := range first.Members {
		f, err := nodefile.Read(client.ConfigOf(dir, m.Name))
		if err != nil {
			return localPlan{}, err
		}
		if f.Lab != nil && f.Lab.Traitor.Name != "" {
			p.traitors[strconv.Itoa(i+1)] = f.Lab.Traitor.Name
		}
	}
	return p, nil
}

// printRunning prints the nodes of a cluster that another process runs.
func printRunning(a *console.App, dir string, asJSON bool) error {
	nodes, err := localNodes(dir)
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

// localNode is a node of a local cluster.
type localNode struct {
	Name    string `json:"name"`
	PID     int    `json:"pid"`
	Address string `json:"address"`
	API     string `json:"api"`
	Metrics string `json:"metrics,omitempty"`
	State   string `json:"state"`
	Config  string `json:"config"` // files
	Log     string `json:"log"`

	in    chan struct{} // closed when it says that it is
	ended chan struct{} // closed when it has
	state *os.ProcessState
}

// runCluster starts the nodes of a cluster and waits for the end.
func runCluster(ctx context.Context, a *console.App, dir string, p localPlan, asJSON bool) error {
	if _, err := os.Stat(client.ConfigOf(dir, client.NodeName(0))); err != nil {
		if err := p.make(ctx, dir); err != nil {
			return err
		}
	}
	nodes, err := localNodes(dir)
	if err != nil {
		return err
	}
	if err := renew(nodes); err != nil {
		return err
	}
	if err := writeCurl(dir, nodes); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, end := context.WithCancel(ctx)
	defer end()
	closeControl, err := openControl(ctx, dir, end)
	if err != nil {
		return err
	}
	defer closeControl()
	defer child.LockThread()()
	in, err := startNodes(ctx, a, nodes)
	if !in || printUp(a, dir, nodes, asJSON) != nil {
		end()
	}
	if well := awaitEnded(ctx, a, nodes); err == nil && !well {
		fmt.Fprintf(a.Err, "parley: what is left is in %s\n", dir)
		return console.ExitError(console.Violated)
	}
	return err
}

// localNodes are the nodes of which the configurations are in the folder.
func localNodes(dir string) ([]*localNode, error) {
	first, err := nodefile.Read(client.ConfigOf(dir, client.NodeName(0)))
	if err != nil {
		return nil, err
	}
	var nodes []*localNode
	for _, m := range first.Members {
		n := &localNode{
			Name: m.Name, Address: m.Address, Config: client.ConfigOf(dir, m.Name), Log: filepath.Join(dir, m.Name, "log"),
			in: make(chan struct{}), ended: make(chan struct{}),
		}
		f, err := nodefile.Read(n.Config)
		if err != nil {
			return nil, err
		}
		n.API, n.Metrics = f.API, f.Metrics
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// renew removes the data of nodes that are not durable: nothing outlives the end of all, and
// they begin from nothing. What lies elsewhere is not ours to remove.
func renew(nodes []*localNode) error {
	for _, n := range nodes {
		f, err := nodefile.Read(n.Config)
		if err != nil {
			return err
		}
		if f.Data == "" || f.Durable {
			continue
		}
		data, own := f.Folder(f.Data), filepath.Dir(n.Config)
		if in, err := filepath.Rel(own, data); err != nil || !filepath.IsLocal(in) || in == "." {
			return fmt.Errorf("%s: data: %s: %s is not durable, and begins anew each time: a folder in %s was expected",
				n.Config, f.Data, n.Name, own)
		}
		if err := os.RemoveAll(data); err != nil {
			return err
		}
	}
	return nil
}

// start starts the process of a node, which ends with the context, and with this process,
// and then sends to gone.
func (n *localNode) start(ctx context.Context, gone chan<- struct{}) error {
	cmd, err := child.Command(ctx, n.Name, "node", "--attached", "--config", n.Config)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(n.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = &announced{in: n.in, log: log}, log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return errors.Join(err, log.Close())
	}
	cmd.Cancel, cmd.WaitDelay = stdin.Close, 20*time.Second
	if err := cmd.Start(); err != nil {
		return errors.Join(err, log.Close())
	}
	n.PID, n.State = cmd.Process.Pid, "starts"
	go func() {
		_ = cmd.Wait() // an error of the context, if it has ended; the state tells
		n.state = cmd.ProcessState
		_ = log.Close()
		close(n.ended)
		gone <- struct{}{}
	}()
	return nil
}

// announced is where the output of a node goes: its first line says that it is in.
type announced struct {
	once sync.Once
	in   chan struct{}
	log  io.Writer
}

func (w *announced) Write(b []byte) (int, error) {
	w.once.Do(func() { close(w.in) })
	return w.log.Write(b)
}

// startNodes starts the processes of nodes, which end with the context, and waits until all are in
// the cluster. It returns false if one of them has ended or is not in after a minute, or the context has
// ended. The calling goroutine must be locked to its thread.
func startNodes(ctx context.Context, a *console.App, nodes []*localNode) (in bool, err error) {
	gone := make(chan struct{}, len(nodes))
	for _, n := range nodes {
		if err := n.start(ctx, gone); err != nil {
			return false, err
		}
	}
	late := time.After(time.Minute)
	for _, n := range nodes {
		select {
		case <-n.in:
			n.State = "in"
		case <-gone:
			return false, nil
		case <-ctx.Done():
			return false, nil
		case <-late:
			fmt.Fprintf(a.Err, "parley: %s is not in after a minute: see %s\n", n.Name, n.Log)
			return false, nil
		}
	}
	return true, nil
}

// awaitEnded waits until all nodes have ended, says of those that did so by themselves, and
// tells whether all ended well.
func awaitEnded(ctx context.Context, a *console.App, nodes []*localNode) bool {
	var mu sync.Mutex
	var all sync.WaitGroup
	well := true
	for _, n := range nodes {
		if n.PID == 0 {
			continue
		}
		all.Go(func() {
			<-n.ended
			mu.Lock()
			defer mu.Unlock()
			if ctx.Err() == nil || !n.state.Success() {
				well = false
				n.printEnd(a)
			}
		})
	}
	all.Wait()
	return well
}

// hasEnded is closed when the process of the node has ended.
func (n *localNode) hasEnded() <-chan struct{} { return n.ended }

// printEnd says how the process of the node has ended, and why.
func (n *localNode) printEnd(a *console.App) {
	fmt.Fprintf(a.Err, "parley: %s has ended: %v: %s\n", n.Name, n.state, lastWords(n.Log))
}

// lastWords is the last line of a log that says what went wrong, or else its last line, behind the name of the file.
func lastWords(file string) string {
	b, _ := os.ReadFile(file) // what can not be read says nothing
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	for _, line := range slices.Backward(lines) {
		if strings.HasPrefix(line, "parley: ") || strings.Contains(line, "level=ERROR") ||
			strings.Contains(line, `"level":"ERROR"`) {
			return file + " says: " + line
		}
	}
	return file + " ends with: " + lines[len(lines)-1]
}

// printUp prints who is there, and where things are.
func printUp(a *console.App, dir string, nodes []*localNode, asJSON bool) error {
	if asJSON {
		return a.PrintJSON(struct {
			Dir   string       `json:"dir"`
			Nodes []*localNode `json:"nodes"`
		}{dir, nodes})
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

// clusterDown is "parley cluster down".
func clusterDown(a *console.App) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:     "down --dir DIR",
		Short:   "End a local cluster",
		Long:    "Down ends the cluster that \"parley cluster up\" runs in a folder, and returns when it has ended.",
		Example: "  parley cluster down --dir bank",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return parley.FlagErrorf("dir", "it is missing: the folder that \"parley cluster up\" named was expected")
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
	cmd.Flags().StringVar(&dir, "dir", os.Getenv(client.DirVariable),
		"the `folder` of the cluster (default: "+client.DirVariable+" of the environment)")
	return cmd
}
