package diffusion_test

import (
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/diffusion"
	"parley/broadcast/problem"
)

// world is a small system in one state.
type world struct {
	machines  []string // saved, "" if crashed
	wire      []string // messages on their way: receiver, sender and wire form, sorted
	delivered []string // at each process, in order
	crashes   int      // that may still happen
}

func (w *world) key() string {
	b := []byte{byte(w.crashes)}
	for _, list := range [][]string{w.machines, w.wire, w.delivered} {
		b = append(b, byte(len(list)))
		for _, one := range list {
			b = append(append(b, byte(len(one))), one...)
		}
	}
	return string(b)
}

// explorer goes through every order of arrivals and every crash in the middle of a
// step.
type explorer struct {
	p    parley.Protocol
	seen map[string]bool
	end  func(w *world)
	ends int
}

// asked stands in the place of the sender in a request that is to be made.
const asked = 0xFF

func (x *explorer) visit(w *world) {
	key := w.key()
	if x.seen[key] {
		return
	}
	x.seen[key] = true
	if len(w.wire) == 0 {
		x.ends++
		x.end(w)
	}
	for i, m := range w.wire {
		if i > 0 && m == w.wire[i-1] {
			continue
		}
		next := *w
		next.wire = slices.Delete(slices.Clone(w.wire), i, i+1)
		x.step(&next, parley.ID(m[0]), func(mc parley.Machine, s *parley.Step) {
			if m[1] == asked {
				mc.Request(s, problem.Request([]byte(m[2:])))
				return
			}
			_, msg, err := parley.Decode([]byte(m[2:]))
			if err != nil {
				panic(err)
			}
			mc.Receive(s, parley.ID(m[1]), msg)
		})
	}
}

// step runs a clause of a process and goes on from what it does, and from every
// beginning of it if the process may crash.
func (x *explorer) step(w *world, id parley.ID, clause func(parley.Machine, *parley.Step)) {
	if w.machines[id] == "" {
		x.visit(w)
		return
	}
	m := x.p.New(id)
	if !parley.Load(m, 0, []byte(w.machines[id])) {
		panic("load")
	}
	s := &parley.Step{Self: id, N: x.p.N}
	clause(m, s)
	var effects []parley.Effect
	for _, e := range s.Effects { // one send a receiver
		if e.Op != parley.OpSend || e.To != parley.All {
			effects = append(effects, e)
			continue
		}
		for e.To = range parley.ID(x.p.N) {
			if e.To != id {
				effects = append(effects, e)
			}
		}
	}
	done := w.after(id, effects)
	done.machines = slices.Clone(w.machines)
	done.machines[id] = string(parley.Save(m, 0, nil))
	x.visit(done)
	if w.crashes == 0 {
		return
	}
	for k := range len(effects) + 1 {
		crashed := w.after(id, effects[:k])
		crashed.machines = slices.Clone(w.machines)
		crashed.machines[id] = ""
		crashed.crashes--
		x.visit(crashed)
	}
}

// after returns the world after some effects of a process.
func (w *world) after(id parley.ID, effects []parley.Effect) *world {
	out := &world{wire: slices.Clone(w.wire), delivered: slices.Clone(w.delivered), crashes: w.crashes}
	for _, e := range effects {
		switch e.Op {
		case parley.OpSend:
			m := string([]byte{byte(e.To), byte(id)}) + string(parley.Encode(nil, parley.Env{}, e.Msg))
			i, _ := slices.BinarySearch(out.wire, m)
			out.wire = slices.Insert(out.wire, i, m)
		case parley.OpDeliver:
			out.delivered[id] += string(e.Msg.Body)
		}
	}
	return out
}

// explore starts n processes and goes through all that may happen when each of some
// senders broadcasts a letter: process 0 a, process 1 b.
func explore(c diffusion.Config, senders, crashes int, end func(w *world)) *explorer {
	x := &explorer{p: diffusion.New(c), seen: make(map[string]bool), end: end}
	w := &world{delivered: make([]string, c.N), crashes: crashes}
	for id := range parley.ID(c.N) {
		m := x.p.New(id)
		m.Start(&parley.Step{Self: id, N: c.N})
		w.machines = append(w.machines, string(parley.Save(m, 0, nil)))
	}
	for id := range byte(senders) {
		w.wire = append(w.wire, string([]byte{id, asked, 'a' + id}))
	}
	x.visit(w)
	return x
}

// Every run of one and of two broadcasts among three processes: in each order of
// arrival, with a crash after each effect of each step.
func TestExhaustive(t *testing.T) {
	plain, uniform := diffusion.Config{N: 3}, diffusion.Config{N: 3, Uniform: true}
	for _, c := range []struct {
		config                 diffusion.Config
		senders, crashes       int
		states, ends, agreeing int
	}{
		{plain, 1, 0, 38, 1, 1}, {plain, 1, 1, 256, 8, 7}, {plain, 1, 2, 670, 21, 19}, {plain, 2, 0, 6748, 6, 6},
		{uniform, 1, 1, 253, 8, 7}, {uniform, 2, 1, 54722, 72, 68},
	} {
		if testing.Short() && c.states > 50_000 {
			continue
		}
		agreeing := 0
		x := explore(c.config, c.senders, c.crashes, func(w *world) {
			everywhere := true
			for _, letter := range "ab"[:c.senders] {
				some, all := false, true
				for id, d := range w.delivered {
					n := strings.Count(d, string(letter))
					if n > 1 {
						t.Fatalf("process %d delivered %s", id, d)
					}
					some = some || n > 0
					all = all && (n > 0 || w.machines[id] == "")
				}
				// Uniform agreement: sending comes first, and what was sent arrives.
				if some && !all {
					t.Fatalf("delivered %q, and the others never", w.delivered)
				}
				everywhere = everywhere && some
			}
			if everywhere {
				agreeing++
			}
		})
		if len(x.seen) != c.states || x.ends != c.ends || agreeing != c.agreeing {
			t.Errorf("uniform %t, %d senders, %d crashes: %d states, %d ends, all was delivered in %d",
				c.config.Uniform, c.senders, c.crashes, len(x.seen), x.ends, agreeing)
		}
	}
}
