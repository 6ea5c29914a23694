package atomic_test

import (
	"testing"

	"parley"
	"parley/broadcast/atomic"
	"parley/broadcast/problem"
)

// The lecture's rule for a takeover: a known final priority stands, and otherwise phase I runs again. r1, r2
// and r3 are processes 0, 1 and 2.
func TestRecovery(t *testing.T) {
	three, five := atomic.Priority{Number: 3, By: 0}, atomic.Priority{Number: 5, By: 1}
	for name, c := range map[string]struct {
		answers []atomic.Answer
		final   atomic.Priority
		known   bool
	}{
		"I": {answers: []atomic.Answer{{atomic.Undeliverable, three}, {atomic.Undeliverable, five}, {}}},
		"II": {
			answers: []atomic.Answer{{atomic.Undeliverable, three}, {atomic.Deliverable, five}, {}},
			final:   five, known: true,
		},
		"delivered already": {
			answers: []atomic.Answer{{atomic.Undeliverable, three}, {atomic.Delivered, five}},
			final:   five, known: true,
		},
		"nobody holds it": {answers: []atomic.Answer{{}, {}}},
	} {
		final, known := atomic.Recover(c.answers)
		if known != c.known || final != c.final {
			t.Errorf("%s: %v %v", name, final, known)
		}
	}
}

// half is a world in which the sender of m, 0, is about to crash. It is a receiver too, as are 1 and 2, and
// its own proposal of 9 is the final one. n, from 1 and for 1 and 2, has the final priority (2, 2), which is
// in transit to 2. At both, m has priority 1 and stands before n until its final priority arrives, which is
// in transit to 2, and will not reach 1.
func half(t *testing.T) *world {
	w := newWorld(t, 3)
	for range 8 {
		w.cast(0, "own", 0)
	}
	w.cast(0, "m", 0, 1, 2)
	w.receive(0, 1)
	w.receive(0, 2)
	w.cast(1, "n", 1, 2)
	w.receive(1, 2)
	w.receive(2, 0) // 2 proposes (1, 2) for m
	w.receive(2, 1) // and (2, 2) for n
	w.receive(1, 0)
	w.crash(0, only(2))
	return w
}

// ends runs a world to rest and demands what is promised.
func (w *world) ends(want map[parley.ID][]string) {
	w.t.Helper()
	w.rest()
	w.expect(want)
	if err := w.check(promised...); err != nil {
		w.t.Error(err)
	}
}

// A receiver that has answered a greater ballot refuses the final priority that a crashed coordinator had
// sent before. If it accepted it, 2 would deliver n, m, which 1 could not.
func TestLateFinalIsRefused(t *testing.T) {
	w := half(t)
	w.suspect(1, 0)
	w.receive(1, 2) // the final priority of n
	w.receive(1, 2) // STATUS of m, under ballot 4
	w.receive(0, 2) // the final priority of m, under ballot 0
	if w.refused["smaller ballot"] != 1 {
		t.Errorf("refused: %v", w.refused)
	}
	w.ends(map[parley.ID][]string{1: {"m", "n"}, 2: {"m", "n"}})
}

// Answer II: the message is deliverable at 2, but not yet delivered, because STATUS overtakes the final
// priority of n. Its priority stands.
func TestDeliverableStands(t *testing.T) {
	w := half(t)
	w.receive(0, 2)
	w.suspect(1, 0)
	w.arrive(1, 2, 1)
	w.expect(map[parley.ID][]string{1: {}, 2: {}})
	w.ends(map[parley.ID][]string{1: {"n", "m"}, 2: {"n", "m"}})
}

// The answer that the lecture leaves out: 2 has delivered the message, which has left the queue.
func TestDeliveredStands(t *testing.T) {
	w := half(t)
	w.receive(1, 2)
	w.receive(0, 2)
	w.expect(map[parley.ID][]string{1: {}, 2: {"n", "m"}})
	w.ends(map[parley.ID][]string{1: {"n", "m"}, 2: {"n", "m"}})
}

// If no live process knows the final priority, phase I runs again, and the holders of the message repeat
// their proposals, under the new ballot.
func TestHoldersRepeatTheirProposal(t *testing.T) {
	w := half(t)
	w.links[0][2] = nil
	w.suspect(1, 0)
	w.receive(1, 2) // the final priority of n
	w.receive(1, 2) // STATUS
	w.receive(2, 1) // KNOWN
	w.receive(1, 2) // REQ
	if got, want := w.carries(2, 1), (atomic.Priority{Number: 1, By: 2}); got != want {
		t.Errorf("2 proposes %v, and not %v", got, want)
	}
	w.ends(map[parley.ID][]string{1: {"m", "n"}, 2: {"m", "n"}})
}

// A link that doubles a request must not get a new proposal, nor may a holder put the message behind one that
// it may then deliver: the first proposal counts.
func TestDoubledRequestGetsNoNewProposal(t *testing.T) {
	w := newWorld(t, 4)
	w.cast(0, "m", 1, 2)
	w.double(0, 1)
	w.receive(0, 2)
	w.cast(3, "n", 1, 2)
	w.receive(3, 1)
	w.receive(3, 2)
	w.receive(1, 3)
	w.receive(2, 3)
	w.receive(1, 0)
	w.receive(2, 0)
	w.receive(0, 1) // the doubled request
	w.receive(3, 1) // the final priority of n, behind m
	w.ends(map[parley.ID][]string{1: {"m", "n"}, 2: {"m", "n"}})
}

// Receivers that have not received the message propose again, and the crashed sender is left out.
func TestUnknownGetTheMessage(t *testing.T) {
	w := newWorld(t, 3)
	w.cast(0, "m", 0, 1, 2)
	w.crash(0, only(1))
	w.ends(map[parley.ID][]string{1: {"m"}, 2: {"m"}})
}

// With an accurate detector every live process has received a message of which a final priority is known.
// Otherwise, as in the lecture's answers II and III together, the message is sent along with the final
// priority. Here 0 falsely suspects 3.
func TestUnknownGetTheFinalMessage(t *testing.T) {
	w := newWorld(t, 4)
	w.cast(0, "m", 1, 2, 3)
	w.links[0][3] = nil
	w.suspect(0, 3)
	for to := parley.ID(1); to < 3; to++ {
		w.receive(0, to)
		w.receive(to, 0)
	}
	w.crash(0, only(1))
	w.receive(0, 1)
	w.ends(map[parley.ID][]string{1: {"m"}, 2: {"m"}, 3: {"m"}})
}

// A message that only crashed processes received is lost.
func TestNoProcessHolds(t *testing.T) {
	w := newWorld(t, 3)
	w.cast(0, "m", 0, 1, 2)
	w.receive(0, 1)
	w.crash(0, none)
	w.crash(1, none)
	w.cast(2, "n", 0, 1, 2)
	w.ends(map[parley.ID][]string{2: {"n"}})
}

// Two take over, and the one with the greater ballot asks 3, which holds nothing, and crashes. 3 then refuses
// the other one: if it did not reply, 1 would wait for it forever.
func TestRefusedCoordinatorTakesOverAgain(t *testing.T) {
	w := newWorld(t, 4)
	w.cast(0, "m", 1, 2, 3)
	w.receive(0, 1)
	w.receive(0, 2)
	w.crash(0, none)
	w.suspect(1, 0)
	w.suspect(2, 0)
	w.receive(2, 3)
	w.crash(2, none)
	w.receive(1, 3)
	w.suspect(1, 2)
	w.ends(map[parley.ID][]string{1: {"m"}, 3: {"m"}})
}

// The coordinators crash one after another, each with its final priority sent to only one process, until one
// receiver is left.
func TestChainOfTakeovers(t *testing.T) {
	w := newWorld(t, 5)
	w.cast(0, "m", 0, 1, 2, 3, 4)
	for id := range parley.ID(4) {
		for to := id + 1; to < 5; to++ {
			for len(w.links[id][to]) > 0 {
				w.receive(id, to)
			}
		}
		w.crash(id, only(id+1))
		for at := id + 1; at < 5; at++ {
			w.suspect(at, id)
		}
	}
	w.ends(map[parley.ID][]string{4: {"m"}})
}

// A crash may be indicated while messages of the crashed process are still in transit: takeover depends on a
// state, not on the moment of the indication.
func TestRequestAfterTheIndication(t *testing.T) {
	w := newWorld(t, 3)
	w.cast(0, "m", 0, 1, 2)
	w.crash(0, all)
	w.suspect(1, 0)
	w.suspect(2, 0)
	w.ends(map[parley.ID][]string{1: {"m"}, 2: {"m"}})
}

// cross is a world in which only 0 knows that m has priority 9, and has delivered n and m, while 1 and 2 hold
// m at 1 and n behind it. Nothing of 0's final priority has arrived.
func cross(t *testing.T) *world {
	w := newWorld(t, 4)
	w.cast(3, "n", 0, 1, 2)
	w.receive(3, 0)
	for range 7 {
		w.cast(0, "own", 0)
	}
	w.cast(0, "m", 0, 1, 2)
	for to := parley.ID(1); to < 3; to++ {
		w.receive(0, to)
		w.receive(3, to)
		w.receive(to, 0)
	}
	for from := range parley.ID(3) {
		w.receive(from, 3)
	}
	for to := range parley.ID(3) {
		w.receive(3, to)
	}
	w.expect(map[parley.ID][]string{0: {"own", "n", "own", "own", "own", "own", "own", "own", "m"}, 1: {}, 2: {}})
	return w
}

// The lecture's form is not uniform: 0 delivers n, m and crashes, and the others, which do not receive its
// final priority, deliver m, n.
func TestNotUniform(t *testing.T) {
	w := cross(t)
	w.crash(0, none)
	w.ends(map[parley.ID][]string{1: {"m", "n"}, 2: {"m", "n"}})
	if w.check(problem.UniformTotalOrder) == nil {
		t.Error("uniform total order holds")
	}
}

// With one false suspicion the same happens to a live process.
func TestOneFalseSuspicionBreaksOrder(t *testing.T) {
	w := cross(t)
	w.suspect(1, 0)
	w.receive(1, 2) // STATUS, and then 2 refuses the final priority of 0
	w.rest()
	w.expect(map[parley.ID][]string{1: {"m", "n"}, 2: {"m", "n"}})
	if w.check(problem.TotalOrder) == nil {
		t.Error("total order holds")
	}
}
