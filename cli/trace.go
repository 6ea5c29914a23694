package cli

import (
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley"
	"parley/sim"
	"parley/trace"
)

// trace is "parley trace".
func (a *app) trace() *cobra.Command {
	cmd := &cobra.Command{Use: "trace", Short: "Look at traces", Args: cobra.ArbitraryArgs, RunE: oneOf}
	var view viewFlags
	var asJSON bool
	show := &cobra.Command{
		Use:     "show FILE",
		Short:   "Show a trace as run shows it",
		Example: "  parley run eig --trace run.jsonl\n  parley trace show run.jsonl --show messages",
		Args:    exactly("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.showTrace(args[0], view, asJSON)
		},
	}
	view.declare(show.Flags())
	show.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.AddCommand(show)
	return cmd
}

func (a *app) showTrace(file string, flags viewFlags, asJSON bool) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	h, log, err := trace.Read(in)
	if err != nil {
		// The reader's errors begin with the line.
		return fmt.Errorf("%s:%s", file, strings.TrimPrefix(err.Error(), "line "))
	}
	s, err := a.remake(h)
	if err != nil {
		return fmt.Errorf("%s:1: %w", file, err)
	}
	if err := flags.check(); err != nil {
		return err
	}
	r := newReport(s, log, h.Facts)
	if asJSON {
		return r.finish(r.writeJSON(a.out))
	}
	v, err := newView(r, s, log, flags, a.width(flags.width), func(id parley.ID) parley.Tree {
		return s.protocol.Tree(replay(s, log, id))
	})
	if err != nil {
		return err
	}
	return r.finish(v.print(a.out))
}

// remake makes the setup of a trace again from its header.
func (a *app) remake(h trace.Header) (setup, error) {
	p, err := a.find(h.Protocol)
	if err != nil {
		return setup{}, err
	}
	fs := pflag.NewFlagSet(h.Protocol, pflag.ContinueOnError)
	f := newRunFlags(p, fs)
	if len(h.Args) == 0 || h.Args[0] != h.Protocol {
		return setup{}, fmt.Errorf("the arguments are not those of a run of %s", h.Protocol)
	}
	if err := fs.Parse(h.Args[1:]); err != nil {
		return setup{}, err
	}
	if fs.NArg() > 0 || f.scenario != "" {
		return setup{}, fmt.Errorf("the arguments %q are not those of a run", h.Args)
	}
	s, err := f.setup()
	if err != nil {
		return s, err
	}
	made := s.header(h.Facts)
	made.Version = h.Version
	if !reflect.DeepEqual(made, h) {
		err = fmt.Errorf("n, m, seed, names and the faulty processes do not go with the arguments %q", h.Args)
	}
	return s, err
}

// replay feeds one process of a protocol what the trace says that it met: the
// machine ends as it did then, for it is deterministic.
func replay(s setup, log *trace.Log, id parley.ID) parley.Machine {
	m := s.protocol.New(id)
	step := parley.Step{Self: id, N: s.protocol.N, Members: parley.SetOf(id), Host: replayHost{s.signer}}
	for _, e := range log.Events {
		if e.At != id {
			continue
		}
		step.Now, step.Path, step.Effects = e.Time, e.Path, step.Effects[:0]
		switch e.Op {
		case trace.Start:
			m.Start(&step)
		case trace.Request:
			m.Request(&step, e.Msg)
		case trace.Receive:
			m.Receive(&step, e.Peer, e.Msg)
		case trace.Timeout:
			m.Timeout(&step, parley.Timer(e.Msg.Value))
		}
	}
	return m
}

// replayHost signs as the run did. No protocol that has a tree tosses coins.
type replayHost struct{ sim.Signer }

func (replayHost) Choose(int) int                   { return 0 }
func (replayHost) Refused(_, _ parley.ID, _ string) {}
