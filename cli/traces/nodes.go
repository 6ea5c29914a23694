package traces

import (
	"context"
	"strconv"

	"parley/cli/console"
	"parley/cli/lab"
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
func showNodes(ctx context.Context, a *console.App, traces []trace.Trace, view show.Flags, f nodeFlags) error {
	all, err := merged.New(a.Protocols, traces)
	if err != nil {
		return err
	}
	s, err := all.Show(f.machine, f.slot)
	if err != nil {
		return err
	}
	if err = show.Print(a, s.Report, s.Log, view, s.Heading(), ""); !view.Open {
		return err
	}
	chosen := map[string]string{"machine": s.Machine}
	if s.Slot > 0 {
		chosen["slot"] = strconv.FormatUint(s.Slot, 10)
	}
	return lab.Open(ctx, a, lab.Scene{Traces: traces, Chosen: chosen}, err)
}
