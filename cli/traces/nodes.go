package traces

import (
	"parley/cli/console"
	"parley/cli/show"
	"parley/internal/merged"
	"parley/trace"
)

// nodeFlags select what is shown of traces of nodes.
type nodeFlags struct {
	machine string
	slot    uint64
}

// showNodes shows the traces of nodes, of one machine, as one trace.
func showNodes(a *console.App, traces []trace.Trace, view show.Flags, f nodeFlags) error {
	all, err := merged.New(a.Protocols, traces)
	if err != nil {
		return err
	}
	s, err := all.Show(f.machine, f.slot)
	if err != nil {
		return err
	}
	return show.Print(a, s.Report, s.Log, view, s.Heading(), "")
}
