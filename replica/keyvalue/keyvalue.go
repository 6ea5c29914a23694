// Package keyvalue is a table of keys and values, and of counters, as a replicated state
// machine. A command reads or changes one key, and each of them is one step: what it
// found and what it left cannot be told apart by anybody else's command.
//
// Every change of a key gives it the next version, from 1, and a key that is deleted and
// made again goes on from where it was: whoever has seen a version can tell whether the
// key has changed since, and a version may serve as a fencing token.
package keyvalue

import (
	"encoding/binary"
	"errors"
	"slices"
	"strconv"

	"parley"
)

// The limits of a table. A command that breaks one changes nothing.
const (
	MaxKey   = 1 << 10
	MaxValue = 48 << 10
	MaxBytes = 256 << 20 // of all keys and values together, with some bytes for each key
)

// overhead is what a key counts beside its own bytes and those of its value.
const overhead = 16

// op is what a command does.
type op byte

const (
	opGet op = iota + 1
	opPut
	opDelete
	opSwap
	opAdd
)

// Status says what became of a command.
type Status byte

// What may become of a command.
const (
	Done     Status = iota + 1
	Missing         // the key has no value
	Changed         // the key has another version than the command expects
	NoNumber        // the value is no number, or the sum is out of range
	TooLarge        // the key or the value is too long, or the table full
	Unknown         // there is no such command
)

// The errors that answers of these kinds are.
var (
	ErrMissing  = errors.New("the key has no value")
	ErrChanged  = errors.New("the key has another version")
	ErrNoNumber = errors.New("the value is no number, or would be out of range")
	ErrTooLarge = errors.New("the key or the value is too long, or the table is full")
	ErrUnknown  = errors.New("there is no such command")
)

// Err is the status as an error, nil if the command was carried out.
func (s Status) Err() error {
	errs := [...]error{ErrUnknown, nil, ErrMissing, ErrChanged, ErrNoNumber, ErrTooLarge, ErrUnknown}
	return errs[min(s, Unknown)]
}

// Answer is what a command answers: the version that the key has now, and the value to who
// could not know it, which is to Get, to Add, and to Swap if the version is another.
type Answer struct {
	Status  Status
	Version uint64
	Value   []byte
}

// Get reads a key.
func Get(key []byte) []byte { return command(opGet, key, 0, nil) }

// Put gives a key a value.
func Put(key, value []byte) []byte { return command(opPut, key, 0, value) }

// Delete takes a key's value away.
func Delete(key []byte) []byte { return command(opDelete, key, 0, nil) }

// Swap gives a key a value if it has a version, 0 if it has no value.
func Swap(key []byte, version uint64, value []byte) []byte {
	return command(opSwap, key, version, value)
}

// Add adds to a counter, a value of decimal digits; a key without a value counts as 0.
func Add(key []byte, by int64) []byte { return command(opAdd, key, uint64(by), nil) }

// command encodes one.
func command(what op, key []byte, number uint64, value []byte) []byte {
	b := make([]byte, 0, len(key)+len(value)+16)
	b = append(b, byte(what))
	b = parley.AppendBytes(b, key)
	b = binary.AppendUvarint(b, number)
	return append(b, value...)
}

// ReadAnswer reads what Apply returned, and tells whether it is an answer.
func ReadAnswer(b []byte) (a Answer, ok bool) {
	if len(b) == 0 {
		return a, false
	}
	a.Status = Status(b[0])
	version, rest, err := parley.ReadUvarint(b[1:], 1<<64-1)
	if err != nil || a.Status < Done || a.Status > Unknown {
		return Answer{}, false
	}
	a.Version = version
	if len(rest) > 0 {
		a.Value = rest
	}
	return a, true
}

// entry is one key. A key that was deleted keeps its version.
type entry struct {
	key     string
	version uint64
	here    bool
	value   []byte
	print   uint64 // a hash of all this, and of its place
}

// Table is the state machine.
type Table struct {
	most    int            // bytes
	at      map[string]int // key to entry
	entries []entry        // in the order in which keys were first given a value
	bytes   int
	sum     uint64 // of the prints of all entries
}

// New returns an empty table.
func New() *Table { return Limited(MaxBytes) }

// Limited returns an empty table that has room for so many bytes, at most MaxBytes.
func Limited(bytes int) *Table { return &Table{most: min(bytes, MaxBytes), at: make(map[string]int)} }

// Reads tells whether a command changes nothing, whatever the table holds.
func (t *Table) Reads(b []byte) bool { return len(b) > 0 && op(b[0]) == opGet }

// Refuses tells whether an answer says why the command was not carried out.
func (t *Table) Refuses(b []byte) bool {
	a, ok := ReadAnswer(b)
	return !ok || a.Status != Done
}

// Apply carries out a command.
func (t *Table) Apply(b []byte) []byte {
	a := Answer{Status: Unknown}
	if len(b) > 0 {
		r := parley.Reader{Rest: b[1:]}
		key, number := string(r.Bytes()), r.Number(1<<64-1)
		if !r.Bad {
			a = t.apply(op(b[0]), key, number, r.Rest)
		}
	}
	return append(binary.AppendUvarint([]byte{byte(a.Status)}, a.Version), a.Value...)
}

func (t *Table) apply(what op, key string, number uint64, value []byte) Answer {
	i, known := t.at[key]
	var e entry
	if known {
		e = t.entries[i]
	}
	switch what {
	case opGet:
	case opPut:
		return t.put(key, e, value).brief()
	case opDelete:
		if e.here {
			t.bytes -= len(e.value)
			t.set(i, entry{key: key, version: e.version + 1})
			return Answer{Status: Done, Version: e.version + 1}
		}
	case opSwap:
		if e.here && e.version != number || !e.here && number != 0 {
			return Answer{Changed, e.version, e.value}
		}
		return t.put(key, e, value).brief()
	case opAdd:
		return t.add(key, e, int64(number))
	default:
		return Answer{Status: Unknown}
	}
	if !e.here {
		return Answer{Status: Missing, Version: e.version}
	}
	return Answer{Done, e.version, e.value}
}

// brief leaves the value out, which who asked has given.
func (a Answer) brief() Answer {
	a.Value = nil
	return a
}

// put gives a key a value.
func (t *Table) put(key string, e entry, value []byte) Answer {
	more := len(value) - len(e.value)
	_, known := t.at[key]
	if !known {
		more += len(key) + overhead
	}
	if len(key) == 0 || len(key) > MaxKey || len(value) > MaxValue || t.bytes+more > t.most {
		return Answer{TooLarge, e.version, e.value}
	}
	if !known {
		t.at[key] = len(t.entries)
		t.entries = append(t.entries, entry{})
	}
	t.bytes += more
	e = entry{key: key, version: e.version + 1, here: true, value: slices.Clone(value)}
	t.set(t.at[key], e)
	return Answer{Done, e.version, e.value}
}

// set puts an entry into its place.
func (t *Table) set(i int, e entry) {
	e.print = fingerprint(i, &e)
	t.sum += e.print - t.entries[i].print
	t.entries[i] = e
}

// Hash is a hash of the state, which is kept as that changes.
func (t *Table) Hash() uint64 { return t.sum ^ uint64(len(t.entries)) }

// fingerprint is a hash of an entry and its place.
func fingerprint(i int, e *entry) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := uint64(offset)
	number := func(x uint64) {
		for range 8 {
			h = (h ^ x&0xFF) * prime
			x >>= 8
		}
	}
	number(uint64(i))
	number(e.version)
	number(uint64(len(e.key)))
	for k := range len(e.key) {
		h = (h ^ uint64(e.key[k])) * prime
	}
	if e.here {
		number(uint64(len(e.value)) + 1)
	}
	for _, b := range e.value {
		h = (h ^ uint64(b)) * prime
	}
	return h ^ h>>32
}

// add adds to a counter.
func (t *Table) add(key string, e entry, by int64) Answer {
	var now int64
	if e.here {
		var err error
		if now, err = strconv.ParseInt(string(e.value), 10, 64); err != nil {
			return Answer{NoNumber, e.version, e.value}
		}
	}
	sum := now + by
	if (sum > now) != (by > 0) && by != 0 {
		return Answer{NoNumber, e.version, e.value}
	}
	return t.put(key, e, strconv.AppendInt(nil, sum, 10))
}

// Snapshot returns the state.
func (t *Table) Snapshot() []byte {
	b := binary.AppendUvarint(make([]byte, 0, t.bytes+16*len(t.entries)+8), uint64(len(t.entries)))
	for _, e := range t.entries {
		b = parley.AppendBytes(b, e.key)
		b = binary.AppendUvarint(b, e.version)
		if !e.here {
			b = append(b, 0)
			continue
		}
		b = parley.AppendBytes(append(b, 1), e.value)
	}
	return b
}

// Restore takes a state back, and tells whether the bytes are one. If not, the table is
// as it was.
func (t *Table) Restore(b []byte) bool {
	fresh := Limited(t.most)
	r := parley.Reader{Rest: b}
	for n := r.Count(); n > 0 && !r.Bad; n-- {
		e := entry{key: string(r.Take(r.Number(MaxKey))), version: r.Number(1<<64 - 1)}
		if e.here = r.Number(1) == 1; e.here {
			e.value = slices.Clone(r.Take(r.Number(MaxValue)))
		}
		if _, twice := fresh.at[e.key]; twice || e.version == 0 || e.key == "" {
			return false
		}
		fresh.at[e.key] = len(fresh.entries)
		fresh.entries = append(fresh.entries, entry{})
		fresh.set(len(fresh.entries)-1, e)
		fresh.bytes += len(e.key) + len(e.value) + overhead
	}
	if !r.Done() {
		return false
	}
	*t = *fresh
	return true
}
