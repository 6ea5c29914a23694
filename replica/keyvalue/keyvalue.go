// Package keyvalue implements a table of keys and values, and of counters, as a replicated state machine. A command
// reads or changes one key. Commands are atomic: no other command runs between the read and the write of a command.
//
// Every change of a key gives the key its next version, beginning with 1. If a key is deleted and created again, its
// versions continue. So a client that knows a version can detect whether the key has changed since then. A client can
// also use a version as a fencing token.
package keyvalue

import (
	"encoding/binary"
	"errors"
	"slices"
	"strconv"

	"parley"
)

// The limits of a table. A command that exceeds one changes nothing.
const (
	MaxKey   = 1 << 10
	MaxValue = 48 << 10
	MaxBytes = 256 << 20 // of all keys and values together, with 16 bytes of overhead for each key
)

// overhead is the number of bytes that a key counts in addition to its own and its value's.
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

// Status is the outcome of a command.
type Status byte

// The outcomes of a command.
const (
	Done     Status = iota + 1
	Missing         // the key has no value
	Changed         // the key has another version than the command expects
	NoNumber        // the value is no number, or the sum is out of range
	TooLarge        // the key or the value is too long, or the table is full
	Unknown         // there is no such command
)

// The errors of the outcomes.
var (
	ErrMissing  = errors.New("the key has no value")
	ErrChanged  = errors.New("the key has another version")
	ErrNoNumber = errors.New("the value is no number, or would be out of range")
	ErrTooLarge = errors.New("the key or the value is too long, or the table is full")
	ErrUnknown  = errors.New("there is no such command")
)

// Err returns the status as an error, or nil if the command was applied.
func (s Status) Err() error {
	errs := [...]error{ErrUnknown, nil, ErrMissing, ErrChanged, ErrNoNumber, ErrTooLarge, ErrUnknown}
	return errs[min(s, Unknown)]
}

// Answer is the answer to a command. It has the present version of the key. It has the value if the client cannot
// know the value: for Get, for Add, and for Swap if the version differs.
type Answer struct {
	Status  Status
	Version uint64
	Value   []byte
}

// Get returns a command that reads a key.
func Get(key []byte) []byte { return command(opGet, key, 0, nil) }

// Put returns a command that sets the value of a key.
func Put(key, value []byte) []byte { return command(opPut, key, 0, value) }

// Delete returns a command that deletes the value of a key.
func Delete(key []byte) []byte { return command(opDelete, key, 0, nil) }

// Swap returns a command that sets the value of a key if the key has the given version. Version 0 means that the key
// must have no value.
func Swap(key []byte, version uint64, value []byte) []byte {
	return command(opSwap, key, version, value)
}

// Add returns a command that adds to a counter, a value of decimal digits. A key without a value counts as 0.
func Add(key []byte, by int64) []byte { return command(opAdd, key, uint64(by), nil) }

// command encodes a command.
func command(what op, key []byte, number uint64, value []byte) []byte {
	b := make([]byte, 0, len(key)+len(value)+16)
	b = append(b, byte(what))
	b = parley.AppendBytes(b, key)
	b = binary.AppendUvarint(b, number)
	return append(b, value...)
}

// ReadAnswer reads an answer that Apply returned. ok reports whether b is an answer.
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

// entry is one key. A deleted key keeps its version.
type entry struct {
	key     string
	version uint64
	here    bool
	value   []byte
	print   uint64 // hash of the other fields and of the entry's index
}

// Table is the state machine.
type Table struct {
	most    int            // limit in bytes
	at      map[string]int // key to index in entries
	entries []entry        // in the order in which keys were first given a value
	bytes   int
	sum     uint64 // of the prints of all entries
}

// New returns an empty table.
func New() *Table { return Limited(MaxBytes) }

// Limited returns an empty table that has room for the given number of bytes, at most MaxBytes.
func Limited(bytes int) *Table { return &Table{most: min(bytes, MaxBytes), at: make(map[string]int)} }

// Reads reports whether a command changes nothing, whatever the table holds.
func (t *Table) Reads(b []byte) bool { return len(b) > 0 && op(b[0]) == opGet }

// Refuses reports whether an answer says why the command was not applied.
func (t *Table) Refuses(b []byte) bool {
	a, ok := ReadAnswer(b)
	return !ok || a.Status != Done
}

// Apply applies a command, and returns the answer.
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

// brief omits the value, because the client has sent it.
func (a Answer) brief() Answer {
	a.Value = nil
	return a
}

// put sets the value of a key.
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

// set replaces entry i.
func (t *Table) set(i int, e entry) {
	e.print = fingerprint(i, &e)
	t.sum += e.print - t.entries[i].print
	t.entries[i] = e
}

// Hash returns a hash of the state, which is maintained with every change.
func (t *Table) Hash() uint64 { return t.sum ^ uint64(len(t.entries)) }

// fingerprint returns a hash of an entry and its index.
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

// Restore replaces the state with a snapshot, and reports whether b is a snapshot. If not, the table stays
// unchanged.
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
