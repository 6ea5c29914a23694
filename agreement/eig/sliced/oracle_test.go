package sliced

import "strings"

// The oracle simulates every process separately, as in the article: paths are strings of
// process ids, source first and sender last, and each process keeps its tree in two maps. It
// shares only the adversary with the engines, which it calls with the engines' paths.

type process struct {
	input  map[string]uint64 // what it received, by path
	output map[string]uint64
}

type oracle struct {
	s         System
	liar      Liar // nil: faulty processes send nothing at all
	processes []process
}

func runOracle(s System, liar Liar) *oracle {
	o := &oracle{s: s, liar: liar}
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

// send sends one message to each lieutenant; held is what the sender would send if it were correct.
func (o *oracle) send(sender int, path string, held uint64) {
	faulty := o.s.SourceFaulty
	if sender != o.s.Source {
		faulty = o.s.Faulty>>o.s.Lieutenant(sender)&1 == 1
	}
	var word uint64
	if faulty {
		if o.liar == nil {
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
			value = word >> o.s.Lieutenant(to) & 1
		}
		o.processes[to].input[path] = value
	}
}

// value returns what a process holds for a path: the default if nothing came.
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

func contains(path string, p int) bool { return strings.ContainsRune(path, rune(p)) }

// packed returns the engines' name of a path.
func packed(s System, path string) Path {
	var p Path
	for i, id := range path {
		if i > 0 {
			p = p.Append(s.Lieutenant(int(id)))
		}
	}
	return p
}
