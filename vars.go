package parley

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"
)

// Vars visits the variables of a machine's state. Hosts use one State method to save, load, rename and show a
// machine.
//
// Saved bytes are canonical: two machines in the same state save the same bytes, however they reached the
// state. Loading into a used machine has the same result as loading into a fresh machine.
type Vars struct {
	mode    mode
	durable bool // visit only variables inside Durable
	inside  int  // depth of Durable calls
	now     Tick
	buf     []byte  // saving: written so far; loading: not yet read
	bad     bool    // loading: the bytes do not fit
	names   []place // of the parts around the variable, showing or deriving
	shown   *Shown  // showing or deriving
	renamed *Renaming
}

type mode uint8

const (
	saving mode = iota
	loading
	showing
	deriving // showing only what State methods derive
)

// Renaming says how processes are permuted: process i becomes Perm[i].
type Renaming struct {
	Perm []ID
	// Msg renames the processes that a message names. It is the field Rename of the protocol. The argument e is the
	// address before renaming.
	Msg func(e Env, m Msg, perm []ID) Msg
}

// Save appends the canonical bytes of m's state. Times are saved relative to
// now, the process's own clock.
func Save(m Machine, now Tick, buf []byte) []byte {
	v := Vars{mode: saving, now: now, buf: buf}
	m.State(&v)
	return v.buf
}

// SaveDurable is like Save, but saves only the durable variables. Compact writes these.
func SaveDurable(m Machine, now Tick, buf []byte) []byte {
	v := Vars{mode: saving, now: now, buf: buf, durable: true}
	m.State(&v)
	return v.buf
}

// SaveRenamed is like Save, but saves the state that m would have if the processes were renamed by r.
func SaveRenamed(m Machine, now Tick, r Renaming, buf []byte) []byte {
	v := Vars{mode: saving, now: now, buf: buf, renamed: &r}
	m.State(&v)
	return v.buf
}

// Load sets m's state to the state that Save wrote, and reports whether the bytes fit. The machine may keep
// parts of b.
func Load(m Machine, now Tick, b []byte) bool { return new(Vars).Load(m, now, b) }

// Load does the same as the function Load, but reuses v. It saves allocations for callers that load many
// machines.
func (v *Vars) Load(m Machine, now Tick, b []byte) bool {
	*v = Vars{mode: loading, now: now, buf: b}
	m.State(v)
	return !v.bad && len(v.buf) == 0
}

// LoadDurable sets the durable variables to the values that SaveDurable wrote, and leaves the others
// unchanged.
func LoadDurable(m Machine, now Tick, b []byte) bool {
	v := Vars{mode: loading, now: now, buf: b, durable: true}
	m.State(&v)
	return !v.bad && len(v.buf) == 0
}

// Loading reports whether the visit sets the variables. If so, State methods allocate slices and maps before
// they visit the elements.
func (v *Vars) Loading() bool { return v.mode == loading }

// Fail marks a load as bad: this machine would not have saved the values visited
// so far. In other visits it does nothing.
func (v *Vars) Fail() { v.bad = v.bad || v.mode == loading }

// Skips reports whether this visit skips the variables at this place, because the visit is only for durable
// variables and these are volatile. If so, a State method omits other work, such as rebuilding state after
// loading.
func (v *Vars) Skips() bool { return v.skipped() }

// Durable visits variables that survive a crash. All other variables are volatile.
func (v *Vars) Durable(visit func()) {
	v.inside++
	visit()
	v.inside--
}

// DurableIf visits variables. They survive a crash only if durable is true.
func (v *Vars) DurableIf(durable bool, visit func()) {
	if durable {
		v.Durable(visit)
	} else {
		visit()
	}
}

func (v *Vars) skipped() bool { return v.durable && v.inside == 0 }

func (v *Vars) number(name string, x uint64, show func(uint64) string) uint64 {
	switch v.mode {
	case saving:
		v.buf = binary.AppendUvarint(v.buf, x)
	case loading:
		if len(v.buf) > 0 && v.buf[0] < 0x80 { // the fast path: nearly all numbers take one byte
			x, v.buf = uint64(v.buf[0]), v.buf[1:]
			break
		}
		var err error
		if x, v.buf, err = ReadUvarint(v.buf, 1<<64-1); err != nil {
			v.bad = true
		}
	case showing:
		v.show(name, show(x))
	}
	return x
}

func (v *Vars) show(name, value string) {
	v.shown.Derive(Variable{Name: name, Value: value})
}

// Num visits a number.
func Num[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64](
	v *Vars, name string, x *T,
) {
	if v.skipped() {
		return
	}
	u := v.number(name, zigzag(int64(*x)), func(u uint64) string {
		return fmt.Sprint(T(unzigzag(u)))
	})
	*x = T(unzigzag(u))
	v.bad = v.bad || zigzag(int64(*x)) != u // too large for a T
}

func zigzag(x int64) uint64   { return uint64(x<<1) ^ uint64(x>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

// Bool visits a truth value.
func (v *Vars) Bool(name string, x *bool) {
	if v.skipped() {
		return
	}
	if v.mode == loading && len(v.buf) > 0 && v.buf[0] <= 1 {
		*x, v.buf = v.buf[0] == 1, v.buf[1:]
		return
	}
	var u uint64
	if *x {
		u = 1
	}
	u = v.number(name, u, func(u uint64) string { return fmt.Sprint(u == 1) })
	v.bad = v.bad || u > 1
	*x = u == 1
}

// ID visits the name of a process.
func (v *Vars) ID(name string, x *ID) {
	if v.skipped() {
		return
	}
	u := v.number(name, uint64(v.rename(*x)), func(u uint64) string { return v.shown.Called(ID(u)) })
	if v.mode == loading { // when saving, *x must keep its old name
		*x, v.bad = ID(u), v.bad || u > uint64(All)
	}
}

func (v *Vars) rename(id ID) ID {
	if v.renamed == nil || int(id) >= len(v.renamed.Perm) {
		return id
	}
	return v.renamed.Perm[id]
}

// Time visits a time on the process's own clock. It is saved relative to now, so
// that states that differ only by a shift in time are equal.
func (v *Vars) Time(name string, t *Tick) {
	if v.skipped() {
		return
	}
	u := v.number(name, zigzag(int64(*t-v.now)), func(u uint64) string {
		return fmt.Sprintf("now%+d", unzigzag(u))
	})
	if v.mode == loading {
		*t = v.now + Tick(unzigzag(u))
	}
}

// Set visits a set of processes.
func (v *Vars) Set(name string, s *Set) {
	if v.skipped() {
		return
	}
	switch v.mode {
	case showing:
		v.shown.Derive(Variable{Name: name, Value: "[" + v.shown.joined(*s, " ") + "]", Kind: ProcessSet})
	case saving:
		out := *s
		if v.renamed != nil {
			out = Set{}
			for id := range s.All() {
				out.Add(v.rename(id))
			}
		}
		// Omit the empty words at the end, so that small systems have small states.
		last := len(out)
		for last > 0 && out[last-1] == 0 {
			last--
		}
		v.buf = binary.AppendUvarint(v.buf, uint64(last))
		for _, w := range out[:last] {
			v.buf = binary.LittleEndian.AppendUint64(v.buf, w)
		}
	case loading:
		*s = Set{}
		words := v.count(len(s), 8)
		for i := range words {
			s[i] = binary.LittleEndian.Uint64(v.buf)
			v.buf = v.buf[8:]
		}
		v.bad = v.bad || words > 0 && s[words-1] == 0
	}
}

// count reads a number of parts: at most limit, each of at least size bytes.
func (v *Vars) count(limit, size int) int {
	if len(v.buf) > 0 && v.buf[0] < 0x80 && int(v.buf[0]) <= limit && int(v.buf[0])*size < len(v.buf) {
		n := int(v.buf[0])
		v.buf = v.buf[1:]
		return n
	}
	x, rest, err := ReadUvarint(v.buf, uint64(limit))
	if err != nil || x*uint64(size) > uint64(len(rest)) {
		v.bad, v.buf = true, nil
		return 0
	}
	v.buf = rest
	return int(x)
}

// Bytes visits bytes that the machine never changes in place: a loaded machine
// shares them with the snapshot. An empty slice equals nil.
func (v *Vars) Bytes(name string, b *[]byte) {
	if v.mode == loading && len(v.buf) > 0 && int(v.buf[0]) < min(len(v.buf), 0x80) && !v.skipped() {
		// The fast path: nearly all byte strings are short.
		n := 1 + int(v.buf[0])
		if *b = v.buf[1:n:n]; n == 1 {
			*b = nil
		}
		v.buf = v.buf[n:]
		return
	}
	v.bytes(name, b, nil)
}

// Coded visits bytes that encode IDs of processes, which ren renames.
func (v *Vars) Coded(name string, b *[]byte, ren func(b []byte, perm []ID) []byte) {
	v.bytes(name, b, ren)
}

// Buffer visits bytes that the machine changes in place: a loaded machine gets
// its own copy.
func (v *Vars) Buffer(name string, b *[]byte) {
	own := *b
	v.bytes(name, b, nil)
	if v.mode == loading && !v.skipped() {
		*b = append(own[:0], *b...)
	}
}

func (v *Vars) bytes(name string, b *[]byte, ren func(b []byte, perm []ID) []byte) {
	if v.skipped() {
		return
	}
	switch v.mode {
	case showing:
		v.show(name, Printable(*b))
	case saving:
		out := *b
		if ren != nil && v.renamed != nil && len(out) > 0 {
			out = ren(out, v.renamed.Perm)
		}
		v.buf = binary.AppendUvarint(v.buf, uint64(len(out)))
		v.buf = append(v.buf, out...)
	case loading:
		n := v.count(len(v.buf), 1)
		if n == 0 {
			*b = nil
			return
		}
		*b, v.buf = v.buf[:n:n], v.buf[n:]
	}
}

// Printable returns b as text if it is printable, and otherwise in hexadecimal.
// For empty bytes it returns two quotes.
func Printable(b []byte) string {
	switch {
	case len(b) == 0:
		return `""`
	case !utf8.Valid(b):
		return "0x" + hex.EncodeToString(b)
	}
	for _, c := range string(b) {
		if !unicode.IsPrint(c) {
			return "0x" + hex.EncodeToString(b)
		}
	}
	return string(b)
}

// Msg visits a message that the machine holds back. The argument e is the address of the message. Only the fields
// that Rename reads must be set. If Renaming.Msg is nil, the message is not renamed.
func (v *Vars) Msg(name string, e Env, m *Msg) {
	if v.skipped() {
		return
	}
	switch v.mode {
	case showing:
		v.show(name, fmt.Sprintf("kind %d origin %s seq %d value %d body %s",
			m.Kind, m.Origin, m.Seq, m.Value, Printable(m.Body)))
	case saving:
		out := *m
		if v.renamed != nil && v.renamed.Msg != nil {
			out = v.renamed.Msg(e, out, v.renamed.Perm)
		}
		v.buf = append(v.buf, byte(out.Kind))
		v.buf = binary.AppendUvarint(v.buf, uint64(out.Origin))
		v.buf = binary.AppendUvarint(v.buf, out.Seq)
		v.buf = binary.AppendUvarint(v.buf, out.Value)
		v.buf = binary.AppendUvarint(v.buf, uint64(len(out.Body)))
		v.buf = append(v.buf, out.Body...)
	case loading:
		*m = Msg{}
		if len(v.buf) == 0 {
			v.bad = true
			return
		}
		m.Kind, v.buf = Kind(v.buf[0]), v.buf[1:]
		origin := v.number("", 0, nil)
		m.Origin, v.bad = ID(origin), v.bad || origin > uint64(All)
		m.Seq = v.number("", 0, nil)
		m.Value = v.number("", 0, nil)
		v.bytes("", &m.Body, nil)
	}
}

// Slice visits a slice of any length, element by element.
func Slice[T any](v *Vars, name string, s *[]T, each func(i int, x *T)) {
	if v.skipped() {
		return
	}
	n := v.length(name, len(*s))
	if v.mode == loading {
		*s = resized(*s, n)
	}
	for i := range *s {
		v.within(name, i, func() { each(i, &(*s)[i]) })
	}
}

// PerProcess visits a slice with one element per process, in the order of the processes. A renaming of the
// processes permutes the slice. Its length is fixed when the machine is made.
func PerProcess[T any](v *Vars, name string, s []T, each func(id ID, x *T)) {
	if v.skipped() {
		return
	}
	if v.renamed == nil && v.mode != showing && v.mode != deriving {
		for i := range s {
			each(ID(i), &s[i])
		}
		return
	}
	for i := range s {
		from := i
		if v.renamed != nil {
			from = slices.Index(v.renamed.Perm, ID(i))
		}
		v.within(name, i, func() { each(ID(from), &s[from]) })
	}
}

// Machine visits the state of an inner machine.
func (v *Vars) Machine(name string, m interface{ State(*Vars) }) {
	if v.mode != showing && v.mode != deriving {
		m.State(v)
		return
	}
	v.names = append(v.names, place{name, -1})
	m.State(v)
	v.names = v.names[:len(v.names)-1]
}

// Inner visits the state of an inner machine that has its own kinds of messages. The function rename renames the
// messages that the inner machine holds back. If rename is nil, they stay unchanged.
func (v *Vars) Inner(name string, m interface{ State(*Vars) }, rename func(e Env, m Msg, perm []ID) Msg) {
	outer := v.renamed
	if outer != nil {
		v.renamed = &Renaming{Perm: outer.Perm, Msg: rename}
	}
	v.Machine(name, m)
	v.renamed = outer
}

// length visits the number of elements of a slice.
func (v *Vars) length(name string, n int) int {
	switch v.mode {
	case saving:
		v.buf = binary.AppendUvarint(v.buf, uint64(n))
	case loading:
		n = v.count(len(v.buf), 1)
	case showing:
		if n == 0 {
			v.show(name, "none")
		}
	}
	return n
}

func (v *Vars) within(name string, i int, visit func()) {
	if v.mode != showing && v.mode != deriving {
		visit()
		return
	}
	v.names = append(v.names, place{name, i})
	visit()
	v.names = v.names[:len(v.names)-1]
}

// resized returns s with n elements. It keeps the old elements, so that their own
// memory is used again.
func resized[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return append(s[:cap(s)], make([]T, n-cap(s))...)
}
