package audit

import (
	"parley"
	"parley/broadcast/byzantine"
	"parley/lockstep"
	"parley/trace"
)

// evidence is what the traces of one machine show.
type evidence struct {
	w    *trace.MergedTrace
	h    *parley.History
	p    parley.Protocol
	last int // round of an instance, of a stream of them

	settle  parley.Tick
	round   parley.Tick
	end     parley.Tick // the first one at which a correct node ends
	crashed parley.Set  // ended before the others, for good
	held    parley.Set  // abstained
	outs    absences    // of those who had to return
	mute    parley.Set  // came back after a crash
	unknown parley.Set  // of whom not everything is known, though they may be correct
	partial parley.Set  // crashed or unknown: of whom requests may be missing

	facts trace.Facts
}

// What a process refuses itself when it was held up, or cut off from the others, and when it
// begins to return.
const (
	late  = "woke too late: abstains"
	few   = "heard too few: abstains"
	leave = "lost touch: returns"
)

func newEvidence(w *trace.MergedTrace, o Options) *evidence {
	e := &evidence{w: w, facts: w.Header.Facts, settle: parley.Tick(o.Settle), round: parley.Tick(w.Header.Node.Round)}
	e.h = w.Log.History(w.Header)
	e.h.Over, e.h.Faulty = true, parley.Set{} // who failed differs from instance to instance
	latest := parley.Tick(0)
	for _, end := range w.Ends {
		latest = max(latest, end)
	}
	for id, end := range w.Ends {
		if w.Crashed.Has(id) && end+2*e.settle < latest || end+4*e.settle < latest {
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

// whose are the processes at which something happened.
func whose(list []parley.ExternalEvent) (set parley.Set) {
	for i := range list {
		set.Add(list[i].At)
	}
	return set
}

// gather notes what befell processes.
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

// gone tells whether a node may rightly be suspected.
func (e *evidence) gone(id parley.ID) bool {
	return e.w.Liars.Has(id) || e.crashed.Has(id) || e.w.Crashed.Has(id) || e.w.Restarted.Has(id)
}

// assumptions are the circumstances in which the given processes failed.
func (e *evidence) assumptions(failed parley.Set, facts trace.Facts) parley.RunConditions {
	switch {
	case e.w.Liars != parley.Set{}:
		// Links and signatures are real: nobody can forge those of others.
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

// slots is what is known of the slots of one machine from the frames of correct nodes, by number.
type slots map[uint64]*slot

// slot is one instance.
type slot struct {
	number  uint64
	begun   map[parley.ID]parley.Tick // when a node sent its first frame
	ended   parley.Set                // who sent the frame of the last round
	held    parley.Set                // who abstained
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

// numberOf is the number of the slot of a frame, with that of the view in which slots are
// counted anew.
func numberOf(v *trace.Event) uint64 { return uint64(v.Epoch)<<40 | v.Msg.Value }

// first is when the slot began at the first correct node.
func (s *slot) first() (when parley.Tick, ok bool) {
	for _, t := range s.begun {
		if !ok || t < when {
			when, ok = t, true
		}
	}
	return when, ok
}

// frames looks through the frames: of correct nodes alone. A frame of one of them that came
// when the round was over by the receiver's own beginning was late.
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
			s := f.at(numberOf(v))
			if _, again := s.begun[v.At]; !again {
				s.begun[v.At] = v.Time
			}
			if v.Msg.Seq == uint64(e.last) {
				s.ended.Add(v.At)
			}
		case v.Op == trace.Lose && known(v.At) && known(v.Peer):
			f.at(numberOf(v)).network.Lost = true
		case v.Op == trace.Receive && known(v.Peer):
			s := f.at(numberOf(v))
			begun, has := s.begun[v.At]
			round := byzantine.In(uint64(v.Epoch), lockstep.Schedule{Delta: e.round}).Delta
			if has && v.Time > begun+parley.Tick(v.Msg.Seq+1)*round && e.round > 0 {
				s.network.Late = true
			}
		}
	}
	return f
}

// abstained finds the slots that a node may have abstained from: those that go on.
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
