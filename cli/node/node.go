// Package node implements "parley node", which runs a node of a cluster, and the commands that check one: "parley
// node verify" and "parley doctor".
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/console"
	"parley/cluster"
	"parley/cluster/cert"
	"parley/cluster/nodefile"
)

// Command is "parley node".
func Command(a *console.App) *cobra.Command {
	var config string
	var check, example, asJSON, attached, rejoin bool
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Run a node of a cluster",
		Long: "Node runs a node with its configuration file. The node joins its cluster, prints a line when " +
			"it has become a member, and runs until Ctrl-C or SIGTERM. It writes its log to the standard " +
			"error.\n\n" +
			"Every minute, and on SIGHUP, the node reads the certificates and the revocation list again. On " +
			"SIGUSR1, and when it fails, it writes the last events of its machines to flight.jsonl in its " +
			"data folder, for \"parley audit\".\n\n" +
			"With --check, the command does not start the node. It reports whether certificates, addresses, " +
			"and folders are in order.\n\n" +
			"The exit status is 0 after an orderly end. It is 1 if the node failed, for example because its " +
			"disk failed, or if --check found a problem. It is 2 if the node could not start, or the " +
			"configuration is wrong.",
		Example: "  parley node --example\n  parley node --config node.yaml --check\n  parley node --config node.yaml",
		Args:    console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if example {
				_, err := io.WriteString(a.Out, nodefile.Example)
				return err
			}
			file, err := readConfig(config)
			switch {
			case err != nil:
				return err
			case check && rejoin:
				return parley.FlagErrorf("rejoin", "it is not allowed with --check, which starts no node: omit one of them")
			case check:
				return checkFile(cmd.Context(), a, file, asJSON)
			case asJSON:
				return parley.FlagErrorf("json", "it needs --check: add that, or omit --json")
			}
			return run(cmd.Context(), a, file, attached, rejoin)
		},
	}
	cmd.Flags().StringVar(&config, "config", "node.yaml", "configuration `file` of the node")
	cmd.Flags().BoolVar(&check, "check", false, "check configuration, certificates, addresses, and folders, "+
		"and do not start the node")
	cmd.Flags().BoolVar(&example, "example", false, "print a configuration with all keys and their meaning")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings of --check as JSON")
	console.Prints(cmd.Flags(), "node-check", checkOutput{})
	cmd.Flags().BoolVar(&rejoin, "rejoin", false,
		"join as a new node, because the data folder is lost (use it for fewer than half of the nodes)")
	cmd.Flags().BoolVar(&attached, "attached", false,
		"exit when standard input closes, not on SIGINT (for supervisors)")
	cmd.AddCommand(verifyCommand(a))
	return cmd
}

// readConfig reads the file that --config names.
func readConfig(name string) (*nodefile.File, error) {
	file, err := nodefile.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = parley.FlagErrorf("config", "%w: \"parley node --example\" prints one", err)
	} else if _, placed := errors.AsType[*nodefile.Error](err); err != nil && !placed {
		err = parley.FlagErrorf("config", "%w", err)
	}
	return file, err
}

// checkOutput is the JSON output of "parley node --check".
type checkOutput struct {
	Findings []nodefile.Finding `json:"findings"`
}

// checkFile checks what a configuration refers to and prints the findings.
func checkFile(ctx context.Context, a *console.App, file *nodefile.File, asJSON bool) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	found, status := file.Check(ctx), console.Fine
	for _, f := range found {
		verdict := "ok"
		if f.Problem {
			verdict, status = "bad", console.Violated
		}
		if !asJSON {
			fmt.Fprintf(a.Out, "%-3s  %-12s  %s\n", verdict, f.Key, f.Text)
		}
	}
	if asJSON {
		return console.End(status, a.PrintJSON(checkOutput{found}))
	}
	return console.End(status, nil)
}

// broken is the reason why a node failed.
type broken struct{ error }

// run runs a node until a signal or a client ends it, or it fails.
func run(ctx context.Context, a *console.App, file *nodefile.File, attached, rejoin bool) error {
	c, err := file.Config()
	if err != nil {
		return err
	}
	signals := []os.Signal{syscall.SIGTERM, os.Interrupt}
	if attached {
		signals = signals[:1] // the parent process receives Ctrl-C as well, and ends this one
		signal.Ignore(os.Interrupt)
	}
	ctx, stop := signal.NotifyContext(ctx, signals...)
	defer stop()
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	defer signal.Stop(again)
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if attached {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			end(nil)
		}()
	}
	c.Log = newLog(file, a.Err)
	c.Rejoin = rejoin
	c.Broken = func(err error) { end(broken{err}) }
	for i := range c.Groups {
		c.Groups[i].Deliver = func(cluster.Delivery) {}
	}
	warn(c, file)
	if c.Listen, err = file.Open(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	serves, err := openServices(context.WithoutCancel(ctx), file)
	if err != nil {
		return errors.Join(err, c.Listen.Close())
	}
	defer serves.drop()
	joined := make(chan error, 1)
	var node *cluster.Node
	go func() {
		var err error
		node, err = cluster.Join(ctx, c)
		joined <- err
	}()
	select {
	case <-ctx.Done(): // while it waits for the others; the process is about to end
		return endOf(ctx)
	case err := <-joined:
		if err != nil && ctx.Err() != nil { // it failed, and has reported that
			return endOf(ctx)
		} else if err != nil {
			return notJoined(file.Path, err)
		}
	}
	serves.serve(node, c, end)
	fmt.Fprintf(a.Out, "node %s has joined cluster %s, at %s\n%s", file.Name, file.Cluster, file.Listen, serves.inWords())
	watchSignals(ctx, node, c, again)
	stop() // so that a second signal ends it immediately
	c.Log.Info("node is leaving the cluster")
	ended := node.Close()
	if ended != nil { // an error of its disk, not of its configuration
		ended = console.EndWith(console.Violated, ended)
	}
	return errors.Join(endOf(ctx), serves.close(), ended)
}

// notJoined rewords why a node could not join. A file that cannot be used is one of its data folder.
func notJoined(config string, err error) error {
	key := ""
	if errors.As(err, new(*fs.PathError)) {
		key = "data: "
	}
	return fmt.Errorf("%s: %s%s", config, key, strings.TrimPrefix(err.Error(), "cluster: "))
}

// watchSignals carries out what signals ask for until the node ends, including signals from before it was a member.
func watchSignals(ctx context.Context, node *cluster.Node, c cluster.Config, again <-chan os.Signal) {
	reload := time.NewTicker(time.Minute)
	defer reload.Stop()
	flight := make(chan os.Signal, 1)
	signal.Notify(flight, flightSignals...)
	defer signal.Stop(flight)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case what := <-flight:
			dumpFlight(node, c.Log)
			if what == syscall.SIGQUIT { // and then does what it does by default
				signal.Reset(syscall.SIGQUIT)
				raise(syscall.SIGQUIT)
			}
		case <-again:
			reloadCertificates(c, true)
		case <-reload.C:
			reloadCertificates(c, false)
		}
	}
}

// dumpFlight writes the last events of the node's machines to a file.
func dumpFlight(node *cluster.Node, log *slog.Logger) {
	file, err := node.DumpFlight()
	if err != nil {
		log.Error("last events cannot be written", "err", err)
		return
	}
	log.Info("last events are written", "file", file)
}

// warn logs what the operator should know about the configuration.
func warn(c cluster.Config, file *nodefile.File) {
	if c.Dir == "" {
		c.Log.Warn("no data folder is configured; once ended, this node must not start again under its name")
	}
	if file.Offset != 0 || file.Drift != 0 {
		c.Log.Warn("clock of this node is wrong on purpose (lab)", "offset", file.Offset, "drift_ppm", file.Drift)
	}
	if c.FaultInjection != nil {
		c.Log.Warn("this node lies on purpose (lab)", "behavior", c.FaultInjection.Traitor.Name)
	}
}

// endOf returns the exit status of a node that was ended or has failed.
func endOf(ctx context.Context) error {
	if errors.As(context.Cause(ctx), new(broken)) {
		return console.ExitError(console.Violated)
	}
	return nil
}

func newLog(file *nodefile.File, to io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: file.LogLevel}
	if file.LogJSON {
		return slog.New(slog.NewJSONHandler(to, o))
	}
	return slog.New(slog.NewTextHandler(to, o))
}

// reloadCertificates reads the certificates and the revocations again. It logs changes, and the result if asked is
// true.
func reloadCertificates(c cluster.Config, asked bool) {
	before := cert.Serial(c.Self.Certificate())
	err := errors.Join(c.Trust.Reload(), c.Self.Reload())
	own := c.Self.Certificate()
	switch {
	case err != nil:
		c.Log.Warn("certificates cannot be read; those in use stay", "err", err)
	case asked || cert.Serial(own) != before:
		c.Log.Info("certificates reloaded", "serial", cert.Serial(own), "until", own.NotAfter)
	}
}
