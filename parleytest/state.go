package parleytest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"parley"
	"parley/sim"
)

// reload runs seeds once unchanged and once with every machine saved and loaded repeatedly: both must be
// equal.
func reload(s suite) error {
	for seed := range uint64(s.share(20)) {
		r := s.draw(s.p, seed, s.p.M)
		_, plain := r.traced(false)
		for _, every := range []uint64{1, 7} {
			again := r
			x := exchange{r: r, every: every}
			again.Between = x.between
			_, log := again.traced(false)
			if log.Hash() != plain.Hash() {
				return fmt.Errorf("%s: a run with machines saved and loaded after every %d steps differs: "+
					"State misses a variable", r, every)
			}
		}
	}
	return nil
}

// exchange replaces the machines of a run by saved and loaded ones.
type exchange struct {
	r           run
	every, last uint64
	used        []parley.Machine // by seat: machines that were in use before
	saved, kept [][]byte         // by seat: the last snapshot, and a copy of it
}

func (x *exchange) between(s *sim.Sim) {
	if s.Stats.Steps < x.last+x.every {
		return
	}
	x.last = s.Stats.Steps
	seats := s.Seats()
	if x.used == nil {
		x.used, x.saved, x.kept = make([]parley.Machine, len(seats)), make([][]byte, len(seats)),
			make([][]byte, len(seats))
	}
	for i := range seats {
		if err := x.seat(s, i); err != nil {
			panic(failure{fmt.Errorf("%s: processes %v at tick %d: %w", x.r, seats[i].IDs, s.Now(), err)})
		}
	}
}

// seat saves the machine of one seat and continues with the one used before, loaded; it also loads a new
// one to compare.
func (x *exchange) seat(s *sim.Sim, i int) error {
	if !bytes.Equal(x.saved[i], x.kept[i]) {
		return errors.New("a machine changes the bytes that it was loaded from: visit them as a Buffer")
	}
	seat := &s.Seats()[i]
	now := s.Clock(seat.IDs[0])
	x.saved[i] = parley.Save(seat.Machine, now, nil)
	x.kept[i] = slices.Clone(x.saved[i])
	fresh := s.Fresh(i)
	if err := checkLoad(fresh, now, x.saved[i]); err != nil {
		return err
	}
	used := x.used[i]
	x.used[i] = seat.Machine
	seat.Machine = fresh
	if used == nil {
		return nil
	}
	if err := checkLoad(used, now, x.saved[i]); err != nil {
		return fmt.Errorf("into a machine that was in use: %w", err)
	}
	seat.Machine = used
	return nil
}

// checkLoad loads a state into a machine, and checks that the machine saves the same bytes.
func checkLoad(m parley.Machine, now parley.Tick, b []byte) error {
	if !parley.Load(m, now, b) {
		return errors.New("a machine does not load the state that one like it saved")
	}
	if again := parley.Save(m, now, nil); !bytes.Equal(again, b) {
		return fmt.Errorf("a loaded machine saves another state: %x, and was loaded from %x", again, b)
	}
	return nil
}
