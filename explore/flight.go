package explore

import (
	"slices"

	"parley"
)

// message returns the message that an element of the flight stands for: itself, or the
// first of its queue.
func (x *search) message(elem uint32) uint32 {
	if x.o.Model.FIFO {
		return x.queues.at(elem).first
	}
	return elem
}

// share is that of an element of the flight.
func (x *search) share(elem uint32) uint64 {
	if x.o.Model.FIFO {
		return x.queues.at(elem).share
	}
	return x.messages.at(elem).share
}

// token names an element of the flight as long as it is there: itself, or its link.
func (x *search) token(elem uint32) uint32 {
	if x.o.Model.FIFO {
		return x.queues.at(elem).link
	}
	return elem
}

// leave takes a message off the flight: element i, or the first of it.
func (x *search) leave(s *state, i int) {
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

// enter puts a message on its way.
func (w *worker) enter(s *state, m uint32) {
	x := w.x
	if !x.o.Model.FIFO {
		i, _ := slices.BinarySearch(s.flight, m)
		s.flight = slices.Insert(s.flight, i, m)
		s.sum += x.messages.at(m).share
		return
	}
	q := x.messages.at(m)
	l := link(q.from, q.to)
	i, there := slices.BinarySearchFunc(s.flight, l, func(elem, l uint32) int {
		return int(x.queues.at(elem).link) - int(l)
	})
	if !there {
		elem := w.queue(0, m)
		s.flight = slices.Insert(s.flight, i, elem)
		s.sum += x.share(elem)
		return
	}
	s.sum -= x.share(s.flight[i])
	s.flight[i] = w.queue(s.flight[i], m)
	s.sum += x.share(s.flight[i])
}

// sent tells whether anything is on its way from one process to another.
func (x *search) sent(s *state, from, to parley.ID) bool {
	return slices.ContainsFunc(s.flight, func(elem uint32) bool {
		q := x.messages.at(x.message(elem))
		return q.from == from && q.to == to
	})
}

// owes tells whether something is on its way that arrives before a time.
func (x *search) owes(s *state, before parley.Tick) bool {
	return slices.ContainsFunc(s.flight, func(elem uint32) bool {
		return x.messages.at(x.message(elem)).due <= before
	})
}
