package explore

import (
	"encoding/binary"
	"slices"

	"parley"
	"parley/trace"
)

// event is a happening, and the list of a history that it belongs to.
type event struct {
	op trace.Op
	parley.ExternalEvent
}

// observations is what one move lets be seen from above.
type observations struct {
	events []event
}

// history is what was seen from above so far, each process by itself if that is not Ordered.
// One that came about in several orders has the first.
type history struct {
	parent  uint32
	outs    uint32
	threads []uint32 // by process: what it was asked and delivered
	share   uint64
}

// processHistory is what one process was asked and delivered: the last event, and those before.
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

func (x *space) extended(before, what uint32) uint32 {
	p := x.pasts.at(before)
	threads := slices.Clone(p.threads)
	for _, e := range x.outs.at(what).events {
		of := e.At
		if x.o.Ordered {
			of = 0 // what happens anywhere is one thread
		}
		parent := threads[of]
		key := eventKey(binary.AppendUvarint(nil, uint64(parent)), &e)
		threads[of] = x.threads.number(key, func(at *processHistory) {
			b := binary.LittleEndian.AppendUint64(nil, x.shareOf(parent))
			*at = processHistory{parent, e, digest('t', eventKey(b, &e))}
		})
	}
	return x.pasts.number(threadsKey(threads), func(at *history) {
		at.parent, at.outs, at.threads, at.share = before, what, threads, x.sumThreads(threads)
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

// shareOf is the share of a thread, 0 of one in which nothing has happened.
func (x *space) shareOf(number uint32) uint64 {
	if number == 0 {
		return 0
	}
	return x.threads.at(number).share
}

// history is a past as properties see it.
func (x *space) history(number uint32, faulty parley.Set, over bool) *parley.History {
	var moves []uint32
	for n := number; n != 0; n = x.pasts.at(n).parent {
		moves = append(moves, x.pasts.at(n).outs)
	}
	h := &parley.History{N: x.p.N, Faulty: faulty, Over: over, Naming: x.o.Naming}
	for _, what := range slices.Backward(moves) {
		if what == 0 {
			continue
		}
		for _, e := range x.outs.at(what).events {
			add(h, &e)
		}
	}
	return h
}
