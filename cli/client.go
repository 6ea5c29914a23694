package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"parley"
	"parley/cli/console"
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
		return nil, parley.FlagErrorf("timeout", "%v: a time above 0 was expected", c.timeout)
	}
	certificates := c.certificates
	var nodes []calledNode
	switch {
	case c.dir == "" && len(c.at) == 0:
		return nil, parley.FlagErrorf("dir", "which cluster is meant? --dir names the folder of a local one, --at the "+
			"nodes of any")
	case c.dir == "":
		for _, at := range c.at {
			if u, err := url.Parse("https://" + at); err != nil || u.Port() == "" || u.Host != at {
				return nil, parley.FlagErrorf("at", "%q: HOST:PORT was expected, as in localhost:7101", at)
			}
			nodes = append(nodes, calledNode{name: at, address: at})
		}
		if certificates == "" {
			return nil, parley.FlagErrorf("certificates", "with --at and without --dir it has to be given")
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
		return nil, parley.FlagErrorf("as", "%w", err)
	}
	trust, err := cert.LoadTrust(certificates, nil)
	if err != nil {
		return nil, parley.FlagErrorf("certificates", "%w", err)
	}
	for i, n := range nodes {
		config := client.Config{Self: self, Trust: trust, Address: n.address, Dial: c.dial(len(nodes))}
		if c.dir != "" {
			config.Node = n.name
		}
		nodes[i].Client = client.New(config)
	}
	return nodes, nil
}

// dial is how long connecting to one of some nodes may take, so that one that stands still
// leaves time for the others.
func (c *clientFlags) dial(nodes int) time.Duration {
	return max(min(2*time.Second, c.timeout/time.Duration(nodes)), 200*time.Millisecond)
}

// local finds the nodes of a local cluster.
func (c *clientFlags) local() ([]calledNode, error) {
	first, err := nodefile.Read(configOf(c.dir, nodeName(0)))
	if err != nil {
		return nil, parley.FlagErrorf("dir", "%w: the folder of a cluster was expected, as \"parley cluster up --dir\" "+
			"makes it", err)
	}
	var names []string
	for _, m := range first.Members {
		names = append(names, m.Name)
	}
	for _, name := range c.at {
		if !slices.Contains(names, name) {
			return nil, parley.FlagErrorf("at", "%q: allowed are %s", name, strings.Join(names, ", "))
		}
	}
	if len(c.at) > 0 {
		names = c.at
	}
	var nodes []calledNode
	for _, name := range names {
		f, err := nodefile.Read(configOf(c.dir, name))
		if err != nil {
			return nil, parley.FlagErrorf("dir", "%w", err)
		}
		nodes = append(nodes, calledNode{name: name, address: f.API})
	}
	return nodes, nil
}

// hangUp ends the connections to nodes.
func hangUp(nodes []calledNode) {
	for _, n := range nodes {
		n.Close()
	}
}

// first calls nodes one after the other until one answers: the next only if nothing was
// done at the last one, so that nothing is done twice. What reads may be asked twice, so
// that a node that takes too long is left for the next.
func (c *clientFlags) first(ctx context.Context, reads bool, call func(context.Context, calledNode) error) error {
	nodes, err := c.open()
	if err != nil {
		return err
	}
	defer hangUp(nodes)
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var errs []error
	for i, n := range nodes {
		own, cancel := ctx, context.CancelFunc(func() {})
		if reads {
			own, cancel = client.Attempt(ctx, len(nodes)-i)
		}
		err := call(own, n)
		late := reads && own.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil {
			return nil
		}
		errs = append(errs, said(n, err))
		if !late && (!client.Elsewhere(err) || client.Unknown(err)) {
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
func said(n calledNode, err error) error { return inWords(n, err, client.Unknown(err)) }

// inWords is said, with or without that the outcome is unknown.
func inWords(n calledNode, err error, unknown bool) error {
	var wrong *connect.Error
	if !errors.As(err, &wrong) {
		return fmt.Errorf("%s: %w", n.name, err)
	}
	outcome := ""
	if unknown && !strings.Contains(wrong.Message(), "the outcome is unknown") {
		outcome = "; the outcome is unknown"
	}
	return &saidError{fmt.Sprintf("%s: %s (%v%s)", n.name, wrong.Message(), wrong.Code(), outcome), err}
}

// saidError is an error in other words.
type saidError struct {
	text string
	err  error
}

func (e *saidError) Error() string { return e.text }

// Unwrap returns the error itself.
func (e *saidError) Unwrap() error { return e.err }

// failedCall is an error of nodes that were called.
type failedCall struct{ error }

// called ends a command that has called nodes: a call that failed is reported. The status is
// 2 if what was asked for is not allowed or not there, 3 if no node answered, and else 1.
func called(a *console.App, err error) error {
	var failed failedCall
	if !errors.As(err, &failed) {
		return err
	}
	for _, one := range strings.Split(failed.Error(), "\n") {
		fmt.Fprintf(a.Err, "parley: %s\n", one)
	}
	switch {
	case badInput(failed.error):
		return console.ExitError(console.Usage)
	case unanswered(failed.error):
		return console.ExitError(console.Unfinished)
	}
	return console.ExitError(console.Violated)
}

// unanswered tells whether an error, or each of several, comes of no answer: no node could be
// asked, or none said anything in time.
func unanswered(err error) bool {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(all.Unwrap(), func(err error) bool { return !unanswered(err) })
	}
	var wrong *connect.Error
	if errors.As(err, &wrong) {
		return !connect.IsWireError(wrong) && client.Detail(err) == nil
	}
	return errors.Is(err, errQuiet) || errors.Is(err, context.DeadlineExceeded)
}

// badInput tells whether a node finds fault with what it was asked, whoever asks.
func badInput(err error) bool {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(all.Unwrap(), badInput)
	}
	var wrong *connect.Error
	if !errors.As(err, &wrong) {
		return false
	}
	switch client.Detail(err).GetReason() {
	case "no group", "no table", "no member", "no keys":
		return true
	}
	return wrong.Code() == connect.CodeInvalidArgument
}

// printed is a text that nodes keep, as it is if a terminal can show it, else quoted.
func printed(text []byte) string {
	s := string(text)
	odd := func(r rune) bool { return r != '\t' && r != '\n' && unicode.IsControl(r) }
	if !utf8.ValidString(s) || strings.ContainsFunc(s, odd) {
		return strconv.Quote(s)
	}
	return s
}

// printProto prints an answer as JSON, as the API itself would write it.
func printProto(a *console.App, m proto.Message) error { return printOf(a, "", m) }

// printOf is printProto with the name of the node whose answer it is, if there is one.
func printOf(a *console.App, node string, m proto.Message) error {
	b := []byte("{}")
	if m != nil {
		var err error
		if b, err = (protojson.MarshalOptions{EmitUnpopulated: true}).Marshal(m); err != nil {
			return err
		}
	}
	var line bytes.Buffer
	if err := json.Compact(&line, b); err != nil {
		return err
	}
	text := line.String()
	if node != "" {
		comma := ","
		if text == "{}" {
			comma = ""
		}
		text = `{"node":` + strconv.Quote(node) + comma + text[1:]
	}
	_, err := fmt.Fprintln(a.Out, text)
	return err
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
			return nil, fmt.Errorf("%q: NODE=VALUE was expected, and the nodes are %s", arg, strings.Join(names, ", "))
		}
		if _, twice := values[name]; twice {
			return nil, fmt.Errorf("%q: %s has a value already", arg, name)
		}
		values[name] = value
	}
	return values, nil
}
