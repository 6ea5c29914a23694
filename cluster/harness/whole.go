package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"parley"
	"parley/trace"
)

// runRecord is what is known of a run besides the records of its processes.
type runRecord struct {
	*Run
	began     clock
	late      time.Duration
	stopped   map[parley.ID][]trace.Event // pauses
	died      map[parley.ID][]parley.Tick // by incarnation
	restarted map[parley.ID][]parley.Tick // when processes restarted
	lost      map[parley.ID]uint64        // the first incarnation after a disk was lost

	weathered   uint64 // messages lost because of the weather
	chance, cut bool   // some of these: by chance, and because of a cut
}

func newRunRecord(r *Run) runRecord {
	return runRecord{
		Run: r, stopped: make(map[parley.ID][]trace.Event), died: make(map[parley.ID][]parley.Tick),
		restarted: make(map[parley.ID][]parley.Tick), lost: make(map[parley.ID]uint64),
	}
}

func (r *runRecord) traceOf(id parley.ID, life uint64) string {
	return filepath.Join(r.Dir, fmt.Sprintf("%s-%d.jsonl", name(id), life))
}

// stepsBefore returns how many steps the machine of a process has taken before an incarnation.
func (r *runRecord) stepsBefore(id parley.ID, life uint64) (n int, err error) {
	for l := uint64(1); l < life; l++ {
		t, err := r.recorded(id, l)
		if err != nil {
			return 0, err
		}
		n += steps(t.Log.Events)
	}
	return n, nil
}

// merge merges the traces of all processes.
func (r *runRecord) merge(members []*child, over bool) (trace.Header, *trace.Log, error) {
	var traces []trace.Trace
	var up parley.Set // and not a liar
	for id, c := range members {
		if !c.killed && !r.Liars.Has(parley.ID(id)) {
			up.Add(parley.ID(id))
		}
		for life := uint64(1); life <= c.life; life++ {
			t, err := r.readTrace(parley.ID(id), life)
			if err != nil {
				return trace.Header{}, nil, err
			}
			traces = append(traces, t)
		}
	}
	w, err := trace.Merge(traces, trace.Merging{Grace: time.Duration(max(r.Promised.Delay, r.longest()))})
	if err != nil {
		return trace.Header{}, nil, err
	}
	h := r.Header
	h.Facts = r.facts(w, up)
	h.Facts.Over = over
	return h, w.Log, nil
}

// longest returns the maximum delay that the weather adds to a message.
func (r *runRecord) longest() parley.Tick {
	most := r.Delay.Most
	for _, l := range r.Links {
		most = max(most, l.Delay.Most)
	}
	return most
}

// readTrace reads the trace of one incarnation of a process, and adds what was done to it.
func (r *runRecord) readTrace(id parley.ID, life uint64) (trace.Trace, error) {
	t, err := r.recorded(id, life)
	if err != nil {
		return t, err
	}
	log := &trace.Log{Keep: true, Gaps: t.Log.Gaps, Broken: t.Log.Broken}
	var more []trace.Event
	if life == 1 {
		more = r.stopped[id]
	}
	last := parley.Tick(0)
	add := func(e trace.Event) {
		for len(more) > 0 && more[0].Time <= e.Time {
			log.Add(more[0])
			more = more[1:]
		}
		last = max(last, e.Time)
		if e.Op == trace.Restart && r.lost[id] == life {
			e.Msg.Value = 1
		}
		// What a liar refuses does not matter, except that it omits to receive a message.
		if e.Op != trace.Refuse || !r.Liars.Has(id) || string(e.Msg.Body) == parley.Omitted {
			log.Add(e)
		}
	}
	crashed := false
	for _, e := range t.Log.Events {
		if e.Op == trace.Lose && e.Msg.Value == byLink && r.wasDown(e.Peer, e.Msg.Seq, e.Time) {
			continue
		}
		add(e)
		crashed = e.Op == trace.Crash
		if e.Op == trace.Lose {
			r.countMissed(e)
		}
	}
	if died := r.died[id]; int(life) <= len(died) && !crashed {
		add(trace.Event{Op: trace.Crash, At: id, Time: max(last, died[life-1])})
	}
	t.Log = log
	return t, nil
}

// recorded reads the trace of one incarnation of a process. It is empty for a process killed before it
// wrote anything.
func (r *runRecord) recorded(id parley.ID, life uint64) (trace.Trace, error) {
	f, err := os.Open(r.traceOf(id, life))
	if err != nil {
		return trace.Trace{}, err
	}
	defer func() { _ = f.Close() }()
	all, err := trace.ReadAll(name(id), f)
	switch {
	case errors.Is(err, trace.ErrEmpty) && int(life) <= len(r.died[id]):
		return trace.Trace{Name: name(id), Header: r.headerOf(id, life), Log: &trace.Log{Keep: true, Broken: true}}, nil
	case err != nil:
		return trace.Trace{}, err
	}
	return all[0], nil
}

// headerOf returns the header for the trace of one incarnation of a process.
func (r *runRecord) headerOf(id parley.ID, life uint64) trace.Header {
	h := r.Header
	h.Node = &trace.Node{Cluster: "run", Machine: h.Protocol, Channel: channel, Self: int(id), Life: life, Numbered: true}
	if !r.began.began.IsZero() {
		h.Node.Began = r.began.began.UnixNano()
	}
	return h
}

// facts returns the observed conditions of the run.
func (r *runRecord) facts(w *trace.MergedTrace, up parley.Set) trace.Facts {
	f := w.Header.Facts
	f.Network.Late = r.slow(w.Log)
	f.Processes.LostDisk = len(r.lost) > 0
	f.Processes.Suspected = r.suspected(w.Log)
	f.Processes.Paused = r.late > time.Duration(r.Promised.Delay)*r.Tick || r.overslept(w.Log) || r.WrongClock(r.Liars)
	f.Network.Lost, f.Network.Cut = w.Lost > r.weathered, f.Network.Cut || r.cut
	f.Network.Lost = f.Network.Lost || r.chance
	now := parley.Tick(0)
	if n := len(w.Log.Events); n > 0 {
		now = w.Log.Events[n-1].Time
	}
	joined := r.Joined(up, now)
	f.Network.Disconnected, f.Processes.Minority = joined < up.Len(), 2*joined <= r.Header.N
	return f
}

// countMissed counts a message lost because of the weather.
func (r *runRecord) countMissed(e trace.Event) {
	if e.Msg.Value == byLink {
		return
	}
	weather := r.Weather()
	if r.weathered++; e.Msg.Value == byChance {
		r.chance = true
	} else if weather.Edge(e.At, e.Peer) || !r.Protocol.Relays {
		r.cut = true
	}
}

// wasDown returns whether a message that a broken link refused was for an incarnation that had ended. The
// link lost nothing then. A sender may find the link broken before the end of the process is recorded: a
// delay up to a second counts, because the computer may be busy. life 0 stands for the incarnation at the
// time of the send.
func (r *runRecord) wasDown(id parley.ID, life uint64, when parley.Tick) bool {
	noted := when + parley.Tick(time.Second/r.Tick)
	died := r.died[id]
	if life > 0 {
		return life <= uint64(len(died)) && died[life-1] <= noted
	}
	by := func(all []parley.Tick, t parley.Tick) int {
		return len(all) - len(slices.DeleteFunc(slices.Clone(all), func(x parley.Tick) bool { return x <= t }))
	}
	return by(died, noted) > by(r.restarted[id], when)
}

// slow returns whether a message took longer than the protocol was promised.
func (r *runRecord) slow(log *trace.Log) bool {
	return slices.ContainsFunc(log.Events, func(e trace.Event) bool {
		return e.Op == trace.Receive && e.Cause > 0 && e.Time-log.Events[e.Cause-1].Time > r.Promised.Delay
	})
}

// overslept returns whether a correct process was paused, or found that it woke too late.
func (r *runRecord) overslept(log *trace.Log) bool {
	return slices.ContainsFunc(log.Events, func(e trace.Event) bool {
		switch {
		case r.Liars.Has(e.At):
			return false
		case e.Op == trace.Start:
			return r.Early && e.Time > 0
		case e.Op == trace.Refuse:
			return e.Peer == e.At && string(e.Msg.Body) == parley.WokeTooLate
		}
		return e.Op == trace.Pause
	})
}

// suspected returns whether a correct process suspected one that was up and correct.
func (r *runRecord) suspected(log *trace.Log) bool {
	down := r.Liars
	for _, e := range log.Events {
		switch {
		case e.Op == trace.Crash:
			down.Add(e.At)
		case e.Op == trace.Restart && !r.Liars.Has(e.At):
			down.Remove(e.At)
		case (e.Op == trace.Indicate || e.Op == trace.Suspect) && e.Msg.Kind == parley.Suspect &&
			!r.Liars.Has(e.At) && int(e.Msg.Origin) < r.Header.N && !down.Has(e.Msg.Origin):
			return true
		}
	}
	return false
}
