package explore

import (
	"encoding/binary"
	"slices"

	"parley"
	"parley/trace"
)

// event is an event seen from above, with the list of a history that it belongs to.
type event struct {
	op trace.Op
	parley.ExternalEvent
}

// observations are the events that one transition makes visible from above.
type observations struct {
	events []event
}

// history is the events seen from above so far, for each process separately unless Options.Ordered is set.
// A history reached in several orders keeps the first one.
type history struct {
	parent       uint32
	observations uint32
	threads      []uint32 // by process: its requests and deliveries
	share        uint64
}

// processHistory is the last event of one process, and its history before.
type processHistory struct {
	parent uint32
	last   event
	share  uint64
}

func eventKey(b []byte, e *event) []byte {
	b = append(b, byte(e.op))
	b = binary.AppendUvarint(b, uint64(e.At))
	b = binary.AppendUvarint(b, uint64(e.From))
	return parley.AppendMsg(b, e.Path, e.Msg)
}

func (x *space) extendedHistory(before, what uint32) uint32 {
	p := x.histories.at(before)
	threads := slices.Clone(p.threads)
	for _, e := range x.observations.at(what).events {
		of := e.At
		if x.o.Ordered {
			of = 0 // all processes share one thread
		}
		parent := threads[of]
		key := eventKey(binary.AppendUvarint(nil, uint64(parent)), &e)
		threads[of] = x.threads.number(key, func(at *processHistory) {
			b := binary.LittleEndian.AppendUint64(nil, x.shareOf(parent))
			*at = processHistory{parent, e, digest('t', eventKey(b, &e))}
		})
	}
	return x.histories.number(threadsKey(threads), func(at *history) {
		at.parent, at.observations, at.threads, at.share = before, what, threads, x.sumThreads(threads)
	})
}

func threadsKey(threads []uint32) []byte {
	var key []byte
	for _, t := range threads {
		key = binary.LittleEndian.AppendUint32(key, t)
	}
	return key
}

func (x *space) sumThreads(threads []uint32) (sum uint64) {
	for _, t := range threads {
		sum += x.shareOf(t)
	}
	return sum
}

// shareOf returns the share of a thread, 0 for an empty one.
func (x *space) shareOf(number uint32) uint64 {
	if number == 0 {
		return 0
	}
	return x.threads.at(number).share
}

// history returns a history in the form that properties use.
func (x *space) history(number uint32, faulty parley.Set, over bool) *parley.History {
	var moves []uint32
	for n := number; n != 0; n = x.histories.at(n).parent {
		moves = append(moves, x.histories.at(n).observations)
	}
	h := &parley.History{N: x.p.N, Faulty: faulty, Over: over, Naming: x.o.Naming}
	for _, what := range slices.Backward(moves) {
		if what == 0 {
			continue
		}
		for _, e := range x.observations.at(what).events {
			add(h, &e)
		}
	}
	return h
}
