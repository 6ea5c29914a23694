package run

import (
	"context"
	"errors"
	"fmt"
	"os"

	"parley"
	"parley/cli/console"
	"parley/cli/foreign"
	"parley/internal/form"
	"parley/trace"
)

// mostSteps is the number of steps after which a run of programs is given up, if the flags set no other.
const mostSteps = 200_000

// crew returns the crew that starts the programs of a run, or nil if the processes of the run are no programs.
func (s setup) crew(ctx context.Context, o foreign.Options) (*foreign.Crew, error) {
	if len(s.Node) == 0 {
		return nil, nil
	}
	o.Command, o.Protocol, o.Settings, o.Name = s.Node, s.Protocol, s.Settings, s.Names.Full
	return foreign.New(ctx, o)
}

// programs makes the run with programs as processes.
func (s setup) programs(ctx context.Context) (log *trace.Log, facts trace.Facts, err error) {
	ctx, stop := console.UntilSignal(ctx)
	defer stop()
	crew, err := s.crew(ctx, foreign.Options{Stderr: os.Stderr})
	if err != nil {
		return nil, facts, err
	}
	defer crew.Close()
	defer func() {
		v := recover()
		failed, is := v.(*foreign.Failure)
		switch {
		case v == nil:
		case !is:
			panic(v)
		case ctx.Err() != nil:
			err = console.EndWith(console.Interrupted, errors.New("the run was interrupted"))
		default:
			err = console.EndWith(console.Violated, &parley.FlagError{Flag: "node", Err: failed})
		}
	}()
	limited := s.Plan.Steps == 0
	if limited {
		s.Plan.Steps = mostSteps
	}
	s.Processes = crew.Hire
	done, err := s.Simulate()
	switch {
	case err != nil:
		return nil, facts, err
	case limited && done.GivenUp:
		return nil, facts, console.EndWith(console.Unfinished, fmt.Errorf("the programs are not idle after %d steps: "+
			"let their timers wait longer, or set --until or --steps", mostSteps))
	}
	facts = done.Facts
	facts.Unrepeatable = crew.Unrepeatable()
	return done.Log, facts, nil
}

// notReplayed returns an error for a trace of programs. A trace names the program, and a file must not run programs.
func notReplayed(s form.Run, file string) error {
	if len(s.Node) == 0 {
		return nil
	}
	return parley.FlagErrorf("replay", "%s is a trace of programs, which only a command may start: use parley trace "+
		"show, or parley run with --node", file)
}
