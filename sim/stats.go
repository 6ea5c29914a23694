package sim

import "parley"

// Faults counts the faults of a run by kind. The keys are descriptions in words.
func (s Stats) Faults() map[string]uint64 {
	return map[string]uint64{
		"messages lost": s.Lost, "messages doubled": s.Doubled, "messages overtaken": s.Overtaken,
		"messages late": s.Late, "messages cut off": s.Cut, "messages without a link": s.NoEdge,
		"messages missed": s.Missed, "crashes": s.Crashes, "restarts": s.Restarts, "disks lost": s.LostDisks,
		"pauses": s.Pauses, "false suspicions": s.FalseSuspicions, "messages of faulty processes": s.FromFaulty,
	}
}

// spent reports whether the steps are used up, and records that. Call it when a step is due.
func (s *Stats) spent(most uint64) bool {
	s.OutOfSteps = s.OutOfSteps || s.Steps >= most
	return s.OutOfSteps
}

// suspicion counts a suspicion; wrong marks a false one.
func (s *Stats) suspicion(wrong bool) {
	if s.Suspicions++; wrong {
		s.FalseSuspicions++
	}
}

// measure adds what a correct process sends to the traffic of its round. Without rounds, or without a cost by
// rounds, all traffic counts for round 0.
func (s *Stats) measure(p *parley.Protocol, e *parley.Effect, receivers int) {
	if p.Size == nil {
		return
	}
	round := int(e.Msg.Seq)
	if p.Timing != parley.Synchronous || p.Cost == nil {
		round = 0
	}
	for len(s.Sent) <= round {
		s.Sent = append(s.Sent, parley.Traffic{})
	}
	size := p.Size(parley.Env{From: e.From, To: e.To, Path: e.Path}, e.Msg)
	s.Sent[round] = s.Sent[round].Plus(size.Times(uint64(receivers)))
}
