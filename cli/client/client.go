package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"parley"
	"parley/cli/console"
	"parley/cluster"
	"parley/cluster/api/client"
	"parley/cluster/cert"
	"parley/cluster/nodefile"
	"parley/internal/lists"
)

// Flags select the nodes that a client calls, and its certificate.
type Flags struct {
	Dir          string
	At           []string
	certificates string
	As           string
	Timeout      time.Duration
	AsJSON       bool
}

// Declare adds the flags to a command.
func (c *Flags) Declare(cmd *cobra.Command) {
	c.DeclareNodes(cmd)
	f := cmd.Flags()
	f.DurationVar(&c.Timeout, "timeout", 10*time.Second, "how long to wait for an answer, as in 500ms or 1m")
	f.BoolVar(&c.AsJSON, "json", false, "print the answers as JSON")
	console.Common(f, "timeout")
}

// DeclareNodes adds the flags that select nodes and a certificate.
func (c *Flags) DeclareNodes(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.Dir, "dir", "",
		"`folder` of a local cluster (default: the environment variable "+DirVariable+")")
	f.StringSliceVar(&c.At, "at", nil, "`nodes` to call: their names with --dir (default: all nodes), or "+
		"HOST:PORT without --dir")
	f.StringVar(&c.certificates, "certificates", "",
		"`path` of the folder with ca.pem and the client's files (default: certs in the folder of --dir)")
	f.StringVar(&c.As, "as", "admin", "`name` of the client whose certificate to use")
	console.Common(f, "dir", "at", "certificates", "as")
}

// Node is a node that can be called.
type Node struct {
	Name    string // from its configuration, or otherwise from the command line
	address string
	*client.Client
}

// Open returns the nodes to call, without connecting to any yet.
func (c *Flags) Open() ([]Node, error) {
	if c.Timeout <= 0 {
		return nil, parley.FlagErrorf("timeout", "%v: a time above 0 was expected", c.Timeout)
	}
	certificates := c.certificates
	var nodes []Node
	switch {
	case c.Dir == "" && len(c.At) == 0:
		return nil, parley.FlagErrorf("dir", "it is missing: name the folder of a local cluster, or with --at the "+
			"nodes of any cluster")
	case c.Dir == "":
		for _, at := range c.At {
			u, err := url.Parse("https://" + at)
			if err != nil || u.Port() == "" || u.Host != at {
				return nil, parley.FlagErrorf("at", "%q: HOST:PORT was expected, as in localhost:7101", at)
			}
			if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 {
				return nil, parley.FlagErrorf("at", "%q: a PORT from 1 to 65535 was expected", at)
			}
			nodes = append(nodes, Node{Name: at, address: at})
		}
		if certificates == "" {
			return nil, parley.FlagErrorf("certificates", "it is missing: name the folder with ca.pem, "+
				"client-NAME.pem and client-NAME.key, or --dir for a local cluster")
		}
	default:
		local, err := c.local()
		if err != nil {
			return nil, err
		}
		nodes = local
		if certificates == "" {
			certificates = filepath.Join(c.Dir, "certs")
		}
	}
	self, err := cert.LoadClient(certificates, c.As)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, parley.FlagErrorf("as", "%w: \"parley cert client\" issues certificates of clients", err)
	} else if err != nil {
		return nil, parley.FlagErrorf("as", "%w", err)
	}
	trust, err := cert.LoadTrust(certificates, nil)
	if err != nil {
		return nil, parley.FlagErrorf("certificates", "%w", err)
	}
	for i, n := range nodes {
		config := client.Config{Self: self, Trust: trust, Address: n.address, Dial: c.dial(len(nodes))}
		if c.Dir != "" {
			config.Node = n.Name
		}
		nodes[i].Client = client.New(config)
	}
	return nodes, nil
}

// dial returns the timeout for connecting to one of several nodes. It is short enough that time is left for the other
// nodes if one does not respond.
func (c *Flags) dial(nodes int) time.Duration {
	return max(min(2*time.Second, c.Timeout/time.Duration(nodes)), 200*time.Millisecond)
}

// local finds the nodes of a local cluster.
func (c *Flags) local() ([]Node, error) {
	first, err := nodefile.Read(ConfigOf(c.Dir, NodeName(0)))
	if err != nil {
		return nil, parley.FlagErrorf("dir", "%w: the folder of a cluster was expected, as \"parley cluster up --dir\" "+
			"makes it", err)
	}
	names := lists.Of(first.Members, func(m cluster.Member) string { return m.Name })
	for _, name := range c.At {
		if !slices.Contains(names, name) {
			return nil, parley.FlagErrorf("at", "%q: allowed are %s", name, strings.Join(names, ", "))
		}
	}
	if len(c.At) > 0 {
		names = c.At
	}
	var nodes []Node
	for _, name := range names {
		f, err := nodefile.Read(ConfigOf(c.Dir, name))
		if err != nil {
			return nil, parley.FlagErrorf("dir", "%w", err)
		}
		nodes = append(nodes, Node{Name: name, address: f.API})
	}
	return nodes, nil
}

// Given reports whether the flags name a cluster.
func (c *Flags) Given() bool { return c.Dir != "" || len(c.At) > 0 }

// HangUp closes the connections to the nodes.
func HangUp(nodes []Node) {
	for _, n := range nodes {
		_ = n.Close()
	}
}

// First calls one node after the other until one answers. It calls the next node only if the last one did nothing, so
// that nothing is done twice. If reads is true, a call may run twice, and a node that takes too long is left for the
// next.
func (c *Flags) First(ctx context.Context, reads bool, call func(context.Context, Node) error) error {
	nodes, err := c.Open()
	if err != nil {
		return err
	}
	defer HangUp(nodes)
	ctx, release := c.limited(ctx)
	defer release()
	do := anyOf(nodes).Do
	if reads {
		do = anyOf(nodes).Read
	}
	err = do(ctx, func(ctx context.Context, one *client.Client) error { return call(ctx, nodeOf(nodes, one)) })
	return byName(nodes, err)
}

// limited returns a context for calls, which ends with --timeout, and with a signal, so that the command can say
// whether the outcome is unknown.
func (c *Flags) limited(ctx context.Context) (limited context.Context, release func()) {
	ctx, stop := console.UntilSignal(ctx)
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	return ctx, func() { cancel(); stop() }
}

// anyOf returns a client of the nodes that calls any of them.
func anyOf(nodes []Node) *client.Nodes {
	return client.NewNodes(lists.Of(nodes, func(n Node) *client.Client { return n.Client })...)
}

// nodeOf returns the node that a client calls.
func nodeOf(nodes []Node, c *client.Client) Node {
	return nodes[slices.IndexFunc(nodes, func(n Node) bool { return n.Client == c })]
}

// byName adds the names of the nodes to their errors.
func byName(nodes []Node, err error) error {
	all, ok := errors.AsType[*client.NodeErrors](err)
	if !ok {
		return err
	}
	said := func(one *client.NodeError) error { return Said(nodeOf(nodes, one.Node), one.Err) }
	last := all.Nodes[len(all.Nodes)-1]
	return failedCall{error: errors.Join(lists.Of(all.Nodes, said)...), late: late(last)}
}

// AskAll concurrently calls all nodes that choose returns, and returns the answer and the error of each. If the flags
// are wrong or choose fails, it calls no node and returns only err.
func AskAll[T any](ctx context.Context, f *Flags, choose func([]Node) ([]Node, error),
	ask func(context.Context, Node) (T, error),
) (nodes []Node, answers []T, errs []error, err error) {
	all, err := f.Open()
	if err != nil {
		return nil, nil, nil, err
	}
	defer HangUp(all)
	if nodes, err = choose(slices.Clone(all)); err != nil {
		return nil, nil, nil, err
	}
	ctx, release := f.limited(ctx)
	defer release()
	answers, errs = make([]T, len(nodes)), make([]error, len(nodes))
	var calls sync.WaitGroup
	for i, n := range nodes {
		calls.Go(func() {
			var err error
			if answers[i], err = ask(ctx, n); err != nil {
				errs[i] = Said(n, err)
			}
		})
	}
	calls.Wait()
	return nodes, answers, errs, nil
}

// everyNode chooses all nodes.
func everyNode(nodes []Node) ([]Node, error) { return nodes, nil }

// Said rewords an error of a node, with the node's name.
func Said(n Node, err error) error {
	node := n.Name
	if n.Client == nil { // no node's: several were tried
		node = ""
	}
	wrong, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return &rewordedError{err, n.Name + ": " + err.Error(), node}
	}
	outcome, message := "", wrong.Message()
	switch {
	case late(err): // by the clock of the node or by ours, and so in different words
		message = "no answer came in time"
	case interrupted(err):
		message = "interrupted"
	}
	if client.Unknown(err) && !strings.Contains(message, "the outcome is unknown") {
		outcome = "; the outcome is unknown"
	}
	return &rewordedError{err, fmt.Sprintf("%s: %s (%v%s)", n.Name, message, wrong.Code(), outcome), node}
}

// late reports whether a call ended because its time was up, by the clock of the node or by ours.
func late(err error) bool { return connect.CodeOf(err) == connect.CodeDeadlineExceeded }

// interrupted reports whether a call, or one of several, ended because a signal ended the command.
func interrupted(err error) bool {
	if each := eachOf(err); len(each) > 1 {
		return slices.ContainsFunc(each, interrupted)
	}
	return connect.CodeOf(err) == connect.CodeCanceled && client.Detail(err) == nil
}

// rewordedError is an error with another text.
type rewordedError struct {
	error
	text, node string
}

func (e *rewordedError) Error() string { return e.text }

// Unwrap returns the error itself.
func (e *rewordedError) Unwrap() error { return e.error }

// Call implements [console.CallError].
func (e *rewordedError) Call() (node, code, reason, outcome string) {
	if wrong, ok := errors.AsType[*connect.Error](e.error); ok {
		code = wrong.Code().String()
	}
	if client.Unknown(e.error) && !errors.Is(e.error, errNotInStep) {
		outcome = "unknown"
	}
	return e.node, code, client.Detail(e.error).GetReason(), outcome
}

// failedCall is an error of calls to nodes.
type failedCall struct {
	error
	partly bool // other nodes answered without an error
	late   bool // the last call ended because its time was up
}

// Failed marks an error as one of a failed call.
func Failed(err error) error { return failedCall{error: err} }

// Joined returns the joined errors of calls to several nodes, as one failed call, or nil if there are none.
func Joined(errs []error) error {
	err := errors.Join(errs...)
	if err == nil {
		return nil
	}
	return failedCall{error: err, partly: slices.Contains(errs, nil)}
}

// Report ends a command that has called nodes, and reports a failed call. The exit status is 2 if the request is not
// allowed, as when the client lacks a right or names something that does not exist; 3 if the cluster gave no answer;
// 130 if a signal ended the command; and 1 otherwise.
func Report(a *console.App, err error) error {
	failed, ok := errors.AsType[failedCall](err)
	if !ok {
		return err
	}
	status := console.Violated
	switch {
	case interrupted(failed.error):
		status = console.Interrupted
	case badInput(failed.error):
		status = console.Usage
	case failed.late, unanswered(failed.error) && !failed.partly:
		status = console.Unfinished
	}
	for _, one := range eachOf(failed.error) {
		a.Complain(status, one)
	}
	return console.ExitError(status)
}

// eachOf returns the errors that are joined in one, or that one.
func eachOf(err error) []error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()
	}
	return []error{err}
}

// unanswered reports whether an error, or each of several, means that the cluster gave no answer: no node could be
// called, none answered in time, or those that did cannot carry out the request now, such as without a majority, or do
// not know its outcome.
func unanswered(err error) bool {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(all.Unwrap(), func(err error) bool { return !unanswered(err) })
	}
	if wrong, ok := errors.AsType[*connect.Error](err); ok {
		detail := client.Detail(err)
		if detail == nil {
			return late(wrong) || !connect.IsWireError(wrong)
		}
		switch wrong.Code() {
		case connect.CodeDeadlineExceeded, connect.CodeUnavailable, connect.CodeUnknown:
			return true
		}
		return detail.GetReason() == "abstained"
	}
	return errors.Is(err, errQuiet) || errors.Is(err, context.DeadlineExceeded)
}

// badInput reports whether a node refused the request itself, or lets this client make no such request.
func badInput(err error) bool {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(all.Unwrap(), badInput)
	}
	switch client.Detail(err).GetReason() {
	case "no group", "no table", "no member", "no keys", "no right":
		return true
	}
	return connect.CodeOf(err) == connect.CodeInvalidArgument
}

// assigned reads NAME=VALUE arguments. Each name must be a node's.
func assigned(args []string, nodes []Node) (map[string]string, error) {
	values, names := make(map[string]string), lists.Of(nodes, func(n Node) string { return n.Name })
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
