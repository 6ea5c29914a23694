package demo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/cli/client"
	"parley/cli/console"
	"parley/cli/local"
	"parley/cli/show"
	"parley/cluster"
	"parley/cluster/api/parleyv1"
	"parley/faulty"
	"parley/internal/form"
	"parley/internal/lists"
	"parley/internal/merged"
	"parley/internal/naming"
	"parley/internal/report"
	"parley/lockstep"
	"parley/run"
	"parley/trace"
)

// agreement has the nodes agree on a value of P1, and shows the agreement from their traces.
func (d *demonstration) agreement(ctx context.Context, source client.Node) error {
	err := d.say("1. The processes agree although one lies", "A client asks P1 to make all four processes agree on the "+
		"value 1. In round 0, P1 sends the value to the others. In round 1, each of the others forwards this value to "+
		"all processes, P1 included. {1,12} means \"P2 reports that P1 sent 1\". P3 lies: it received 1, and "+
		"reports 0 to P4. Each process arranges the reports in a tree, and takes at each node of the tree the value of "+
		"more than half of the children.")
	if err != nil {
		return err
	}
	const value = "1"
	began := time.Now()
	r, err := source.Agree.Agree(ctx, &parleyv1.AgreeRequest{Value: []byte(value), M: 1})
	took := time.Since(began)
	if err != nil {
		return fmt.Errorf("the agreement: %w", client.Said(source, err))
	}
	log, header, err := d.written(ctx, r.GetDecision().GetSlot())
	if err != nil {
		return err
	}
	p, _, ok := cluster.SlotProtocol(header)
	if !ok {
		return fmt.Errorf("the traces in %s are of %s, which is no agreement", d.dir, header.Node.Machine)
	}
	s := form.Run{Names: naming.Article, Spec: run.Spec{
		Protocol: p, Values: map[parley.ID][]byte{0: []byte(value)},
		Faulty: map[parley.ID]faulty.Behavior{traitor: faulty.TwoFaced},
	}}
	outcome := report.New(s, log, header.Facts)
	lied := naming.Article.Full(doomed) // to which P3 lies
	v, err := report.NewView(outcome, log, report.Options{Rows: 12, Tree: lied, Color: d.Colors()}, d.width, nil)
	if err != nil {
		return err
	}
	parts := slices.Clone(v.Parts())
	if i := slices.IndexFunc(parts, func(p string) bool { return strings.HasPrefix(p, "Verdict") }); i > 0 {
		verdict, cost, _ := strings.Cut(parts[i], "\n┌")
		parts = append(slices.Insert(slices.Delete(parts, i, i+1), 0, verdict), "┌"+cost)
	}
	_, err = fmt.Fprintf(d.Out, "%s\n", strings.Join(parts, "\n"))
	if err == nil {
		_, err = fmt.Fprintf(d.Out, "All this was read from the traces of the four processes. P1 answered its client\n"+
			"after %.1f ms.\n\n", float64(took.Microseconds())/1000)
	}
	return show.Finish(outcome, err)
}

// written reads the traces of all nodes about one agreement, as if it were the only one. The traces are complete soon
// after the agreement is over.
func (d *demonstration) written(ctx context.Context, slot uint64) (*trace.Log, trace.Header, error) {
	for end := time.Now().Add(10 * time.Second); ; {
		w, err := d.merged()
		if err == nil {
			log, decided := slotOf(w.Log, slot)
			if decided == len(d.nodes)-1 {
				w.Header.Facts.Over = true
				return log, w.Header, nil
			}
			err = fmt.Errorf("in the traces %d of %d correct processes have decided", decided, len(d.nodes)-1)
		}
		if time.Now().After(end) {
			return nil, trace.Header{}, err
		}
		select {
		case <-ctx.Done():
			return nil, trace.Header{}, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// merged merges the traces of all nodes about the stream of agreements on values of P1.
func (d *demonstration) merged() (*trace.MergedTrace, error) {
	written, err := console.ReadTraces(lists.Of(d.nodes, func(n *local.Node) string {
		return filepath.Join(d.dir, n.Name, "traces")
	}))
	if err != nil {
		return nil, err
	}
	var all []trace.Trace
	for _, t := range written {
		if p, _, ok := cluster.SlotProtocol(t.Header); ok && p.Proposers == parley.SetOf(0) {
			node := *t.Header.Node
			node.Lies = "" // P3's trace counts like the others: its lies are intended
			t.Header.Node = &node
			all = append(all, t)
		}
	}
	if len(all) < len(d.nodes) {
		return nil, errors.New("not all processes have written a trace")
	}
	return trace.Merge(all, trace.Merging{})
}

// slotOf returns the part of a log about one agreement of a stream, as a log of that agreement alone. decided is the
// number of correct processes that have decided.
func slotOf(log *trace.Log, slot uint64) (one *trace.Log, decided int) {
	one = merged.Part(log, func(e *trace.Event) bool {
		switch {
		case e.Op == trace.Start, e.Op == trace.Refuse, e.Op == trace.Keep:
		case e.Op == trace.Request && e.Msg.Kind == parley.Propose:
			e.Msg.Value = 0
		case (e.Op == trace.Send || e.Op == trace.Receive) && e.Msg.Kind == lockstep.Frame && e.Msg.Value == slot:
			e.Msg.Value = 0
		case e.Op == trace.Deliver && e.Msg.Kind == parley.Decide && e.Msg.Seq == slot:
			if e.At != traitor {
				decided++
			}
			e.Msg.Value, e.Msg.Seq = 0, 0
		default:
			return false
		}
		return true
	})
	return one, decided
}
