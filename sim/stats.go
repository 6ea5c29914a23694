package sim

// Faults counts the faults of a run by kind, each under the word for it.
func (s Stats) Faults() map[string]uint64 {
	return map[string]uint64{
		"messages lost": s.Lost, "messages doubled": s.Doubled, "messages overtaken": s.Overtaken,
		"messages late": s.Late, "messages cut off": s.Cut, "messages without a link": s.NoEdge,
		"messages missed": s.Missed, "crashes": s.Crashes, "restarts": s.Restarts, "disks lost": s.LostDisks,
		"pauses": s.Pauses, "false suspicions": s.FalseSuspicions, "messages of liars": s.FromFaulty,
	}
}
