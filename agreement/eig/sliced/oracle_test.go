package sliced

// The oracle simulates every process by itself, as the article tells it: paths are strings of
// process ids, source first and sender last, and each process keeps its tree in two maps. It
// shares nothing with the engines but the adversary, which it asks by the engines' paths.

type process struct {
	input  map[string]uint64 // what it was told, by path
	output map[string]uint64
}

type oracle struct {
	s         System
	liar      Liar
	mute      bool // the faulty send nothing at all, the liar is not asked
	processes []process
}

// runOracle runs all rounds and the second stage.
func runOracle(s System, liar Liar, mute bool) *oracle {
	o := &oracle{s: s, liar: liar, mute: mute}
	for range s.N {
		o.processes = append(o.processes, process{map[string]uint64{}, map[string]uint64{}})
	}
	o.send(s.Source, string(rune(s.Source)), s.Value)
	round := []string{string(rune(s.Source))}
	for r := 1; r <= s.M; r++ {
		var next []string
		for _, path := range round {
			for p := range s.N {
				if contains(path, p) {
					continue
				}
				longer := path + string(rune(p))
				o.send(p, longer, o.value(p, path))
				next = append(next, longer)
			}
		}
		round = next
	}
	for p := range s.N {
		if p != s.Source {
			o.resolve(p, string(rune(s.Source)), 0)
		}
	}
	return o
}

// send is one message to each lieutenant; held is what the sender would say if it were correct.
func (o *oracle) send(sender int, path string, held uint64) {
	faulty := o.s.SourceFaulty
	if sender != o.s.Source {
		faulty = o.s.Faulty>>lieutenant(o.s, sender)&1 == 1
	}
	var word uint64
	if faulty {
		if o.mute {
			return
		}
		word = o.liar(packed(o.s, path), held)
	}
	for to := range o.s.N {
		if to == o.s.Source {
			continue
		}
		value := held
		if faulty {
			value = word >> lieutenant(o.s, to) & 1
		}
		o.processes[to].input[path] = value
	}
}

// value is what a process holds for a path: the default if nothing came.
func (o *oracle) value(p int, path string) uint64 {
	if v, ok := o.processes[p].input[path]; ok {
		return v
	}
	return o.s.Default
}

// resolve is the second stage at one node of one process's tree.
func (o *oracle) resolve(p int, path string, rank int) uint64 {
	result := o.s.Default
	if rank == o.s.M {
		result = o.value(p, path)
	} else {
		votes := map[uint64]int{}
		children := 0
		for q := range o.s.N {
			if !contains(path, q) {
				votes[o.resolve(p, path+string(rune(q)), rank+1)]++
				children++
			}
		}
		for v, count := range votes {
			if 2*count > children {
				result = v
			}
		}
	}
	o.processes[p].output[path] = result
	return result
}

// word gathers a value of every lieutenant.
func (o *oracle) word(value func(p int) uint64) uint64 {
	var w uint64
	for p := range o.s.N {
		if p != o.s.Source {
			w |= value(p) << lieutenant(o.s, p)
		}
	}
	return w
}

func contains(path string, p int) bool {
	for _, id := range path {
		if int(id) == p {
			return true
		}
	}
	return false
}

// lieutenant counts the processes before p that are not the source.
func lieutenant(s System, p int) int {
	r := 0
	for q := range p {
		if q != s.Source {
			r++
		}
	}
	return r
}

// packed is the engines' name of a path.
func packed(s System, path string) Path {
	var p Path
	for i, id := range path {
		if i > 0 {
			p = p.Append(lieutenant(s, int(id)))
		}
	}
	return p
}

// named is the oracle's name of a path.
func named(s System, p Path) string {
	name := string(rune(s.Source))
	for _, r := range p.Relays() {
		id := r
		if r >= s.Source {
			id++
		}
		name += string(rune(id))
	}
	return name
}
