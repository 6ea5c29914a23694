package forwarding_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/forwarding"
	"parley/broadcast/problem"
)

// world is a small system in one state.
type world struct {
	machines  []string // saved, "" if crashed
	due       []string // what may happen: receiver, sender, message in wire form; sorted
	delivered []string // at each process, in order
	crashes   int      // that may still happen
}

func (w *world) key() string {
	return strings.Join(w.machines, "|") + strings.Join(w.due, "|") + fmt.Sprint(w.delivered, w.crashes)
}

// In the place of the sender in what is due: a request of a letter, and the
// suspicion of a process.
const (
	asked = 0xFF - iota
	hinted
)

// explorer goes through every order of arrivals, of requests and of suspicions,
// and every crash in the middle of a step.
type explorer struct {
	p    parley.Protocol
	seen map[string]bool
	end  func(w *world)
	ends int
}

func (x *explorer) visit(w *world) {
	if x.seen[w.key()] {
		return
	}
	x.seen[w.key()] = true
	if len(w.due) == 0 {
		x.ends++
		x.end(w)
	}
	for i, m := range w.due {
		if i > 0 && m == w.due[i-1] {
			continue
		}
		next := *w
		next.due = slices.Delete(slices.Clone(w.due), i, i+1)
		x.step(&next, parley.ID(m[0]), func(mc parley.Machine, s *parley.Step) {
			switch m[1] {
			case asked:
				mc.Request(s, problem.Request([]byte(m[2:])))
			case hinted:
				mc.Receive(s, s.Self, parley.Msg{Kind: parley.Suspect, Origin: parley.ID(m[2])})
			default:
				_, msg, err := parley.Decode([]byte(m[2:]))
				if err != nil {
					panic(err)
				}
				mc.Receive(s, parley.ID(m[1]), msg)
			}
		})
	}
}

// step runs a clause of a process and goes on from what it does, and from every
// beginning of it if the process may crash: all others then hear of that.
func (x *explorer) step(w *world, id parley.ID, clause func(parley.Machine, *parley.Step)) {
	if w.machines[id] == "" {
		x.visit(w)
		return
	}
	m := x.p.New(id)
	if !parley.Load(m, 0, []byte(w.machines[id])) {
		panic("load")
	}
	s := &parley.Step{Self: id, N: x.p.N, Host: &script{}}
	clause(m, s)
	done := w.after(id, s.Effects)
	done.machines[id] = string(parley.Save(m, 0, nil))
	x.visit(done)
	for k := range len(s.Effects) + 1 {
		if w.crashes == 0 {
			return
		}
		crashed := w.after(id, s.Effects[:k])
		crashed.machines[id] = ""
		crashed.crashes--
		for other := range parley.ID(x.p.N) {
			if other != id {
				crashed.add(string([]byte{byte(other), hinted, byte(id)}))
			}
		}
		x.visit(crashed)
	}
}

func (w *world) add(m string) {
	i, _ := slices.BinarySearch(w.due, m)
	w.due = slices.Insert(w.due, i, m)
}

// after returns the world after some effects of a process.
func (w *world) after(id parley.ID, effects []parley.Effect) *world {
	out := &world{machines: slices.Clone(w.machines), due: slices.Clone(w.due),
		delivered: slices.Clone(w.delivered), crashes: w.crashes}
	for _, e := range effects {
		switch e.Op {
		case parley.OpSend:
			out.add(string([]byte{byte(e.To), byte(id)}) + string(parley.Encode(nil, parley.Env{}, e.Msg)))
		case parley.OpDeliver:
			out.delivered[id] += string(e.Msg.Body)
		}
	}
	return out
}

// explore goes through all that may happen when processes are asked to broadcast
// letters, as "0a" for process 0 and the letter a. Some suspicions are false: they
// may come at any time.
func explore(c forwarding.Config, requests []string, wrong [][2]byte, crashes int, end func(w *world)) *explorer {
	x := &explorer{p: forwarding.New(c), seen: make(map[string]bool), end: end}
	w := &world{delivered: make([]string, c.N), crashes: crashes}
	for id := range parley.ID(c.N) {
		m := x.p.New(id)
		m.Start(&parley.Step{Self: id, N: c.N})
		w.machines = append(w.machines, string(parley.Save(m, 0, nil)))
	}
	for _, r := range requests {
		w.add(string([]byte{r[0] - '0', asked, r[1]}))
	}
	for _, s := range wrong {
		w.add(string([]byte{s[0], hinted, s[1]}))
	}
	x.visit(w)
	return x
}

// Every run of few processes: in each order of arrivals, of crashes in the middle
// of each step and of suspicions, right ones and wrong ones. In the end all that
// are left have delivered the same, each once, with all that they were asked for
// themselves; so with a window of 1 the first of two broadcasts was complete.
func TestExhaustive(t *testing.T) {
	chain := func(n int) forwarding.Config { return forwarding.Config{N: n, Fanout: 1, Window: 1} }
	star := forwarding.Config{N: 3, Window: 1, Notice: true}
	for _, c := range []struct {
		config       forwarding.Config
		requests     []string
		wrong        [][2]byte
		crashes      int
		states, ends int
	}{
		{chain(3), []string{"0a"}, nil, 2, 1212, 24},
		{chain(3), []string{"0a", "0b"}, nil, 1, 1045, 25},
		{chain(3), []string{"0a"}, [][2]byte{{0, 1}, {2, 1}, {2, 0}}, 1, 2416, 9},
		{star, []string{"0a", "0b"}, nil, 1, 16789, 31},
		{star, []string{"0a"}, [][2]byte{{0, 2}, {1, 0}}, 1, 3127, 13},
		{chain(4), []string{"0a"}, nil, 2, 20736, 52},
		{forwarding.Config{N: 4}, []string{"0a"}, nil, 1, 1588, 11},
		{chain(3), []string{"0a", "2b"}, [][2]byte{{1, 0}}, 0, 195, 4},
		{chain(3), []string{"0a", "2b"}, nil, 1, 4806, 49},
	} {
		if testing.Short() && c.states > 10_000 {
			continue
		}
		x := explore(c.config, c.requests, c.wrong, c.crashes, func(w *world) {
			var first string
			some := false
			for id, d := range w.delivered {
				if w.machines[id] == "" {
					continue
				}
				in := []byte(d)
				slices.Sort(in)
				if some && string(in) != first {
					t.Fatalf("%+v, %v: deliveries %q", c.config, c.requests, w.delivered)
				}
				first, some = string(in), true
				if len(slices.Compact(in)) != len(d) {
					t.Fatalf("%+v, %v: process %d delivered %q", c.config, c.requests, id, d)
				}
				for _, r := range c.requests {
					if int(r[0]-'0') == id && !strings.Contains(d, r[1:]) {
						t.Fatalf("%+v, %v: process %d did not deliver its own: %q", c.config, c.requests, id, d)
					}
				}
			}
		})
		if len(x.seen) != c.states || x.ends != c.ends {
			t.Errorf("%+v, %v, %d false suspicions, %d crashes: %d states, %d ends; %d and %d were counted before",
				c.config, c.requests, len(c.wrong), c.crashes, len(x.seen), x.ends, c.states, c.ends)
		}
	}
}
