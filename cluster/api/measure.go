package api

import (
	"bufio"
	"context"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	"parley/cluster"
	"parley/cluster/api/parleyv1"
	"parley/cluster/link"
)

func (h admin) Measure(context.Context, *parleyv1.MeasureRequest) (*parleyv1.MeasureResponse, error) {
	m := h.s.c.Node.Measure()
	out := &parleyv1.MeasureResponse{
		Nodes: uint32(m.Nodes), M: uint32(m.M), Round: durationpb.New(m.Round), Suspended: durationpb.New(m.Suspended),
		Synchronized: m.Synchronized, Drift: m.Drift,
		Wake: &parleyv1.WakeMeasure{
			Median: durationpb.New(m.Wake.Median), P999: durationpb.New(m.Wake.P999), Most: durationpb.New(m.Wake.Most),
			Samples: uint32(m.Wake.Samples), Pauses: m.Wake.Pauses,
		},
	}
	if m.Synchronized {
		out.Bound = durationpb.New(m.Bound)
	}
	for _, p := range m.Peers {
		one := &parleyv1.PeerMeasure{Name: p.Name, Connected: p.Connected, RoundTrip: roundTrip(p.RTT)}
		if p.Read {
			one.Skew, one.Error = durationpb.New(p.Skew), durationpb.New(p.Error)
		}
		out.Peers = append(out.Peers, one)
	}
	return out, nil
}

// roundTrip converts round-trip times, nil if there are none.
func roundTrip(r link.RTT) *parleyv1.RoundTrip {
	if r.Samples == 0 {
		return nil
	}
	return &parleyv1.RoundTrip{
		Least: durationpb.New(r.Min), Median: durationpb.New(r.P50), P999: durationpb.New(r.P999), Samples: uint32(r.Samples),
	}
}

// piece is how many bytes of a recording are sent at a time.
const piece = 64 << 10

func (h admin) Record(
	ctx context.Context, q *parleyv1.RecordRequest, to *connect.ServerStream[parleyv1.RecordResponse],
) error {
	if q.GetLast().AsDuration() < 0 {
		return invalid("last: %v: a duration of at least 0 was expected", q.GetLast().AsDuration())
	}
	x := cluster.Excerpt{Machine: q.GetMachine(), Last: q.GetLast().AsDuration(), Most: int(q.GetMost())}
	w := bufio.NewWriterSize(pieces{callOf(ctx), to}, piece)
	if err := h.s.c.Node.Recorder().Dump(w, x); err != nil {
		return err
	}
	return w.Flush()
}

// pieces is a writer that sends each write as a message.
type pieces struct {
	c  *call
	to *connect.ServerStream[parleyv1.RecordResponse]
}

func (p pieces) Write(b []byte) (int, error) {
	if err := p.c.send(func() error { return p.to.Send(&parleyv1.RecordResponse{Data: b}) }); err != nil {
		return 0, err
	}
	return len(b), nil
}
