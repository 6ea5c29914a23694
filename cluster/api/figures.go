package api

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"parley/cluster"
)

// figures are the figures of the node, read when somebody asks.
type figures struct{ s *Server }

// figure describes one.
func figure(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("parley_"+name, help, labels, nil)
}

// The figures of a node.
var (
	infoFigure      = figure("info", "1, with the cluster and the node.", "cluster", "node")
	readyFigure     = figure("ready", "1 if the node is ready for clients.")
	lifeFigure      = figure("incarnation", "The number of this life of the node: that of a later one is larger.")
	connectedFigure = figure("link_connected", "1 if there is a connection to the peer.", "peer")
	framesInFigure  = figure("link_frames_in_total", "Frames from the peer.", "peer")
	framesOutFigure = figure("link_frames_out_total", "Frames to the peer.", "peer")
	bytesInFigure   = figure("link_bytes_in_total", "Bytes from the peer.", "peer")
	bytesOutFigure  = figure("link_bytes_out_total", "Bytes to the peer.", "peer")
	lostFigure      = figure("link_frames_lost_total", "Frames that were queued when a connection ended.", "peer")
	queuedFigure    = figure("link_queued_bytes", "Bytes that wait to be sent to the peer.", "peer")
	connectsFigure  = figure("link_connections_total", "How often the peer has connected.", "peer")
	droppedFigure   = figure("link_dropped_total", "Connections and frames dropped, by reason.", "peer", "reason")
	rttFigure       = figure("link_rtt_seconds",
		"How long the last pings to the peer took to be answered.", "peer", "quantile")
	expelledFigure = figure("member_expelled", "1 if the member has been expelled.", "peer")
	inFigure       = figure("view_in", "1 if this node is a member of the group or table.", "name")
	viewFigure     = figure("view_number", "The number of the view of the group or table.", "name")
	sizeFigure     = figure("view_members", "How many members the view has.", "name")
	suspectsFigure = figure("view_suspected", "How many members this node suspects.", "name")
	positionFigure = figure("table_position", "How many commands the copy has applied.", "table")
	waitingFigure  = figure("table_waiting", "Commands of this node without an answer.", "table")
	openedFigure   = figure("slots_opened_total",
		"Agreements that this node has begun or joined, by stream or group.", "stream")
	doneFigure = figure("slots_done",
		"The number of the agreement up to which all are over, by stream or group.", "stream")
	abstainedFigure = figure("slots_abstained_total",
		"Agreements in which this node took no part, for it was held up or has lived before.", "stream")
	refusedFigure = figure("refused_total",
		"Messages that a machine of this node did not accept of the peer, by reason.", "machine", "peer", "reason")
	strangersFigure = figure("strangers_total",
		"Connections for the other nodes that no member proved to be his, by reason.", "reason")
	strangeFigure = figure("strange_total", "Messages of other nodes for a machine that this node does not have.")
	recordsFigure = figure("store_records_total", "Records handed to the disk.")
	durableFigure = figure("store_durable_total", "Records that are on the disk.")
	storeFigure   = figure("store_bytes_total", "Bytes of records.")
	freeFigure    = figure("store_free_bytes", "Bytes that were free on the disk at most a second ago.")
	slowestFigure = figure("store_slowest_commit_seconds", "How long the slowest commit took since the node began.")
	fullFigure    = figure("store_refuses",
		"1 if new requests are refused because less than 64 MiB are free on the disk.")
	commitsFigure = figure("commit_total", "Transactions that have ended, by outcome.", "outcome")
	pendingFigure = figure("commit_pending", "Transactions whose outcome this node waits for.")
	syncFigure    = figure("clock_synchronized", "1 if the clock is in step.")
	boundFigure   = figure("clock_bound_seconds", "How far other correct nodes' clocks may be from it.")
	stoppedFigure = figure("table_stopped",
		"Whether this node's replica of the table has stopped: it diverged, or its machine panicked.", "table")
	divergedFigure = figure("table_diverged", "Nodes whose replica of the table was found to differ.", "table", "node")
	offsetFigure   = figure("clock_offset_seconds", "How far the cluster's time is ahead of the machine's clock.")
	skewFigure     = figure("clock_skew_seconds", "How far the peer's clock was ahead when it was last read.", "peer")
	driftFigure    = figure("clock_drift_ppm", "How much faster than the others' this node's clock runs.")
	wakeFigure     = figure("wake_late_seconds", "How much later than it asked for this process wakes.", "quantile")
	pausesFigure   = figure("pauses_total",
		"How often this process woke later than it asked for by more than a fifth of a round.")
	suspendedFigure = figure("suspended_seconds_total", "For how long this machine was suspended.")
	blockedFigure   = figure("commit_blocked", "Transactions whose outcome can not be known before other nodes are back.")
)

// Describe sends nothing: what there is depends on the node, so that nothing is checked
// beforehand.
func (figures) Describe(chan<- *prometheus.Desc) {}

// Collect sends the figures of now.
func (f figures) Collect(to chan<- prometheus.Metric) {
	st := f.s.c.Node.Status()
	out := sender(to)
	out.gauge(infoFigure, 1, st.Cluster, st.Name)
	out.gauge(readyFigure, truth(len(problems(st)) == 0))
	out.gauge(lifeFigure, float64(st.Incarnation))
	for _, m := range st.Members {
		if !m.Self {
			out.member(m)
		}
	}
	for _, g := range st.Groups {
		if g.SlotStatus != nil {
			out.slots("group/"+g.Name, *g.SlotStatus)
		} else {
			out.view("group/"+g.Name, g.ViewStatus)
		}
	}
	for _, t := range st.Tables {
		out.view("table/"+t.Name, t.ViewStatus)
		out.gauge(positionFigure, float64(t.Position), t.Name)
		out.gauge(waitingFigure, float64(t.Waiting), t.Name)
		out.gauge(stoppedFigure, truth(t.Stopped != ""), t.Name)
		for _, name := range t.Diverged {
			out.gauge(divergedFigure, 1, t.Name, name)
		}
	}
	for _, x := range st.Streams {
		name := "agree/" + x.Algorithm + "/" + strconv.Itoa(x.M)
		if x.Source != "" {
			name += "/" + x.Source
		}
		out.slots(name, x.SlotStatus)
	}
	for _, r := range st.Refused {
		out.count(refusedFigure, r.Times, r.Machine, r.From, r.Why)
	}
	for reason, n := range st.Strangers { // order: the registry sorts
		out.count(strangersFigure, n, reason)
	}
	out.count(strangeFigure, st.Strange)
	if st.Store != nil {
		out.store(*st.Store)
	}
	if c := st.Commit; c != nil {
		out.count(commitsFigure, c.Committed, "committed")
		out.count(commitsFigure, c.Aborted, "aborted")
		out.gauge(pendingFigure, float64(c.Pending))
		out.gauge(blockedFigure, float64(len(c.Blocked)))
	}
	out.clock(f.s.c.Node.Clock(), f.s.c.Node.Measure())
}

// sender is where figures go.
type sender chan<- prometheus.Metric

func (s sender) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (s sender) count(d *prometheus.Desc, n uint64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

func (s sender) member(m cluster.MemberStatus) {
	s.gauge(connectedFigure, truth(m.Connected), m.Name)
	s.gauge(expelledFigure, truth(m.Expelled), m.Name)
	s.count(connectsFigure, m.Connections, m.Name)
	s.count(framesInFigure, m.FramesIn, m.Name)
	s.count(framesOutFigure, m.FramesOut, m.Name)
	s.count(bytesInFigure, m.BytesIn, m.Name)
	s.count(bytesOutFigure, m.BytesOut, m.Name)
	s.count(lostFigure, m.FramesLost, m.Name)
	s.gauge(queuedFigure, float64(m.Queued), m.Name)
	for reason, n := range m.Dropped { // order: the registry sorts
		s.count(droppedFigure, n, m.Name, reason)
	}
	if m.RTT.Samples > 0 {
		s.gauge(rttFigure, m.RTT.Min.Seconds(), m.Name, "0")
		s.gauge(rttFigure, m.RTT.P50.Seconds(), m.Name, "0.5")
		s.gauge(rttFigure, m.RTT.P999.Seconds(), m.Name, "0.999")
	}
}

func (s sender) store(x cluster.StoreStatus) {
	s.count(recordsFigure, x.Records)
	s.count(durableFigure, x.Durable)
	s.count(storeFigure, x.Bytes)
	s.gauge(freeFigure, float64(x.Free))
	s.gauge(slowestFigure, x.Slowest.Seconds())
	s.gauge(fullFigure, truth(x.Full != ""))
}

func (s sender) view(name string, v cluster.ViewStatus) {
	s.gauge(inFigure, truth(v.In), name)
	s.gauge(viewFigure, float64(v.View), name)
	s.gauge(sizeFigure, float64(len(v.Members)), name)
	s.gauge(suspectsFigure, float64(len(v.Suspected)), name)
}

func (s sender) slots(name string, x cluster.SlotStatus) {
	s.count(openedFigure, x.Opened, name)
	s.gauge(doneFigure, float64(x.Done), name)
	s.count(abstainedFigure, x.Abstained, name)
}

// truth is 1 or 0.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (s sender) clock(r cluster.Reading, m cluster.Measurement) {
	s.gauge(syncFigure, truth(r.Synchronized))
	if r.Synchronized {
		s.gauge(boundFigure, r.Bound.Seconds())
	}
	s.gauge(offsetFigure, r.Offset.Seconds())
	s.gauge(driftFigure, m.Drift)
	for _, p := range m.Peers {
		if p.Read {
			s.gauge(skewFigure, p.Skew.Seconds(), p.Name)
		}
	}
	s.gauge(wakeFigure, m.Wake.Median.Seconds(), "0.5")
	s.gauge(wakeFigure, m.Wake.P999.Seconds(), "0.999")
	s.count(pausesFigure, m.Wake.Pauses)
	s.gauge(suspendedFigure, m.Suspended.Seconds())
}
