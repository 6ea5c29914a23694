package audit

import (
	"slices"

	"parley"
	"parley/lockstep"
	"parley/trace"
)

// evidence is what the traces of one machine show.
type evidence struct {
	w    *trace.MergedTrace
	h    *parley.History
	p    parley.Protocol
	last int // last round of an instance, for a stream

	only     uint64 // the slot that is judged; 0: all
	settle   parley.Tick
	round    parley.Tick
	end      parley.Tick // the first end of a correct node
	crashed  parley.Set  // ended before the others, permanently
	held     parley.Set  // abstained
	absences absences    // of nodes that had to rejoin
	mute     parley.Set  // restarted after a crash
	unknown  parley.Set  // with incomplete traces, though possibly correct
	partial  parley.Set  // crashed or unknown: their requests may be missing

	facts trace.Facts
}

// The reasons that a process records when it abstains because it was late or disconnected, and when it starts to
// rejoin.
const (
	late  = parley.WokeTooLate
	few   = parley.HeardTooFew
	leave = "lost touch: returns"
)

func newEvidence(w *trace.MergedTrace, o Options) *evidence {
	e := &evidence{
		w: w, facts: w.Header.Facts, only: o.Slot, settle: parley.Tick(o.Settle), round: parley.Tick(w.Header.Node.Round),
	}
	e.h = w.Log.History(w.Header)
	e.h.Over, e.h.Faulty = true, parley.Set{} // failures differ between instances
	latest := parley.Tick(0)
	for _, end := range w.Ends {
		latest = max(latest, end)
	}
	for id, end := range w.Ends {
		if w.Crashed.Has(id) && end+2*e.settle < latest || end+4*e.settle < latest {
			e.crashed.Add(id)
		}
	}
	for id := range parley.ID(w.Header.N) {
		if slices.Contains(o.Crashed, w.Header.Name(id)) {
			e.crashed.Add(id)
		}
	}
	e.end = latest
	for id, end := range w.Ends {
		if !e.crashed.Has(id) {
			e.end = min(e.end, end)
		}
	}
	e.unknown = w.Absent
	for id := range w.Dropped {
		e.unknown.Add(id)
	}
	if w.Recorded {
		e.unknown = parley.Everyone(w.Header.N).Minus(w.Liars)
	}
	e.partial = union(e.unknown, w.Crashed)
	e.gather()
	return e
}

func union(a, b parley.Set) parley.Set {
	for id := range b.All() {
		a.Add(id)
	}
	return a
}

// whose returns the processes at which events occurred.
func whose(list []parley.ExternalEvent) (set parley.Set) {
	for i := range list {
		set.Add(list[i].At)
	}
	return set
}

// gather collects the faults of processes.
func (e *evidence) gather() {
	for i := range e.w.Log.Events {
		v := &e.w.Log.Events[i]
		switch v.Op {
		case trace.Indicate:
			if v.Msg.Kind == parley.Suspect && !e.w.Liars.Has(v.At) && int(v.Msg.Origin) < e.h.N && !e.gone(v.Msg.Origin) {
				e.facts.Processes.Suspected = true
			}
		case trace.Restart:
			e.mute.Add(v.At)
			if v.Msg.Value == 1 {
				e.facts.Processes.LostDisk = true
			}
		case trace.Pause:
			e.facts.Processes.Paused = true
		case trace.Refuse:
			if why := string(v.Msg.Body); why == late || why == few {
				e.held.Add(v.At)
			}
		}
	}
}

// gone reports whether a suspicion of a node is correct.
func (e *evidence) gone(id parley.ID) bool {
	return e.w.Liars.Has(id) || e.crashed.Has(id) || e.w.Crashed.Has(id) || e.w.Restarted.Has(id)
}

// assumptions returns the run conditions if the given processes failed.
func (e *evidence) assumptions(failed parley.Set, facts trace.Facts) parley.RunConditions {
	switch {
	case e.w.Liars != parley.Set{}:
		// Links and signatures are real, so nobody can forge them.
		facts.Worst = parley.SignedByzantineFaults
	case e.held.Minus(e.crashed) != parley.Set{}:
		facts.Worst = parley.OmissionFaults
	}
	if e.p.Faults == parley.OralByzantineFaults && facts.Worst == parley.SignedByzantineFaults {
		facts.Worst = parley.OralByzantineFaults
	}
	facts.Processes.Minority = 2*(e.p.N-failed.Len()) <= e.p.N
	return facts.RunConditions(e.p, &parley.History{N: e.h.N, Faulty: failed})
}

// slots are the slots of one machine, by number, as the frames of correct nodes show them.
type slots map[uint64]*slot

// slot is one instance.
type slot struct {
	number  uint64
	begun   map[parley.ID]parley.Tick // start, by the first sent frame
	ended   parley.Set                // nodes that sent the frame of the last round
	held    parley.Set                // nodes that abstained
	network parley.NetworkFaults
}

func (f slots) at(number uint64) *slot {
	s := f[number]
	if s == nil {
		s = &slot{number: number, begun: make(map[parley.ID]parley.Tick)}
		f[number] = s
	}
	return s
}

// first returns when the slot began at the first correct node.
func (s *slot) first() (when parley.Tick, ok bool) {
	for _, t := range s.begun {
		if !ok || t < when {
			when, ok = t, true
		}
	}
	return when, ok
}

// frames evaluates the frames of correct nodes. A frame was late if it arrived after the end of its round,
// counted from the receiver's own start.
func (e *evidence) frames() slots {
	f := make(slots)
	known := func(id parley.ID) bool { return !e.w.Liars.Has(id) && !e.w.Absent.Has(id) }
	for i := range e.w.Log.Events {
		v := &e.w.Log.Events[i]
		switch {
		case v.Op == trace.Refuse && (string(v.Msg.Body) == late || string(v.Msg.Body) == few):
			e.abstained(f, v)
		case v.Msg.Kind != lockstep.Frame || v.Op != trace.Send && v.Op != trace.Receive && v.Op != trace.Lose:
		case v.Op == trace.Send && known(v.At):
			s := f.at(v.Msg.Value)
			if _, again := s.begun[v.At]; !again {
				s.begun[v.At] = v.Time
			}
			if v.Msg.Seq == uint64(e.last) {
				s.ended.Add(v.At)
			}
		case v.Op == trace.Lose && known(v.At) && known(v.Peer):
			f.at(v.Msg.Value).network.Lost = true
		case v.Op == trace.Receive && known(v.Peer):
			s := f.at(v.Msg.Value)
			begun, has := s.begun[v.At]
			if has && v.Time > begun+parley.Tick(v.Msg.Seq+1)*e.round && e.round > 0 {
				s.network.Late = true
			}
		}
	}
	return f
}

// abstained marks the slots from which a node may have abstained: those in flight.
func (e *evidence) abstained(f slots, v *trace.Event) {
	for _, s := range f {
		when, ok := s.begun[v.At]
		if !ok {
			when, ok = s.first()
		}
		if ok && v.Time >= when && (v.Time <= when+parley.Tick(e.last+3)*e.round || !s.ended.Has(v.At)) {
			s.held.Add(v.At)
		}
	}
}
