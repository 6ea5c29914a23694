package lab

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"parley/cli/console"
	"parley/docs/scenarios"
	"parley/internal/lab/engine"
	"parley/internal/lab/link"
	"parley/trace"
)

// Scene is what a command shows in the lab.
type Scene struct {
	Link string // the fragment of its address
	// Traces are the trace of the run to which the link leads, or those of the nodes of a cluster. None means that the lab
	// can make the run itself.
	Traces []trace.Trace
	// Chosen are the flags of "parley trace show" that choose what is shown of the traces of nodes.
	Chosen map[string]string
}

// longest is the longest link to a run, which a browser and a chat keep whole.
const longest = 8192

// Repeated returns the run that arguments of "parley run" make. It reports false if they are too long for a link.
func Repeated(args []string, hash string) (s Scene, ok bool) {
	to := link.OfArgs(args)
	to.Hash = hash
	s.Link = to.Fragment()
	return s, len(s.Link) <= longest
}

// Recorded returns the run of a trace. file is the name of its file, if it has one.
func Recorded(h trace.Header, log *trace.Log, file string) Scene {
	if file == console.StandardOutput {
		file = ""
	}
	return Scene{Traces: []trace.Trace{{Name: file, Header: h, Log: log}}}
}

// keep gives the traces of the scene to an engine, and returns the link to them.
func (s Scene) keep(to *engine.Engine) (string, error) {
	if len(s.Traces) == 0 {
		return s.Link, nil
	}
	hash, err := to.Keep(s.Traces)
	if err != nil {
		return "", err
	}
	run := link.Run{Trace: hash[:8], Flags: s.Chosen}
	if len(s.Traces) == 1 && s.Traces[0].Header.Node == nil {
		run.Hash = hash
	}
	return run.Fragment(), nil
}

// Search returns the form of a search: a protocol, and flags of "parley explore".
func Search(protocol string, flags map[string]string) Scene {
	return Scene{Link: link.Search(protocol, flags)}
}

// DeclareOpen adds --open to fs.
func DeclareOpen(fs *pflag.FlagSet, to *bool) {
	fs.BoolVar(to, "open", false, "then show the result in the lab, in a browser, until Ctrl-C (see parley lab)")
}

// Open shows a scene in the lab until the user presses Ctrl-C. Before that, a command has printed a report and ended by
// an error; if this error is more than an exit status, Open shows nothing. It returns the error.
func Open(ctx context.Context, a *console.App, s Scene, ended error) error {
	if _, reported := errors.AsType[console.ExitError](ended); ended != nil && !reported {
		return ended
	}
	answers := engine.NewWithNodes(a.Protocols, scenarios.Files, a.Version)
	to, err := s.keep(answers)
	if err != nil {
		return err
	}
	l := lab{App: a, listen: usual, open: true, quiet: true, link: to}
	at, err := l.place()
	if err != nil {
		return err
	}
	// On the standard error, because the report may be for a program.
	err = l.run(ctx, at, answers, func(address string) error {
		_, err := fmt.Fprintf(a.Err, "The lab shows it at %s\nCtrl-C ends it.\n", address)
		return err
	})
	if err != nil {
		return err
	}
	return ended
}
