// Command chaos runs five nodes under constant load and injects faults. It kills and pauses processes, cuts and
// delays the links between them, and fills, slows and empties their disks. Then it reports whether any acknowledged
// operation was lost, whether all nodes delivered in one order, whether the answers were linearizable, and how long
// recovery took after each fault.
//
// One fault is a liar: a test process of package cluster replaces a node. The flag -liar names its program. The liar
// has the node's key and folder, and sends wrong values in some fields of every kind of message of groups and tables.
// While the liar is active, requests have unknown outcomes, and deliveries may differ. So the judged load stops
// before the liar starts, and the liar starts only when every earlier request is answered and delivered everywhere.
// While the liar is active, the other nodes get requests on other keys. The command does not judge these requests.
//
// After the liar is killed, the other nodes must recover within the time of -heal. Then the replaced node restarts
// with an empty folder, and all nodes must recover within twice the time of -heal. After a liar, nodes may number
// their deliveries differently. Nodes that differ from most others then rejoin with empty folders, and the command
// reports this. After that the judged load continues.
//
// All operations that were acknowledged before the liar started, or after it was killed, must still be there.
// Deliveries must be in one order up to the start of the liar. After the recovery the command broadcasts a special
// payload, the fence. From the fence on, deliveries must again be in one order.
//
// Each node is a separate process, with its own network namespace and its own disk. This needs root. With -bare,
// nodes are plain processes on the loopback interface. These need no privileges, but can only be killed and paused.
//
// With -byzantine, four nodes have a group of level Byzantine, and nothing rests: while one of them lies, the correct
// nodes broadcast all the time, and are killed, stopped and restarted: one, several, and all at once. Everything that
// they deliver is judged, also what the node that lies has broadcast: all of them must deliver the same at the same
// positions. In the last quarter of the run the node that lied restarts as a correct node with an empty disk. Then
// nodes lose their disks, one at a time. Before that a lost disk would be a second fault, which four nodes do not
// tolerate. These runs are always on the loopback interface.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"parley/internal/must"
)

// options are the options of a run.
type options struct {
	long time.Duration
	seed uint64
	only string
	heal time.Duration
	bare bool
	keep bool
	soak bool
	// byzantine means four nodes, one of which lies
	byzantine bool
	pace      time.Duration // of each client; 0: 25 ms
	binary    string
	liar      string // the test binary of package cluster; "": no liar
}

func main() { os.Exit(chaos(os.Args[1:], os.Stdout, os.Stderr)) }

// chaos is the program.
func chaos(args []string, out, errOut io.Writer) (status int) {
	var o options
	list := false
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.SetOutput(errOut)
	f.DurationVar(&o.long, "for", 4*time.Minute, "how `long` to run")
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()%1e6), "what faults and loads are drawn from")
	f.DurationVar(&o.heal, "heal", 10*time.Second, "how `long` it may take after a harm until all is well")
	f.StringVar(&o.only, "only", "", "the kinds of faults to use, with commas between")
	f.BoolVar(&o.bare, "bare", false, "plain processes on the loopback interface, which need no privileges")
	f.BoolVar(&o.keep, "keep", false, "leave the folder with logs and data behind; it stays if the run fails, too")
	f.BoolVar(&o.byzantine, "byzantine", false, "four nodes with a byzantine group, one of which lies; needs -liar")
	f.BoolVar(&o.soak, "soak", false, "a steady load with few faults, and watch memory, descriptors and goroutines")
	f.StringVar(&o.binary, "parley", "", "the command, a `file`; by default it is built")
	f.StringVar(&o.liar, "liar", "", "the test of package cluster, a `file`: without it there is no liar")
	f.BoolVar(&list, "list", false, "list the kinds of faults")
	if err := f.Parse(args); err != nil {
		return 2
	}
	if list {
		printFaults(out, kindsOf(o))
		return 0
	}
	if f.NArg() > 0 {
		fmt.Fprintf(errOut, "chaos: %q: there are no arguments, only flags\n", f.Arg(0))
		return 2
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"for", o.long}, {"heal", o.heal}} {
		if f.value <= 0 {
			fmt.Fprintf(errOut, "chaos: -%s: %v: a time above 0 was expected\n", f.name, f.value)
			return 2
		}
	}
	if o.byzantine && (o.liar == "" || o.soak) {
		fmt.Fprintln(errOut, "chaos: -byzantine: it needs -liar, and excludes -soak")
		return 2
	}
	o.bare = o.bare || o.byzantine
	kinds, err := choose(o)
	if err != nil {
		fmt.Fprintf(errOut, "chaos: -only: %v\n", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if !o.bare {
		status, done, err := enterSandbox(ctx)
		if err != nil {
			fmt.Fprintf(errOut, "chaos: %v\n", err)
			return 2
		}
		if done {
			return status
		}
	}
	if err := do(ctx, out, o, kinds); err != nil {
		fmt.Fprintf(errOut, "chaos: %v\n", err)
		return 1
	}
	return 0
}

// do makes a run in a folder of its own.
func do(ctx context.Context, out io.Writer, o options, kinds []fault) (err error) {
	defer must.Return(&err)
	dir := must.Get(os.MkdirTemp("", "parley-chaos-"))
	if o.binary == "" {
		o.binary = must.Get(build(ctx, dir))
	}
	r, err := setUp(ctx, out, dir, o)
	switch {
	case err != nil:
	case o.soak:
		err = (&soak{run: r}).do(ctx, o.long)
	case o.byzantine:
		err = (&byzantine{run: r}).do(ctx, o, kinds)
	default:
		err = r.chaos(ctx, o, kinds)
	}
	err = errors.Join(err, r.tearDown())
	if err != nil || o.keep {
		fmt.Fprintf(out, "the nodes' folders are kept in %s\n", dir)
		return err
	}
	return os.RemoveAll(dir)
}

// build compiles the command.
func build(ctx context.Context, dir string) (string, error) {
	file := filepath.Join(dir, "parley")
	b, err := exec.CommandContext(ctx, "go", "build", "-o", file, "./cmd/parley").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("the command can not be built: %w: %s", err, b)
	}
	return file, nil
}

// kindsOf returns the kinds of faults of a run of this form.
func kindsOf(o options) []fault {
	if o.byzantine {
		during, after := byzantineFaults()
		return append(during, after...)
	}
	return faults()
}

// choose returns the kinds of faults that a run may use.
func choose(o options) (out []fault, err error) {
	names := make(map[string]fault)
	var known []string
	for _, f := range kindsOf(o) {
		if (f.bare || !o.bare) && (!f.lies() || o.liar != "") {
			names[f.name] = f
			known = append(known, f.name)
			out = append(out, f)
		}
	}
	if o.only == "" {
		return out, nil
	}
	out = nil
	for name := range strings.SplitSeq(o.only, ",") {
		f, is := names[name]
		switch {
		case !is && name == liarName && o.liar == "":
			err = errors.Join(err, fmt.Errorf("%q: it needs -liar", name))
		case !is:
			err = errors.Join(err, fmt.Errorf("%q: allowed are %s", name, strings.Join(known, ", ")))
		}
		out = append(out, f)
	}
	return out, err
}

func printFaults(out io.Writer, list []fault) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, f := range list {
		where := ""
		if f.bare {
			where = "bare"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.name, where, f.what)
	}
	_ = w.Flush()
}
