package api

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"parley/cluster"
	"parley/cluster/api/parleyv1"
	"parley/cluster/link"
	"parley/internal/lists"
)

// admin implements AdminService.
type admin struct{ s *Server }

func (h admin) Health(context.Context, *parleyv1.HealthRequest) (*parleyv1.HealthResponse, error) {
	why := problems(h.s.c.Node.Status())
	return &parleyv1.HealthResponse{Ready: len(why) == 0, Problems: why}, nil
}

func (h admin) Leave(ctx context.Context, _ *parleyv1.LeaveRequest) (*parleyv1.LeaveResponse, error) {
	defer h.left()
	return &parleyv1.LeaveResponse{}, h.s.c.Node.Leave(ctx)
}

func (h admin) Drain(ctx context.Context, _ *parleyv1.DrainRequest) (*parleyv1.DrainResponse, error) {
	defer h.left()
	return &parleyv1.DrainResponse{}, h.s.c.Node.Drain(ctx)
}

// left calls Config.Left if the node has left, which is possible despite an error.
func (h admin) left() {
	if h.s.c.Left != nil && h.s.c.Node.Status().State == cluster.Left {
		h.s.c.Left()
	}
}

func (h admin) Expel(ctx context.Context, r *parleyv1.ExpelRequest) (*parleyv1.ExpelResponse, error) {
	if err := h.s.members.check(r.GetName()); err != nil {
		return nil, err
	}
	return &parleyv1.ExpelResponse{}, h.s.c.Node.Expel(ctx, r.GetName())
}

func (h admin) Forget(_ context.Context, r *parleyv1.ForgetRequest) (*parleyv1.ForgetResponse, error) {
	if err := h.s.members.check(r.GetName()); err != nil {
		return nil, err
	}
	return &parleyv1.ForgetResponse{}, h.s.c.Node.Forget(r.GetName())
}

// stateAdvice says what a node that is not running does, and what to do.
var stateAdvice = map[cluster.NodeState]string{
	cluster.Draining: "it finishes its requests, and then leaves",
	cluster.Leaving:  "it ends soon",
	cluster.Left:     "start it again to let it rejoin",
	cluster.Expelled: "start it again to let it rejoin",
}

// problems returns why the node is not ready for clients, each with what to do.
func problems(st cluster.Status) []string {
	var out []string
	if st.State != cluster.Running {
		out = append(out, "the node is "+string(st.State)+": "+stateAdvice[st.State])
	}
	for _, g := range st.Groups {
		if !g.In {
			out = append(out, "not a member of group "+g.Name+rejoins)
		}
	}
	mute := 0
	for _, of := range st.Streams {
		if of.Mute && !of.Waits {
			mute++
		}
	}
	if mute > 0 {
		out = append(out, fmt.Sprintf("takes no part yet in %d of %d streams of agreements%s", mute, len(st.Streams),
			catchesUp))
	}
	for _, t := range st.Tables {
		switch {
		case t.Stopped != "":
			out = append(out, "table "+t.Name+" has stopped: "+t.Stopped+
				": restart the node with --rejoin if its replica differs; correct the state machine if it panicked")
		case !t.In:
			out = append(out, "not a member of table "+t.Name+rejoins)
		case !t.Serving:
			out = append(out, "does not have the present state of table "+t.Name+" yet"+catchesUp)
		}
	}
	if st.Store != nil && st.Store.Error != "" {
		out = append(out, "its disk failed: "+st.Store.Error+": restart the node when the disk works again")
	}
	if st.Store != nil && st.Store.Full != "" {
		out = append(out, "refuses requests that write: "+st.Store.Full+": free space on the disk of its data folder")
	}
	return out
}

// The ends of problems that pass by themselves.
const (
	rejoins   = ": it rejoins by itself; if it does not, its log says why"
	catchesUp = ": it is catching up; if that takes more than a minute, its log says why"
)

var nodeStates = map[cluster.NodeState]parleyv1.NodeState{
	cluster.Running:  parleyv1.NodeState_NODE_STATE_RUNNING,
	cluster.Draining: parleyv1.NodeState_NODE_STATE_DRAINING,
	cluster.Leaving:  parleyv1.NodeState_NODE_STATE_LEAVING,
	cluster.Left:     parleyv1.NodeState_NODE_STATE_LEFT,
	cluster.Expelled: parleyv1.NodeState_NODE_STATE_EXPELLED,
}

func (h admin) Status(context.Context, *parleyv1.StatusRequest) (*parleyv1.StatusResponse, error) {
	st := h.s.c.Node.Status()
	out := &parleyv1.StatusResponse{
		Cluster: st.Cluster, Node: st.Name, State: nodeStates[st.State], Incarnation: st.Incarnation, Again: st.Again,
		Started: timestamppb.New(st.Started), Durable: st.Durable, M: uint32(st.M), Problems: problems(st),
		Strangers: st.Strangers, Strange: st.Strange, Clock: nowOut(h.s.c.Node.Clock()),
	}
	out.Ready = len(out.Problems) == 0
	if round, err := time.ParseDuration(st.Round); err == nil {
		out.Round = durationpb.New(round)
	}
	out.Members = lists.Of(st.Members, memberStatus)
	for _, g := range st.Groups {
		level, _ := cluster.ParseLevel(g.Level) // String wrote it
		one := &parleyv1.GroupStatus{Name: g.Name, Level: wire(levels, level), View: viewStatus(g.ViewStatus)}
		one.Position = g.Position
		out.Groups = append(out.Groups, one)
	}
	for _, t := range st.Tables {
		out.Tables = append(out.Tables, &parleyv1.TableStatus{
			Name: t.Name, Position: t.Position, Waiting: uint32(t.Waiting), View: viewStatus(t.ViewStatus),
			Stopped: t.Stopped, Diverged: t.Diverged,
		})
	}
	for _, x := range st.Streams {
		algorithm, _ := cluster.ParseAlgorithm(x.Algorithm) // String wrote it
		out.Streams = append(out.Streams, &parleyv1.StreamStatus{
			Algorithm: wire(algorithms, algorithm), M: uint32(x.M), Source: x.Source, Slots: slotStatus(x.SlotStatus),
		})
	}
	out.Refused = lists.Of(st.Refused, func(r cluster.RefusedStatus) *parleyv1.RefusedStatus {
		return &parleyv1.RefusedStatus{Machine: r.Machine, From: r.From, Why: r.Why, Times: r.Times}
	})
	if c := st.Commit; c != nil {
		out.Commit = commitStatus(c)
	}
	if x := st.Store; x != nil {
		out.Store = &parleyv1.StoreStatus{
			Records: x.Records, Durable: x.Durable, Bytes: x.Bytes, Error: x.Error,
			Position: x.Position, Free: x.Free, Slowest: durationpb.New(x.Slowest), Low: x.Low, Full: x.Full,
		}
	}
	return out, nil
}

func memberStatus(m cluster.MemberStatus) *parleyv1.MemberStatus {
	out := &parleyv1.MemberStatus{
		Name: m.Name, Address: m.Address, Self: m.Self, Connected: m.Connected, Expelled: m.Expelled, In: m.In,
		Incarnation: m.Incarnation, Connections: m.Connections, FramesIn: m.FramesIn, FramesOut: m.FramesOut,
		BytesIn: m.BytesIn, BytesOut: m.BytesOut, FramesLost: m.FramesLost, Queued: uint64(m.Queued), Dropped: m.Dropped,
	}
	if m.Since != nil {
		out.Since = timestamppb.New(*m.Since)
	}
	out.RoundTrip = roundTrip(link.RTT(m.RTT))
	return out
}

func viewStatus(v cluster.ViewStatus) *parleyv1.ViewStatus {
	return &parleyv1.ViewStatus{In: v.In, View: v.View, Members: v.Members, Suspected: v.Suspected}
}

func slotStatus(x cluster.SlotStatus) *parleyv1.SlotStatus {
	return &parleyv1.SlotStatus{Opened: x.Opened, Done: x.Done, Missed: x.Missed, Abstained: x.Abstained, Mute: x.Mute}
}

func commitStatus(c *cluster.CommitStatus) *parleyv1.CommitStatus {
	return &parleyv1.CommitStatus{
		Protocol: c.Protocol, Open: uint32(c.Open), Pending: uint32(c.Pending), Preparing: uint32(c.Preparing),
		Committed: c.Committed, Aborted: c.Aborted, Blocked: lists.Of(c.Blocked, outcome),
	}
}
