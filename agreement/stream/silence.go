package stream

import (
	"encoding/binary"
	"slices"

	"parley"
)

// slotAnswer is the last slotReply of a process.
type slotAnswer struct {
	came, in bool
	slot     uint64
}

// Start: a process that restarts says nothing in slots in which it may have spoken before.
func (m *viewMachine) Start(s *parley.Step) {
	if !s.Restart {
		return
	}
	for _, r := range s.Log {
		if len(r.Body) == 8 {
			m.reserve, m.saved = max(m.reserve, binary.BigEndian.Uint64(r.Body)), true
		}
	}
	m.quiet, m.newest = m.reserve, m.reserve
	if !m.saved && !m.DiskIntact {
		m.lost = true
		m.locate(s)
		return
	}
	m.announce(s)
}

// announce says in which slots this process is silent.
func (m *viewMachine) announce(s *parley.Step) {
	if m.quiet > 0 && m.self != m.Source {
		s.Send(m.Source, parley.Msg{Kind: silence, Seq: m.quiet})
	}
}

// locate asks all others for the last slots that they know.
func (m *viewMachine) locate(s *parley.Step) {
	s.SendAll(parley.Msg{Kind: slotQuery})
	s.SetTimer(slotsTimer, m.wait)
}

// past returns the first slot from next on in which all processes speak that the source knows of. A process is
// believed only if the slots in which it is silent are near: a faulty process may name any slot.
func (m *viewMachine) past(next uint64) uint64 {
	limit := next + uint64(m.Window)
	for _, x := range m.silent {
		if x >= next && x < limit {
			next = x + 1
		}
	}
	return next
}

// abandoned returns the last slot in which so many processes are silent that no quorum can speak, or 0.
func (m *viewMachine) abandoned() uint64 {
	list := slices.Clone(m.silent)
	slices.SortFunc(list, descending)
	return list[m.N-m.quorum()]
}

// giveUp ends the wait for slots that cannot be decided.
func (m *viewMachine) giveUp(s *parley.Step) {
	upto := m.abandoned()
	for _, k := range m.slots {
		if k.pending && k.number <= upto {
			s.Indicate(parley.Msg{Kind: Unanswered, Seq: k.number, Value: k.request})
			k.pending = false
		}
	}
}

// rejoin ends the silence of a process that has lost its disk: it finds a slot after all slots in which it may have
// spoken. This process is one of the m faulty ones, so at most m-1 others are faulty. A correct source knows all its
// slots. Without the source, let k be the last slot in which this process spoke. The source had decided slot
// k-Window/2, so quorum-m correct others had spoken in it. If d correct others do not answer, quorum-m-d of these
// answer, and this is at least m. So the m-th greatest answer is at least k-Window/2, and it is not a lie. If the
// source restarted in between, it left out up to Window/2 slots, so two windows are safe.
func (m *viewMachine) rejoin(s *parley.Step) {
	came, in := 0, 0
	var list []uint64
	for q := range parley.ID(m.N) {
		if a := &m.replies[q]; a.came {
			if came++; a.in {
				in++
				list = append(list, a.slot)
			}
		}
	}
	source := m.replies[m.Source]
	need := m.N - 1 - max(0, min(m.M-1, m.quorum()-2*m.M))
	if came < m.N-1 && (in < need || m.self != m.Source && !source.in) {
		return
	}
	slices.SortFunc(list, descending)
	if len(list) >= max(m.M, 1) {
		m.quiet = list[max(m.M, 1)-1]
	}
	if m.quiet = max(m.quiet, source.slot); !source.in {
		m.quiet += 2 * uint64(m.Window)
	}
	m.lost, m.newest = false, m.quiet
	m.save(s, max(m.quiet, 1))
	s.StopTimer(slotsTimer)
	m.announce(s)
}

// save makes a reserve durable.
func (m *viewMachine) save(s *parley.Step, reserve uint64) {
	m.reserve, m.saved = reserve, true
	s.Append(binary.BigEndian.AppendUint64(nil, reserve))
	if m.records++; m.records >= recordsKept {
		m.records = 0
		s.Compact()
	}
}
