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

// account is what is known of a run beside what its processes write down.
type account struct {
	*Run
	began   clock
	late    time.Duration
	stopped map[parley.ID][]trace.Event // pauses
	died    map[parley.ID][]parley.Tick // by life
	rose    map[parley.ID][]parley.Tick // when processes were started again
	lost    map[parley.ID]uint64        // the first life after a disk was lost

	weathered   uint64 // messages that the weather kept from arriving
	chance, cut bool   // of these: by chance, and because two were cut off
}

func newAccount(r *Run) account {
	return account{
		Run: r, stopped: make(map[parley.ID][]trace.Event), died: make(map[parley.ID][]parley.Tick),
		rose: make(map[parley.ID][]parley.Tick), lost: make(map[parley.ID]uint64),
	}
}

func (r *account) traceOf(id parley.ID, life uint64) string {
	return filepath.Join(r.Dir, fmt.Sprintf("%s-%d.jsonl", name(id), life))
}

// stepped is how many steps the machine of a process has taken before a life.
func (r *account) stepped(id parley.ID, life uint64) (n int, err error) {
	for l := uint64(1); l < life; l++ {
		t, err := r.recorded(id, l)
		if err != nil {
			return 0, err
		}
		n += steps(t.Log.Events)
	}
	return n, nil
}

// whole makes one trace of those of all processes.
func (r *account) whole(members []*child, over bool) (trace.Header, *trace.Log, error) {
	var traces []trace.Trace
	var up parley.Set // and does not lie
	for id, c := range members {
		if !c.killed && !r.Liars.Has(parley.ID(id)) {
			up.Add(parley.ID(id))
		}
		for life := uint64(1); life <= c.life; life++ {
			t, err := r.written(parley.ID(id), life)
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

// longest is the longest that the weather delays a message.
func (r *account) longest() parley.Tick {
	most := r.Delay.Most
	for _, l := range r.Links {
		most = max(most, l.Delay.Most)
	}
	return most
}

// written reads what one life of a process has written down, and adds what was done to it.
func (r *account) written(id parley.ID, life uint64) (trace.Trace, error) {
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
		if e.Op != trace.Refuse || !r.Liars.Has(id) { // what a liar thinks of others is its own matter
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
			r.missed(e)
		}
	}
	if died := r.died[id]; int(life) <= len(died) && !crashed {
		add(trace.Event{Op: trace.Crash, At: id, Time: max(last, died[life-1])})
	}
	t.Log = log
	return t, nil
}

// recorded reads the trace of one life of a process. One that was killed before it could write has an empty one.
func (r *account) recorded(id parley.ID, life uint64) (trace.Trace, error) {
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

// headerOf returns the header for the trace of one life of a process.
func (r *account) headerOf(id parley.ID, life uint64) trace.Header {
	h := r.Header
	h.Node = &trace.Node{Cluster: "run", Machine: h.Protocol, Channel: channel, Self: int(id), Life: life, Numbered: true}
	if !r.began.began.IsZero() {
		h.Node.Began = r.began.began.UnixNano()
	}
	return h
}

// facts are the circumstances of the run, as far as they show.
func (r *account) facts(w *trace.MergedTrace, up parley.Set) trace.Facts {
	f := w.Header.Facts
	f.Network.Late = r.slow(w.Log)
	f.Processes.LostDisk = len(r.lost) > 0
	f.Processes.Suspected = r.suspected(w.Log)
	f.Processes.Paused = r.late > time.Duration(r.Promised.Delay)*r.Tick || r.slept(w.Log) || r.WrongClock(r.Liars)
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

// missed counts a message that the weather kept from arriving.
func (r *account) missed(e trace.Event) {
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

// wasDown tells whether a message that a broken link refused was for a life of a process that had ended.
// The link lost nothing then. A sender may find the link broken before the end of the process is noted: up to
// a second counts, because the computer may be busy. Life 0 stands for the life at the time of the sending.
func (r *account) wasDown(id parley.ID, life uint64, when parley.Tick) bool {
	noted := when + parley.Tick(time.Second/r.Tick)
	died := r.died[id]
	if life > 0 {
		return life <= uint64(len(died)) && died[life-1] <= noted
	}
	by := func(all []parley.Tick, t parley.Tick) int {
		return len(all) - len(slices.DeleteFunc(slices.Clone(all), func(x parley.Tick) bool { return x <= t }))
	}
	return by(died, noted) > by(r.rose[id], when)
}

// slow tells whether a message took longer than the protocol was told.
func (r *account) slow(log *trace.Log) bool {
	return slices.ContainsFunc(log.Events, func(e trace.Event) bool {
		return e.Op == trace.Receive && e.Cause > 0 && e.Time-log.Events[e.Cause-1].Time > r.Promised.Delay
	})
}

// slept tells whether a process that does not lie stood still, or found that it woke too late.
func (r *account) slept(log *trace.Log) bool {
	return slices.ContainsFunc(log.Events, func(e trace.Event) bool {
		switch {
		case r.Liars.Has(e.At):
			return false
		case e.Op == trace.Start:
			return r.Early && e.Time > 0
		case e.Op == trace.Refuse:
			return e.Peer == e.At && string(e.Msg.Body) == "woke too late: abstains"
		}
		return e.Op == trace.Pause
	})
}

// suspected tells whether a process that does not lie suspected one that was up and does
// not lie.
func (r *account) suspected(log *trace.Log) bool {
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
