package problem

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"parley"
)

// Incarnation is the number of a process's current incarnation: 0 before its first start, then 1, and one more after
// each crash. Messages are distinguished by sender, incarnation and sequence number. Without the incarnation,
// receivers would take the first message after a restart for the first message ever. An Incarnation is a variable of
// a machine that appends nothing else to its log.
type Incarnation uint64

// Begin begins the next incarnation, in Start. The number is durable before any message leaves. Begin panics
// if the log holds other records.
func (i *Incarnation) Begin(s *parley.Step) {
	for _, rec := range s.Log {
		number, rest, err := parley.ReadUvarint(rec.Body, 1<<63)
		if err != nil || len(rest) > 0 {
			panic(fmt.Sprintf("broadcast: process %d finds a record that it did not write", s.Self))
		}
		*i = max(*i, Incarnation(number))
	}
	*i++
	s.Append(binary.AppendUvarint(nil, uint64(*i)))
}

// State visits the number, which is durable.
func (i *Incarnation) State(v *parley.Vars) {
	v.Durable(func() { parley.Num(v, "incarnation", i) })
}

// MaxLives is how many incarnations of one process are remembered. When the process begins another one, the
// oldest is forgotten, and its remaining messages are refused.
const MaxLives = 8

// Lives maps the latest incarnations of one process to values. The zero value is empty and ready to use.
type Lives[T any] struct {
	forgotten uint64 // up to this one
	lives     []life[T]
}

type life[T any] struct {
	number uint64
	of     T
}

// At returns the value of an incarnation, and makes room for it if necessary. It returns nil if the incarnation is
// forgotten, older than all remembered incarnations, or 0. The pointer is valid until the next call of At.
func (l *Lives[T]) At(number uint64) *T {
	if x := l.Known(number); x != nil || number <= l.forgotten {
		return x
	}
	i := 0
	for i < len(l.lives) && l.lives[i].number < number {
		i++
	}
	if len(l.lives) == MaxLives {
		if i == 0 {
			return nil // older than all of them
		}
		l.forgotten = l.lives[0].number
		l.lives = slices.Delete(l.lives, 0, 1)
		i--
	}
	l.lives = slices.Insert(l.lives, i, life[T]{number: number})
	return &l.lives[i].of
}

// Known returns the value of an incarnation, nil if there is none.
func (l *Lives[T]) Known(number uint64) *T {
	for i := range l.lives {
		if l.lives[i].number == number {
			return &l.lives[i].of
		}
	}
	return nil
}

// Forgotten reports whether an incarnation is too old to be remembered.
func (l *Lives[T]) Forgotten(number uint64) bool { return number <= l.forgotten }

// All iterates over the incarnations, the oldest first.
func (l *Lives[T]) All() iter.Seq2[uint64, *T] {
	return func(yield func(number uint64, of *T) bool) {
		for i := range l.lives {
			if !yield(l.lives[i].number, &l.lives[i].of) {
				return
			}
		}
	}
}

// State visits all incarnations. The function each visits the value of one incarnation.
func (l *Lives[T]) State(v *parley.Vars, each func(of *T)) {
	parley.Num(v, "forgotten", &l.forgotten)
	parley.Slice(v, "lives", &l.lives, func(_ int, one *life[T]) {
		parley.Num(v, "number", &one.number)
		each(&one.of)
	})
}
