package form

import (
	"fmt"
	"reflect"

	"github.com/spf13/pflag"

	"parley"
	"parley/internal/input"
	"parley/trace"
)

// Remake reconstructs the run of a trace from its header.
func Remake(protocols []parley.Protocol, h trace.Header) (Run, error) {
	p, err := input.Protocol(protocols, h.Protocol)
	if err != nil {
		return Run{}, err
	}
	fs := pflag.NewFlagSet(h.Protocol, pflag.ContinueOnError)
	f := New(p, fs)
	if len(h.Args) == 0 || h.Args[0] != h.Protocol {
		return Run{}, fmt.Errorf("the arguments in the header are not arguments of a run of %s: record the "+
			"trace again", h.Protocol)
	}
	if err := fs.Parse(h.Args[1:]); err != nil {
		return Run{}, err
	}
	if fs.NArg() > 0 {
		return Run{}, fmt.Errorf("the arguments %q in the header are not arguments of a run: record the trace again", h.Args)
	}
	made, err := f.Setup()
	if err != nil {
		return Run{}, err
	}
	s := made.Run
	header := s.Header(h.Facts)
	header.Version = h.Version
	if h.Facts.Worst == 0 { // written by an earlier version
		header.Facts.Worst = 0
	}
	if !reflect.DeepEqual(header, h) {
		err = fmt.Errorf("n, m, seed, names, and the faulty processes do not match the arguments %q: record the "+
			"trace again", h.Args)
	}
	if h.Facts.Bare {
		if s.Protocol.Bare == nil {
			return s, fmt.Errorf("%s uses no failure detector: record the trace again", s.Protocol.Name)
		}
		s.Protocol = *s.Protocol.Bare
	}
	return s, err
}
