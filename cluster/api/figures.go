package api

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"parley/cluster"
)

// figures are the metrics of the node, collected on each scrape.
type figures struct{ s *Server }

// Describe sends nothing, which makes the collector unchecked: the set of metrics depends on the node.
func (figures) Describe(chan<- *prometheus.Desc) {}

// Collect sends the current metrics.
func (f figures) Collect(to chan<- prometheus.Metric) {
	st := f.s.c.Node.Status()
	out := sender(to)
	out.gauge("info", "1, with the cluster and the node.", 1, "cluster", st.Cluster, "node", st.Name)
	out.gauge("ready", "1 if the node is ready for clients.", truth(len(problems(st)) == 0))
	out.gauge("incarnation", "The number of this life of the node: that of a later one is larger.",
		float64(st.Incarnation))
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
		out.table(t)
	}
	for _, x := range st.Streams {
		name := "agree/" + x.Algorithm + "/" + strconv.Itoa(x.M)
		if x.Source != "" {
			name += "/" + x.Source
		}
		out.slots(name, x.SlotStatus)
	}
	for _, r := range st.Refused {
		out.count("refused_total", "Messages that a machine of this node did not accept of the peer, by reason.", r.Times,
			"machine", r.Machine, "peer", r.From, "reason", r.Why)
	}
	for reason, n := range st.Strangers { // order: the registry sorts
		out.count("strangers_total", "Connections for the other nodes that no member proved to be his, by reason.", n,
			"reason", reason)
	}
	out.count("strange_total", "Messages of other nodes for a machine that this node does not have.", st.Strange)
	if st.Store != nil {
		out.store(*st.Store)
	}
	if c := st.Commit; c != nil {
		const ended = "Transactions that have ended, by outcome."
		out.count("commit_total", ended, c.Committed, "outcome", "committed")
		out.count("commit_total", ended, c.Aborted, "outcome", "aborted")
		out.gauge("commit_pending", "Transactions whose outcome this node waits for.", float64(c.Pending))
		out.gauge("commit_blocked", "Transactions whose outcome can not be known before other nodes are back.",
			float64(len(c.Blocked)))
	}
	out.clock(f.s.c.Node.Clock(), f.s.c.Node.Measure())
}

// sender is the destination of metrics. Labels are pairs of a name and a value.
type sender chan<- prometheus.Metric

func (s sender) gauge(name, help string, v float64, labels ...string) {
	s.send(prometheus.GaugeValue, name, help, v, labels)
}

func (s sender) count(name, help string, n uint64, labels ...string) {
	s.send(prometheus.CounterValue, name, help, float64(n), labels)
}

func (s sender) send(kind prometheus.ValueType, name, help string, v float64, labels []string) {
	var names, values []string
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	s <- prometheus.MustNewConstMetric(prometheus.NewDesc("parley_"+name, help, names, nil), kind, v, values...)
}

func (s sender) member(m cluster.MemberStatus) {
	peer := []string{"peer", m.Name}
	s.gauge("link_connected", "1 if there is a connection to the peer.", truth(m.Connected), peer...)
	s.gauge("member_expelled", "1 if the member has been expelled.", truth(m.Expelled), peer...)
	s.count("link_connections_total", "How often the peer has connected.", m.Connections, peer...)
	s.count("link_frames_in_total", "Frames from the peer.", m.FramesIn, peer...)
	s.count("link_frames_out_total", "Frames to the peer.", m.FramesOut, peer...)
	s.count("link_bytes_in_total", "Bytes from the peer.", m.BytesIn, peer...)
	s.count("link_bytes_out_total", "Bytes to the peer.", m.BytesOut, peer...)
	s.count("link_frames_lost_total", "Frames that were queued when a connection ended.", m.FramesLost, peer...)
	s.gauge("link_queued_bytes", "Bytes that wait to be sent to the peer.", float64(m.Queued), peer...)
	for reason, n := range m.Dropped { // order: the registry sorts
		s.count("link_dropped_total", "Connections and frames dropped, by reason.", n, "peer", m.Name, "reason", reason)
	}
	if r := m.RTT; r.Samples > 0 {
		const pings = "How long the last pings to the peer took to be answered."
		s.gauge("link_rtt_seconds", pings, r.Min.Seconds(), "peer", m.Name, "quantile", "0")
		s.gauge("link_rtt_seconds", pings, r.P50.Seconds(), "peer", m.Name, "quantile", "0.5")
		s.gauge("link_rtt_seconds", pings, r.P999.Seconds(), "peer", m.Name, "quantile", "0.999")
	}
}

func (s sender) table(t cluster.TableStatus) {
	s.view("table/"+t.Name, t.ViewStatus)
	table := []string{"table", t.Name}
	s.gauge("table_position", "How many commands the copy has applied.", float64(t.Position), table...)
	s.gauge("table_waiting", "Commands of this node without an answer.", float64(t.Waiting), table...)
	s.gauge("table_stopped", "Whether this node's replica of the table has stopped: it diverged, or its machine panicked.",
		truth(t.Stopped != ""), table...)
	for _, node := range t.Diverged {
		s.gauge("table_diverged", "Nodes whose replica of the table was found to differ.", 1, "table", t.Name, "node", node)
	}
}

func (s sender) store(x cluster.StoreStatus) {
	s.count("store_records_total", "Records handed to the disk.", x.Records)
	s.count("store_durable_total", "Records that are on the disk.", x.Durable)
	s.count("store_bytes_total", "Bytes of records.", x.Bytes)
	s.gauge("store_free_bytes", "Bytes that were free on the disk at most a second ago.", float64(x.Free))
	s.gauge("store_slowest_commit_seconds", "How long the slowest commit took since the node began.", x.Slowest.Seconds())
	s.gauge("store_refuses", "1 if new requests are refused because less than 64 MiB are free on the disk.",
		truth(x.Full != ""))
}

func (s sender) view(name string, v cluster.ViewStatus) {
	s.gauge("view_in", "1 if this node is a member of the group or table.", truth(v.In), "name", name)
	s.gauge("view_number", "The number of the view of the group or table.", float64(v.View), "name", name)
	s.gauge("view_members", "How many members the view has.", float64(len(v.Members)), "name", name)
	s.gauge("view_suspected", "How many members this node suspects.", float64(len(v.Suspected)), "name", name)
}

func (s sender) slots(name string, x cluster.SlotStatus) {
	stream := []string{"stream", name}
	s.count("slots_opened_total", "Agreements that this node has begun or joined, by stream or group.", x.Opened,
		stream...)
	s.gauge("slots_done", "The number of the agreement up to which all are over, by stream or group.", float64(x.Done),
		stream...)
	s.count("slots_abstained_total", "Agreements in which this node took no part, for it was held up or has lived before.",
		x.Abstained, stream...)
}

// truth returns 1 for true and 0 for false.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (s sender) clock(r cluster.Reading, m cluster.Measurement) {
	s.gauge("clock_synchronized", "1 if the clock is in step.", truth(r.Synchronized))
	if r.Synchronized {
		s.gauge("clock_bound_seconds", "How far other correct nodes' clocks may be from it.", r.Bound.Seconds())
	}
	s.gauge("clock_offset_seconds", "How far the cluster's time is ahead of the machine's clock.", r.Offset.Seconds())
	s.gauge("clock_drift_ppm", "How much faster than the others' this node's clock runs.", m.Drift)
	for _, p := range m.Peers {
		if p.Read {
			s.gauge("clock_skew_seconds", "How far the peer's clock was ahead when it was last read.", p.Skew.Seconds(),
				"peer", p.Name)
		}
	}
	const late = "How much later than it asked for this process wakes."
	s.gauge("wake_late_seconds", late, m.Wake.Median.Seconds(), "quantile", "0.5")
	s.gauge("wake_late_seconds", late, m.Wake.P999.Seconds(), "quantile", "0.999")
	s.count("pauses_total", "How often this process woke later than it asked for by more than a fifth of a round.",
		m.Wake.Pauses)
	s.gauge("suspended_seconds_total", "For how long this machine was suspended.", m.Suspended.Seconds())
}
