package explore

import (
	"sync"
	"sync/atomic"
)

// visited is the set of states seen so far, in parts with one lock each. A state takes an entry of 24 bytes
// and at most 8 bytes of an index: a place has 4 bytes, and the index grows by half when it is 4/5 full.
type visited struct {
	parts [parts]part
	alone bool          // only one thread searches, and parts need no lock
	bytes atomic.Uint64 // the size of the parts
}

const (
	partBits = 6
	parts    = 1 << partBits
	blockLen = 1 << 10
)

type part struct {
	sync.Mutex
	index  []uint32 // the number of an entry, with some bits of its fingerprint above; 0: none
	blocks []*[blockLen]entry
	n      uint32
	runs   map[uint32]uint64 // by entry: how many runs lead to it; in searches by rounds
}

// entry is a visited state.
type entry struct {
	print uint64
	link  uint64 // the state before it, the transition from there, and whether it was expanded
	sleep uint64 // deliveries that can be omitted here, by their place in the flight
}

// id identifies an entry: its part, and its number from 1. No state has the id 0.
type id uint32

const (
	moveBits = 32 // of a link: the transition, and whether the state was expanded
	expanded = 1 << (moveBits - 1)
	maxMove  = expanded - 1
)

func (v *visited) of(print uint64) *part { return &v.parts[print>>(64-partBits)] }

// lock locks a part, unless only one thread searches.
func (v *visited) lock(p *part) {
	if !v.alone {
		p.Lock()
	}
}

func (v *visited) unlock(p *part) {
	if !v.alone {
		p.Unlock()
	}
}

func (p *part) at(n uint32) *entry { return &p.blocks[(n-1)/blockLen][(n-1)%blockLen] }

// add adds a state to the set. If it is already there, add returns those deliveries that were asleep when
// it was expanded and no longer are.
func (v *visited) add(print uint64, from id, move int, sleep uint64) (i id, isNew bool, awake uint64) {
	p := v.of(print)
	at := id(print>>(64-partBits)) << entryBits
	v.lock(p)
	defer v.unlock(p)
	if uint64(p.n)*5 >= uint64(len(p.index))*4 {
		v.bytes.Add(4 * p.grow())
	}
	k, mark := place(print, p.index), mark(print)
	for ; p.index[k] != 0; k = next(k, p.index) {
		if p.index[k]&^numberBits != mark {
			continue
		}
		if e := p.at(p.index[k] & numberBits); e.print == print {
			lost := e.sleep &^ sleep
			e.sleep &= sleep
			if e.link&expanded == 0 {
				lost = 0
			}
			return at | id(p.index[k]&numberBits), false, lost
		}
	}
	if p.n%blockLen == 0 {
		p.blocks = append(p.blocks, new([blockLen]entry))
		v.bytes.Add(24 * blockLen)
	}
	if p.n++; p.n > numberBits {
		panic(tooLarge("there are more states than can be numbered"))
	}
	p.index[k] = p.n | mark
	*p.at(p.n) = entry{print, uint64(from)<<moveBits | uint64(move), sleep}
	return at | id(p.n), true, 0
}

// place returns where the search for a fingerprint begins in an index. It uses the low 32 bits, because the
// highest ones select the part.
func place(print uint64, index []uint32) int {
	return int(print & 0xFFFFFFFF * uint64(len(index)) >> 32)
}

// The low entryBits of an index place or an id are the number of an entry. The other bits of an index place
// are bits of the fingerprint, which spare looking at most entries that do not match; those of an id are
// the part's number.
const (
	entryBits  = 32 - partBits
	numberBits = 1<<entryBits - 1
)

func mark(print uint64) uint32 { return uint32(print>>32) << entryBits }

func next(k int, index []uint32) int {
	if k++; k == len(index) {
		return 0
	}
	return k
}

// grow makes the index larger by half, and returns by how many places.
func (p *part) grow() uint64 {
	before := len(p.index)
	index := make([]uint32, max(256, len(p.index)*3/2))
	for n := uint32(1); n <= p.n; n++ {
		k := place(p.at(n).print, index)
		for ; index[k] != 0; k = next(k, index) {
		}
		index[k] = n | mark(p.at(n).print)
	}
	p.index = index
	return uint64(len(index) - before)
}

// expand records that the transitions of a state are being taken, and returns those that are asleep.
func (v *visited) expand(i id) uint64 {
	p := &v.parts[i>>entryBits]
	v.lock(p)
	defer v.unlock(p)
	e := p.at(uint32(i) & numberBits)
	e.link |= expanded
	return e.sleep
}

// before returns the state from which a state was first reached, and by which transition.
func (v *visited) before(i id) (from id, move int) {
	p := &v.parts[i>>entryBits]
	v.lock(p)
	defer v.unlock(p)
	link := p.at(uint32(i) & numberBits).link
	return id(link >> moveBits), int(link & maxMove)
}

// reach adds runs that lead to a state of the next level.
func (v *visited) reach(i id, runs uint64) {
	p := &v.parts[i>>entryBits]
	v.lock(p)
	defer v.unlock(p)
	if p.runs == nil {
		p.runs = make(map[uint32]uint64)
	}
	p.runs[uint32(i)] = plus(p.runs[uint32(i)], runs)
}

// reached removes and returns the number of runs that lead to a state.
func (v *visited) reached(i id) uint64 {
	p := &v.parts[i>>entryBits]
	v.lock(p)
	defer v.unlock(p)
	runs := p.runs[uint32(i)]
	delete(p.runs, uint32(i))
	return runs
}

// plus returns a+b, saturating at the largest uint64.
func plus(a, b uint64) uint64 {
	if a+b < a {
		return 1<<64 - 1
	}
	return a + b
}
