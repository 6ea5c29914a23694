package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"parley/cluster/api/client"
	"parley/cluster/cert"
	"parley/cluster/nodefile"
)

// clientFlags say which nodes a client calls, and as whom.
type clientFlags struct {
	dir          string
	at           []string
	certificates string
	as           string
	timeout      time.Duration
	asJSON       bool
}

// dirVariable names the variable of the environment that stands for --dir.
const dirVariable = "PARLEY_DIR"

// declare adds the flags to a command.
func (c *clientFlags) declare(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.dir, "dir", os.Getenv(dirVariable),
		"the `folder` of a cluster that \"parley cluster up\" runs (default: "+dirVariable+" of the environment)")
	f.StringSliceVar(&c.at, "at", nil, "the nodes to call: with --dir by name (default: all), else by HOST:PORT")
	f.StringVar(&c.certificates, "certificates", "", "the `folder` with ca.pem, client-NAME.pem and client-NAME.key")
	f.StringVar(&c.as, "as", "admin", "the `name` of the client whose certificate is used")
	f.DurationVar(&c.timeout, "timeout", 10*time.Second, "how long to wait for an answer")
	f.BoolVar(&c.asJSON, "json", false, "print JSON")
}

// calledNode is a node that can be called.
type calledNode struct {
	name    string // as its configuration, or else the command line, calls it
	address string
	*client.Client
}

// open returns the nodes to call, with nothing connected yet.
func (c *clientFlags) open() ([]calledNode, error) {
	if c.timeout <= 0 {
		return nil, badFlag("timeout", "%v: a time above 0 was expected", c.timeout)
	}
	certificates := c.certificates
	var nodes []calledNode
	switch {
	case c.dir == "" && len(c.at) == 0:
		return nil, badFlag("dir", "which cluster is meant? --dir names the folder of a local one, --at the nodes of any")
	case c.dir == "":
		for _, at := range c.at {
			if u, err := url.Parse("https://" + at); err != nil || u.Port() == "" || u.Host != at {
				return nil, badFlag("at", "%q: HOST:PORT was expected, as in localhost:7101", at)
			}
			nodes = append(nodes, calledNode{name: at, address: at})
		}
		if certificates == "" {
			return nil, badFlag("certificates", "with --at and without --dir it has to be given")
		}
	default:
		local, err := c.local()
		if err != nil {
			return nil, err
		}
		nodes = local
		if certificates == "" {
			certificates = filepath.Join(c.dir, "certs")
		}
	}
	self, err := cert.LoadClient(certificates, c.as)
	if err != nil {
		return nil, badFlag("as", "%w", err)
	}
	trust, err := cert.LoadTrust(certificates, nil)
	if err != nil {
		return nil, badFlag("certificates", "%w", err)
	}
	for i, n := range nodes {
		config := client.Config{Self: self, Trust: trust, Address: n.address}
		if c.dir != "" {
			config.Node = n.name
		}
		nodes[i].Client = client.New(config)
	}
	return nodes, nil
}

// local finds the nodes of a local cluster.
func (c *clientFlags) local() ([]calledNode, error) {
	first, err := nodefile.Read(configOf(c.dir, nodeName(0)))
	if err != nil {
		return nil, badFlag("dir", "%w: the folder of a cluster was expected, as \"parley cluster up --dir\" makes it", err)
	}
	var names []string
	for _, m := range first.Members {
		names = append(names, m.Name)
	}
	for _, name := range c.at {
		if !slices.Contains(names, name) {
			return nil, badFlag("at", "%q: allowed are %s", name, strings.Join(names, ", "))
		}
	}
	if len(c.at) > 0 {
		names = c.at
	}
	var nodes []calledNode
	for _, name := range names {
		f, err := nodefile.Read(configOf(c.dir, name))
		if err != nil {
			return nil, badFlag("dir", "%w", err)
		}
		nodes = append(nodes, calledNode{name: name, address: f.API})
	}
	return nodes, nil
}

// first calls nodes one after the other until one answers: the next only if nothing was
// done at the last one, so that nothing is done twice.
func (c *clientFlags) first(ctx context.Context, call func(context.Context, calledNode) error) error {
	nodes, err := c.open()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var errs []error
	for _, n := range nodes {
		err := call(ctx, n)
		if err == nil {
			return nil
		}
		errs = append(errs, said(n, err))
		if !client.Elsewhere(err) || client.Unknown(err) {
			break
		}
	}
	return failedCall{errors.Join(errs...)}
}

// all calls all nodes at once, and returns their errors by node.
func all(ctx context.Context, nodes []calledNode, call func(context.Context, int, calledNode) error) []error {
	errs := make([]error, len(nodes))
	var calls sync.WaitGroup
	for i, n := range nodes {
		calls.Go(func() {
			if err := call(ctx, i, n); err != nil {
				errs[i] = said(n, err)
			}
		})
	}
	calls.Wait()
	return errs
}

// said is what a node answered in place of what it was asked for, in words.
func said(n calledNode, err error) error {
	var wrong *connect.Error
	if !errors.As(err, &wrong) {
		return fmt.Errorf("%s: %w", n.name, err)
	}
	outcome := ""
	if client.Unknown(err) {
		outcome = "; the outcome is unknown"
	}
	return fmt.Errorf("%s: %s (%v%s)", n.name, wrong.Message(), wrong.Code(), outcome)
}

// failedCall is an error of a call that was made as it should be: its status is 1.
type failedCall struct{ error }

// called ends a command that has called nodes: a call that failed is reported, and the
// status is 1.
func (a *app) called(err error) error {
	var failed failedCall
	if !errors.As(err, &failed) {
		return err
	}
	for _, one := range strings.Split(failed.Error(), "\n") {
		fmt.Fprintf(a.err, "parley: %s\n", one)
	}
	return statusError(violated)
}

// assigned reads NAME=VALUE arguments, of which each name must be that of a node.
func assigned(args []string, nodes []calledNode) (map[string]string, error) {
	values := make(map[string]string)
	var names []string
	for _, n := range nodes {
		names = append(names, n.name)
	}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || !slices.Contains(names, name) {
			return nil, fmt.Errorf("%q: NODE=VALUE was expected, and nodes are %s", arg, strings.Join(names, ", "))
		}
		if _, twice := values[name]; twice {
			return nil, fmt.Errorf("%q: %s has a value already", arg, name)
		}
		values[name] = value
	}
	return values, nil
}
