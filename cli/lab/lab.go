// Package lab implements "parley lab". The command serves the lab, a web page that makes runs of protocols and
// shows them, and opens the page in a browser.
//
// # Decisions
//
// The browser gets the address of the page from a temporary file that only the user can read, and not as an
// argument. Motive: the address contains a secret token, and other users of the computer can read the arguments of
// processes. Cost: some browsers cannot read temporary files, such as browsers that are installed as a snap. They
// show an error, and the user must open the printed address.
package lab

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/client"
	"parley/cli/console"
	"parley/docs/scenarios"
	"parley/internal/lab/engine"
	"parley/internal/lab/live"
	"parley/internal/lab/page"
	"parley/internal/lab/server"
)

// usual is the default address. Tests change it.
var usual = "127.0.0.1:7411"

// Command is "parley lab". The page shows the version of the program.
func Command(a *console.App, version string) *cobra.Command {
	l := lab{App: a}
	var hidden bool
	cmd := &cobra.Command{
		Use:   "lab [TRACE...]",
		Short: "Explore runs in the browser",
		Long: "Lab serves a page that makes runs and shows them: messages, states, and what was\n" +
			"promised. It prints the address of the page, opens the page in a browser, and\n" +
			"runs until you press Ctrl-C.\n\n" +
			"The address contains a token, and lab refuses requests without this token. If\n" +
			"the usual port is in use, lab takes a free one. Only this computer reaches the\n" +
			"page, unless --listen names another address. For another address, lab needs a\n" +
			"node's certificate that was issued for this address (parley cert issue --hosts),\n" +
			"and the browser must trust the authority's ca.pem.\n\n" +
			"A TRACE is a file, or a folder with .jsonl files: the page then opens at this\n" +
			"trace of a run, or at the traces of the nodes of a cluster, merged into one run.\n\n" +
			"In the view Live of the page, you can start a small cluster on this computer.\n" +
			"Each node is a process, which ends with lab. With --dir or --at, Live shows a\n" +
			"cluster that is already running, and changes nothing.\n\n" +
			"The exit status is 0 after Ctrl-C, 2 if lab cannot listen at the address, and 3\n" +
			"if the server fails.",
		Example: "  parley lab\n  parley lab --no-open --listen 127.0.0.1:8080\n  parley lab testdata/traces\n" +
			"  parley lab --listen 0.0.0.0:7411 --certificate certs/node-a.pem --key certs/node-a.key",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			l.fixed = cmd.Flags().Changed("listen")
			l.open = !hidden
			at, err := l.place()
			if err != nil {
				return err
			}
			answers := engine.NewWithNodes(a.Protocols, scenarios.Files, version)
			if l.link, err = opened(answers, args); err != nil {
				return err
			}
			return l.run(cmd.Context(), at, answers, func(address string) error {
				_, err := fmt.Fprintf(a.Out, "The lab is at %s\nCtrl-C ends it.\n", address)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&l.listen, "listen", usual,
		"`address` to serve the page at: HOST:PORT; port 0 means any free port")
	cmd.Flags().StringVar(&l.certificate, "certificate", "", "`file` with the certificate of the server, in PEM")
	cmd.Flags().StringVar(&l.key, "key", "", "`file` with the key of the certificate, in PEM")
	cmd.Flags().BoolVar(&hidden, "no-open", false, "open no browser")
	l.other.DeclareNodes(cmd)
	return cmd
}

// opened gives the traces in files to an engine, and returns the link to them. Without files, the link is empty.
func opened(to *engine.Engine, files []string) (string, error) {
	traces, err := console.ReadTraces(files)
	if err != nil {
		return "", err
	}
	return Scene{Traces: traces}.keep(to)
}

// lab is the command.
type lab struct {
	*console.App
	listen           string
	fixed            bool // the address was given
	certificate, key string
	open             bool
	quiet            bool         // says nothing if the usual address is in use
	link             string       // the fragment that the browser opens; empty for the gallery
	other            client.Flags // a cluster that runs already
}

// run serves the page until the context or the user ends it. say tells the user its address.
func (l *lab) run(ctx context.Context, at place, answers *engine.Engine, say func(address string) error) error {
	ctx, stop := console.UntilSignal(ctx)
	defer stop()
	in, err := l.begin(ctx, at)
	if err != nil {
		return err
	}
	cluster, err := l.cluster()
	if err != nil {
		return errors.Join(err, in.Close())
	}
	hosts, token := at.hosts(in.Addr()), server.NewToken()
	s := &http.Server{
		Handler: server.New(server.Options{
			Answer: answers.Answer, Keep: answers.KeepFile, Live: cluster, Page: page.Files, Token: token, Hosts: hosts,
		}),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		TLSConfig:         at.secure,
		ErrorLog:          log.New(crashes{l.Err}, "parley lab: ", 0),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	var work sync.WaitGroup
	var ended error
	work.Go(func() {
		defer end()
		if at.secure != nil {
			ended = s.ServeTLS(in, "", "")
		} else {
			ended = s.Serve(in)
		}
	})
	address := at.scheme() + "://" + hosts[0] + "/#token=" + token + strings.TrimPrefix(l.link, "#")
	if err = say(address); err == nil {
		err = l.show(ctx, address)
	}
	failed := errors.Join(s.Close(), cluster.Close())
	work.Wait()
	if err == nil && !errors.Is(ended, http.ErrServerClosed) {
		return console.EndWith(console.Unfinished, ended)
	}
	return cmp.Or(err, failed)
}

// cluster returns what the view Live shows: a cluster that runs already, or one that the page starts.
func (l *lab) cluster() (*live.Lab, error) {
	o := live.Options{Make: live.Make, CannotPause: live.CannotPause()}
	if l.other.Given() {
		l.other.Timeout = live.Patience
		nodes, err := l.other.Open()
		if err != nil {
			return nil, err
		}
		o.Other = nodes
	}
	return live.New(o), nil
}

// begin listens. If the usual address is in use and none was given, it takes a free port.
func (l *lab) begin(ctx context.Context, at place) (net.Listener, error) {
	in, err := new(net.ListenConfig).Listen(ctx, "tcp", at.address)
	if err == nil {
		return in, nil
	}
	const onWindows = syscall.Errno(10048)
	if used := errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, onWindows); used && l.fixed {
		return nil, parley.FlagErrorf("listen", "%s is in use: choose another port, or 0 for any free one", at.address)
	} else if !used {
		return nil, parley.FlagErrorf("listen", "%s: this computer does not allow to listen there: %w", at.address,
			cause(err))
	}
	if in, err = new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(at.host, "0")); err == nil && !l.quiet {
		fmt.Fprintf(l.Err, "parley lab: %s is in use, by another lab perhaps: this one takes a free port\n", at.address)
	}
	return in, err
}

// cause returns the operating system's part of an error.
func cause(err error) error {
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		return no
	}
	return err
}

// show opens an address in a browser, and waits for the end of the context.
func (l *lab) show(ctx context.Context, address string) error {
	if l.open && display() {
		forget, err := browse(address)
		if err != nil {
			fmt.Fprintln(l.Err, "parley lab: no browser was opened: open the address yourself")
		}
		defer forget()
	}
	<-ctx.Done()
	return nil
}

// crashes writes what net/http logs, except that a browser refused the certificate.
type crashes struct{ to io.Writer }

func (c crashes) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("TLS handshake error")) {
		return len(line), nil
	}
	return c.to.Write(line)
}
