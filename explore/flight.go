package explore

import (
	"encoding/binary"
	"slices"

	"parley"
)

// message returns the message of an element of the flight: itself, or the first of its queue.
func (x *space) message(elem uint32) uint32 {
	if x.o.Model.FIFO {
		return x.queues.at(elem).first
	}
	return elem
}

// share returns the share of an element of the flight.
func (x *space) share(elem uint32) uint64 {
	if x.o.Model.FIFO {
		return x.queues.at(elem).share
	}
	return x.messages.at(elem).share
}

// token identifies an element of the flight while it is there: itself, or its link.
func (x *space) token(elem uint32) uint32 {
	if x.o.Model.FIFO {
		return x.queues.at(elem).link
	}
	return elem
}

// leave removes a message from the flight: element i, or the first of its queue.
func (x *space) leave(s *state, i int) {
	elem := s.flight[i]
	s.sum -= x.share(elem)
	if x.o.Model.FIFO {
		if rest := x.queues.at(elem).rest; rest != 0 {
			s.flight[i] = rest
			s.sum += x.share(rest)
			return
		}
	}
	s.flight = append(s.flight[:i], s.flight[i+1:]...)
}

// inFlight returns whether a message is in flight from one process to another.
func (x *space) inFlight(s *state, from, to parley.ID) bool {
	return slices.ContainsFunc(s.flight, func(elem uint32) bool {
		q := x.messages.at(x.message(elem))
		return q.from == from && q.to == to
	})
}

// arrivesBefore returns whether a message in flight must arrive by time before.
func (x *space) arrivesBefore(s *state, before parley.Tick) bool {
	return slices.ContainsFunc(s.flight, func(elem uint32) bool {
		return x.messages.at(x.message(elem)).due <= before
	})
}

func (x *space) longer(before, m uint32) uint32 {
	var list []uint32
	for n := before; n != 0; n = x.queues.at(n).rest {
		list = append(list, x.queues.at(n).first)
	}
	list = append(list, m)
	q := x.messages.at(m)
	number := uint32(0)
	for i := len(list) - 1; i >= 0; i-- {
		number = x.ahead(link(q.from, q.to), list[i], number)
	}
	return number
}

// ahead returns the number of a queue with a message prepended.
func (x *space) ahead(link, first, rest uint32) uint32 {
	key := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, first), rest)
	return x.queues.number(key, func(at *queue) {
		var b [16]byte
		binary.LittleEndian.PutUint64(b[:], x.messages.at(first).share)
		if rest != 0 {
			binary.LittleEndian.PutUint64(b[8:], x.queues.at(rest).share)
		}
		*at = queue{link: link, first: first, rest: rest, share: digest('q', b[:])}
	})
}
