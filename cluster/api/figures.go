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
	out.gauge("info", 1, "cluster", st.Cluster, "node", st.Name)
	out.gauge("ready", truth(len(problems(st)) == 0))
	out.gauge("incarnation", float64(st.Incarnation))
	for _, m := range st.Members {
		if !m.Self {
			out.member(m)
		}
	}
	for _, g := range st.Groups {
		out.view("group/"+g.Name, g.ViewStatus)
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
		out.count("refused_total", r.Times,
			"machine", r.Machine, "peer", r.From, "reason", r.Why)
	}
	for reason, n := range st.Strangers { // order: the registry sorts
		out.count("strangers_total", n,
			"reason", reason)
	}
	out.count("strange_total", st.Strange)
	if st.Store != nil {
		out.store(*st.Store)
	}
	if c := st.Commit; c != nil {
		out.count("commit_total", c.Committed, "outcome", "committed")
		out.count("commit_total", c.Aborted, "outcome", "aborted")
		out.gauge("commit_pending", float64(c.Pending))
		out.gauge("commit_blocked", float64(len(c.Blocked)))
	}
	out.clock(f.s.c.Node.Clock(), f.s.c.Node.Measure())
}

// sender is the destination of metrics. Labels are pairs of a name and a value.
type sender chan<- prometheus.Metric

func (s sender) gauge(name string, v float64, labels ...string) {
	s.send(prometheus.GaugeValue, name, v, labels)
}

func (s sender) count(name string, n uint64, labels ...string) {
	s.send(prometheus.CounterValue, name, float64(n), labels)
}

func (s sender) send(kind prometheus.ValueType, name string, v float64, labels []string) {
	var names, values []string
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	s <- prometheus.MustNewConstMetric(prometheus.NewDesc("parley_"+name, meanings[name], names, nil), kind, v, values...)
}

func (s sender) member(m cluster.MemberStatus) {
	peer := []string{"peer", m.Name}
	s.gauge("link_connected", truth(m.Connected), peer...)
	s.gauge("member_expelled", truth(m.Expelled), peer...)
	s.count("link_connections_total", m.Connections, peer...)
	s.count("link_frames_in_total", m.FramesIn, peer...)
	s.count("link_frames_out_total", m.FramesOut, peer...)
	s.count("link_bytes_in_total", m.BytesIn, peer...)
	s.count("link_bytes_out_total", m.BytesOut, peer...)
	s.count("link_frames_lost_total", m.FramesLost, peer...)
	s.gauge("link_queued_bytes", float64(m.Queued), peer...)
	for reason, n := range m.Dropped { // order: the registry sorts
		s.count("link_dropped_total", n, "peer", m.Name, "reason", reason)
	}
	if r := m.RTT; r.Samples > 0 {
		s.gauge("link_rtt_seconds", r.Min.Seconds(), "peer", m.Name, "quantile", "0")
		s.gauge("link_rtt_seconds", r.P50.Seconds(), "peer", m.Name, "quantile", "0.5")
		s.gauge("link_rtt_seconds", r.P999.Seconds(), "peer", m.Name, "quantile", "0.999")
	}
}

func (s sender) table(t cluster.TableStatus) {
	s.view("table/"+t.Name, t.ViewStatus)
	table := []string{"table", t.Name}
	s.gauge("table_position", float64(t.Position), table...)
	s.gauge("table_waiting", float64(t.Waiting), table...)
	s.gauge("table_stopped", truth(t.Stopped != ""), table...)
	for _, node := range t.Diverged {
		s.gauge("table_diverged", 1, "table", t.Name, "node", node)
	}
}

func (s sender) store(x cluster.StoreStatus) {
	s.count("store_records_total", x.Records)
	s.count("store_durable_total", x.Durable)
	s.count("store_bytes_total", x.Bytes)
	s.gauge("store_free_bytes", float64(x.Free))
	s.gauge("store_slowest_commit_seconds", x.Slowest.Seconds())
	s.gauge("store_refuses", truth(x.Full != ""))
}

func (s sender) view(name string, v cluster.ViewStatus) {
	s.gauge("view_in", truth(v.In), "name", name)
	s.gauge("view_number", float64(v.View), "name", name)
	s.gauge("view_members", float64(len(v.Members)), "name", name)
	s.gauge("view_suspected", float64(len(v.Suspected)), "name", name)
}

func (s sender) slots(name string, x cluster.SlotStatus) {
	stream := []string{"stream", name}
	s.count("slots_opened_total", x.Opened,
		stream...)
	s.gauge("slots_done", float64(x.Done),
		stream...)
	s.count("slots_abstained_total", x.Abstained, stream...)
}

// truth returns 1 for true and 0 for false.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (s sender) clock(r cluster.Reading, m cluster.Measurement) {
	s.gauge("clock_synchronized", truth(r.Synchronized))
	if r.Synchronized {
		s.gauge("clock_bound_seconds", r.Bound.Seconds())
	}
	s.gauge("clock_offset_seconds", r.Offset.Seconds())
	s.gauge("clock_drift_ppm", m.Drift)
	for _, p := range m.Peers {
		if p.Read {
			s.gauge("clock_skew_seconds", p.Skew.Seconds(),
				"peer", p.Name)
		}
	}
	s.gauge("wake_late_seconds", m.Wake.Median.Seconds(), "quantile", "0.5")
	s.gauge("wake_late_seconds", m.Wake.P999.Seconds(), "quantile", "0.999")
	s.count("pauses_total", m.Wake.Pauses)
	s.gauge("suspended_seconds_total", m.Suspended.Seconds())
}
