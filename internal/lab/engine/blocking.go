package engine

import (
	"slices"
	"strings"
	"unicode"

	"parley"
	"parley/internal/draw/reading"
	"parley/internal/form"
	"parley/trace"
)

// blocking returns the last crashes of the processes that are down when an event says that its process is blocked: of
// those for which the process waits or, if it waits for none of them, of all.
func blocking(e trace.Event, r form.Run, events []trace.Event, waits func() []reading.WaitSpan) []trace.Event {
	progress := r.Protocol.Progress
	if progress == nil || e.Op != trace.Indicate || progress(e.Msg, false).Stage != parley.StageBlocked {
		return nil
	}
	down := make(map[parley.ID]trace.Event)
	for _, before := range events[:e.ID-1] {
		switch before.Op {
		case trace.Crash:
			down[before.At] = before
		case trace.Restart:
			delete(down, before.At)
		}
	}
	var all, waited []trace.Event
	for id := range parley.ID(r.Protocol.N) {
		if crash, ok := down[id]; ok {
			all = append(all, crash)
			if waitsFor(e, r.Names.Full(id), waits()) {
				waited = append(waited, crash)
			}
		}
	}
	if len(waited) > 0 {
		return waited
	}
	return all
}

// waitsFor reports whether the process of an event waits for a process with a name at that event.
func waitsFor(e trace.Event, name string, waits []reading.WaitSpan) bool {
	for _, s := range waits {
		if s.At != e.At || s.Kind != parley.WaitingProcess || s.Since > e.ID || s.Until != 0 && s.Until <= e.ID {
			continue
		}
		words := strings.FieldsFunc(s.Waits, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if slices.Contains(words, name) {
			return true
		}
	}
	return false
}
