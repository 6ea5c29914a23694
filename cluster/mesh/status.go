package mesh

import (
	"time"

	"parley"
	"parley/cluster/link"
)

// MemberStatus is what this node knows about one member of the cluster.
type MemberStatus struct {
	Name      string `json:"name"`
	Address   string `json:"address"`
	Self      bool   `json:"self,omitempty"`
	Connected bool   `json:"connected"`
	// Expelled says that its messages are no longer accepted.
	Expelled bool `json:"expelled,omitempty"`
	// In are the groups and tables whose views contain it, as far as this node knows.
	In          []string          `json:"in,omitempty"`
	Incarnation uint64            `json:"incarnation,omitempty"`
	Since       *time.Time        `json:"since,omitempty"` // of the connection
	Connections uint64            `json:"connections,omitempty"`
	FramesIn    uint64            `json:"framesIn"`
	FramesOut   uint64            `json:"framesOut"`
	BytesIn     uint64            `json:"bytesIn"`
	BytesOut    uint64            `json:"bytesOut"`
	FramesLost  uint64            `json:"framesLost"`
	Queued      int               `json:"queued"` // bytes
	RTT         RTTStatus         `json:"rtt"`
	Dropped     map[string]uint64 `json:"dropped,omitempty"` // connections and frames, by reason
}

// RTTStatus summarizes round-trip times of pings; in JSON they are in nanoseconds.
type RTTStatus struct {
	Min     time.Duration `json:"min"`
	P50     time.Duration `json:"p50"`
	P999    time.Duration `json:"p999"`
	Samples int           `json:"samples"`
}

// Status returns what this node knows about all members. It also counts, by reason, the connections that do not come
// from a known member. The argument in holds the machines whose views contain each member. The function expelled
// returns from which services a member is expelled, and how many of its frames were dropped because of that.
func (m *Mesh) Status(in [][]string, expelled func(parley.ID) (from, dropped uint64),
) ([]MemberStatus, map[string]uint64) {
	stats := m.Stats()
	byName := func(of map[link.Reason]uint64) map[string]uint64 {
		out := make(map[string]uint64)
		for why, times := range of {
			out[why.String()] = times
		}
		return out
	}
	var list []MemberStatus
	for id, name := range m.k.Members {
		s := MemberStatus{Name: name, Address: m.c.Addresses[id], In: in[id]}
		if parley.ID(id) == m.k.Self {
			s.Self, s.Connected, s.Incarnation = true, true, m.k.Life
		}
		list = append(list, s)
	}
	for _, p := range stats.Peers {
		s := &list[p.ID]
		s.Connected, s.Incarnation, s.Connections = p.Connected, p.Incarnation, p.Connections
		s.FramesIn, s.FramesOut, s.BytesIn, s.BytesOut = p.FramesIn, p.FramesOut, p.BytesIn, p.BytesOut
		s.FramesLost, s.Queued, s.Dropped = p.FramesLost, p.Queued, byName(p.Refused)
		s.RTT = RTTStatus{p.RTT.Min, p.RTT.P50, p.RTT.P999, p.RTT.Samples}
		if p.Connected {
			since := p.Since
			s.Since = &since
		}
		from, dropped := expelled(p.ID)
		s.Expelled = from != 0
		for why, times := range map[string]uint64{
			"expelled": dropped, "no machine": m.k.Host.StrangeOf(p.ID), "no message": m.k.Host.Malformed(p.ID),
		} {
			if times > 0 {
				s.Dropped[why] = times
			}
		}
	}
	return list, byName(stats.Refused)
}
