package parley_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"parley"
)

// many is a machine with a variable of every kind that Vars visits.
type many struct {
	parley.Base
	n int // fixed

	yes     bool
	small   int8
	octet   uint8
	word    uint16
	count   int
	big     uint64
	who     parley.ID
	set     parley.Set
	at      parley.Tick
	fixed   []byte
	coded   []byte // IDs, one a byte
	buffer  []byte
	held    parley.Msg
	list    []element
	of      []element // per process
	durable int
	kept    []parley.ID
	inner   part
	other   part
	last    parley.Msg
}

type element struct {
	who   parley.ID
	bytes []byte
	deep  []parley.Set
}

// part is an inner machine; its messages name a process in Origin.
type part struct {
	value int
	held  parley.Msg
}

func (p *part) State(v *parley.Vars) {
	parley.Num(v, "value", &p.value)
	v.Msg("held", parley.Env{From: 1}, &p.held)
}

func newMany(n int) *many { return &many{n: n, of: make([]element, n)} }

func (m *many) State(v *parley.Vars) {
	v.Bool("yes", &m.yes)
	parley.Num(v, "small", &m.small)
	parley.Num(v, "octet", &m.octet)
	parley.Num(v, "word", &m.word)
	parley.Num(v, "count", &m.count)
	parley.Num(v, "big", &m.big)
	v.ID("who", &m.who)
	v.Set("set", &m.set)
	v.Time("at", &m.at)
	v.Bytes("fixed", &m.fixed)
	v.Coded("coded", &m.coded, renameBytes)
	v.Buffer("buffer", &m.buffer)
	v.Msg("message", parley.Env{From: 2}, &m.held)
	parley.Slice(v, "list", &m.list, func(_ int, e *element) { e.visit(v) })
	parley.PerProcess(v, "of", m.of, func(_ parley.ID, e *element) { e.visit(v) })
	v.Durable(func() {
		parley.Num(v, "durable", &m.durable)
		parley.Slice(v, "kept", &m.kept, func(_ int, id *parley.ID) { v.ID("id", id) })
	})
	v.Machine("inner", &m.inner)
	v.Inner("other", &m.other, renameValue)
	v.Msg("last", parley.Env{}, &m.last)
}

func (e *element) visit(v *parley.Vars) {
	v.ID("who", &e.who)
	v.Bytes("bytes", &e.bytes)
	parley.Slice(v, "deep", &e.deep, func(_ int, s *parley.Set) { v.Set("set", s) })
}

func renameBytes(b []byte, perm []parley.ID) []byte {
	out := bytes.Clone(b)
	for i := range out {
		out[i] = byte(perm[int(out[i])%len(perm)])
	}
	return out
}

// renameOrigin is the Rename of many, renameValue the Rename of the machine in other.
func renameOrigin(_ parley.Env, m parley.Msg, perm []parley.ID) parley.Msg {
	if int(m.Origin) < len(perm) {
		m.Origin = perm[m.Origin]
	}
	return m
}

func renameValue(_ parley.Env, m parley.Msg, perm []parley.ID) parley.Msg {
	m.Value = uint64(perm[m.Value%uint64(len(perm))])
	return m
}

func randomMany(r *rand.Rand, n int) *many {
	m := newMany(n)
	id := func() parley.ID { return parley.ID(r.IntN(n)) }
	some := func() []byte {
		b := make([]byte, r.IntN(4))
		for i := range b {
			b[i] = byte(r.IntN(n))
		}
		if len(b) == 0 {
			return nil
		}
		return b
	}
	set := func() (s parley.Set) {
		for range r.IntN(4) {
			s.Add(id())
		}
		return s
	}
	msg := func() parley.Msg {
		return parley.Msg{
			Kind: parley.Kind(r.Uint32()), Origin: parley.ID(r.IntN(n)), Seq: r.Uint64() >> r.IntN(64),
			Value: uint64(r.IntN(n)), Body: some(),
		}
	}
	elem := func() (e element) {
		e.who, e.bytes = id(), some()
		for range r.IntN(3) {
			e.deep = append(e.deep, set())
		}
		return e
	}
	m.yes, m.small, m.octet, m.word = r.IntN(2) == 0, int8(r.Uint32()), uint8(r.Uint32()), uint16(r.Uint32())
	m.count, m.big = int(r.Uint64())>>r.IntN(63), r.Uint64()>>r.IntN(64)
	m.who, m.set, m.at = id(), set(), parley.Tick(r.IntN(1000))-500
	m.fixed, m.coded, m.buffer = some(), some(), some()
	m.held = msg()
	for range r.IntN(3) {
		m.list = append(m.list, elem())
	}
	for i := range m.of {
		m.of[i] = elem()
	}
	m.durable = r.IntN(100)
	for range r.IntN(3) {
		m.kept = append(m.kept, id())
	}
	m.inner, m.other, m.last = part{r.IntN(9), msg()}, part{r.IntN(9), msg()}, msg()
	return m
}

// equal compares states by their variables; an empty slice equals nil.
func equal(a, b *many) bool { return reflect.DeepEqual(emptied(*a), emptied(*b)) }

func emptied(m many) many {
	none := func(b *[]byte) {
		if len(*b) == 0 {
			*b = nil
		}
	}
	clean := func(list []element) []element {
		var out []element
		for _, e := range list {
			none(&e.bytes)
			e.deep = append([]parley.Set(nil), e.deep...)
			out = append(out, e)
		}
		return out
	}
	none(&m.fixed)
	none(&m.coded)
	none(&m.buffer)
	m.list, m.of, m.kept = clean(m.list), clean(m.of), append([]parley.ID(nil), m.kept...)
	return m
}

const now parley.Tick = 12345

// A state that is saved and loaded is the same, in a fresh machine and in one
// that was in any other state, and is saved as the same bytes.
func TestVarsRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		m := randomMany(r, 5)
		saved := parley.Save(m, now, nil)
		for _, into := range []*many{newMany(5), randomMany(r, 5)} {
			if !parley.Load(into, now, saved) {
				t.Fatalf("%x is not loaded", saved)
			}
			if !equal(m, into) {
				t.Fatalf("\nhave %+v\nwant %+v", into, m)
			}
			if again := parley.Save(into, now, []byte("before")); !bytes.Equal(again,
				append([]byte("before"), saved...)) {
				t.Fatalf("%x is saved again as %x", saved, again)
			}
		}
	}
}

// Saved bytes depend only on the state: not on how the machine reached it, and not on
// memory left over from longer slices.
func TestVarsCanonical(t *testing.T) {
	a, b := newMany(3), newMany(3)
	b.list = append(b.list, element{who: 2, bytes: []byte("x")})[:0]
	b.fixed, b.coded, b.buffer = []byte{}, []byte{}, append([]byte("long"), 1)[:0]
	b.set.Add(70)
	b.set.Remove(70)
	b.held.Body = []byte{}
	if !bytes.Equal(parley.Save(a, now, nil), parley.Save(b, now, nil)) {
		t.Error("two ways to one state save different bytes")
	}
	// Different states are saved as different bytes.
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		a, b := randomMany(r, 2), randomMany(r, 2)
		b.at = a.at
		if same := bytes.Equal(parley.Save(a, now, nil), parley.Save(b, now, nil)); same != equal(a, b) {
			t.Fatalf("\n%+v\n%+v\nsame bytes: %v", a, b, same)
		}
	}
}

// Durable variables can be saved and loaded alone; the others stay unchanged.
func TestVarsDurable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for range 500 {
		m, into := randomMany(r, 4), randomMany(r, 4)
		want := emptied(*into)
		want.durable, want.kept = m.durable, append([]parley.ID(nil), m.kept...)
		saved := parley.SaveDurable(m, now, nil)
		if !parley.LoadDurable(into, now, saved) || !equal(into, &want) {
			t.Fatalf("\nhave %+v\nwant %+v", into, want)
		}
		if again := parley.SaveDurable(into, now, nil); !bytes.Equal(again, saved) {
			t.Fatal("other durable bytes")
		}
		if len(saved) >= len(parley.Save(m, now, nil)) || parley.LoadDurable(into, now, append(saved, 0)) {
			t.Fatal("volatile variables are among the durable ones")
		}
	}
}

// SaveRenamed is Save of the state with the processes renamed.
func TestVarsRenamed(t *testing.T) {
	const n = 5
	r := rand.New(rand.NewPCG(1, 4))
	for range 1000 {
		m := randomMany(r, n)
		if r.IntN(4) == 0 {
			m.who = parley.All // not the ID of a process
		}
		perm := make([]parley.ID, n)
		for i, to := range r.Perm(n) {
			perm[i] = parley.ID(to)
		}
		have := parley.SaveRenamed(m, now, parley.Renaming{Perm: perm, Msg: renameOrigin}, nil)
		if want := parley.Save(renamedMany(m, perm), now, nil); !bytes.Equal(have, want) {
			t.Fatalf("%v of %+v:\nhave %x\nwant %x", perm, m, have, want)
		}
	}
}

// renamedMany renames by hand.
func renamedMany(m *many, perm []parley.ID) *many {
	id := func(id parley.ID) parley.ID {
		if id == parley.All {
			return id
		}
		return perm[id]
	}
	set := func(s parley.Set) (out parley.Set) {
		for i := range parley.ID(len(perm)) {
			if s.Has(i) {
				out.Add(perm[i])
			}
		}
		return out
	}
	elem := func(e element) element {
		e.who, e.deep = id(e.who), append([]parley.Set(nil), e.deep...)
		for i := range e.deep {
			e.deep[i] = set(e.deep[i])
		}
		return e
	}
	out := *m
	out.who, out.set, out.coded = id(m.who), set(m.set), renameBytes(m.coded, perm)
	out.held, out.inner.held = renameOrigin(parley.Env{}, m.held, perm),
		renameOrigin(parley.Env{}, m.inner.held, perm)
	out.other.held = renameValue(parley.Env{}, m.other.held, perm)
	out.last = renameOrigin(parley.Env{}, m.last, perm)
	out.list, out.of, out.kept = nil, make([]element, len(perm)), nil
	for _, e := range m.list {
		out.list = append(out.list, elem(e))
	}
	for i, e := range m.of {
		out.of[perm[i]] = elem(e)
	}
	for _, k := range m.kept {
		out.kept = append(out.kept, id(k))
	}
	return &out
}

// Times are relative to the process's clock: a shift in time makes no other state.
func TestVarsTime(t *testing.T) {
	a, b := newMany(1), newMany(1)
	a.at, b.at = 100, 5100
	saved := parley.Save(a, 40, nil)
	if !bytes.Equal(saved, parley.Save(b, 5040, nil)) || bytes.Equal(saved, parley.Save(b, 5041, nil)) {
		t.Error("not relative to now")
	}
	if !parley.Load(b, 1000, saved) || b.at != 1060 {
		t.Error("loaded as", b.at)
	}
	a.at = 10 // before now
	if !parley.Load(b, 1000, parley.Save(a, 40, nil)) || b.at != 970 {
		t.Error("loaded as", b.at)
	}
}

// A loaded machine may share Bytes with the snapshot. It never shares a Buffer, which it
// changes in place.
func TestVarsBuffer(t *testing.T) {
	m, into := newMany(1), newMany(1)
	m.buffer, m.fixed = []byte("buffer"), []byte("fixed")
	saved := parley.Save(m, now, nil)
	kept := bytes.Clone(saved)
	for range 2 {
		parley.Load(into, now, saved)
		into.buffer[0]++
		into.buffer = append(into.buffer, "more"...)
		into.fixed = append(into.fixed, "more"...) // the memory beyond its end belongs to the snapshot
		if !bytes.Equal(saved, kept) {
			t.Fatal("the snapshot was changed")
		}
	}
}

// Load refuses bytes that no Save wrote, whatever is wrong with them.
func TestVarsRefused(t *testing.T) {
	type visit = func(v *parley.Vars)
	var yes bool
	var octet uint8
	var small int8
	var big uint64
	var id parley.ID
	var set parley.Set
	var b []byte
	var msg parley.Msg
	var list []uint8
	var at parley.Tick
	num := func(u uint64) []byte { return binary.AppendUvarint(nil, u) }
	for name, c := range map[string]struct {
		visit visit
		well  []byte // loads
		ill   [][]byte
	}{
		"bool":  {func(v *parley.Vars) { v.Bool("", &yes) }, []byte{1}, [][]byte{{2}, {0x81, 0}, {}}},
		"uint8": {func(v *parley.Vars) { parley.Num(v, "", &octet) }, num(510), [][]byte{num(512), num(1), {0xFF}}},
		"int8":  {func(v *parley.Vars) { parley.Num(v, "", &small) }, num(255), [][]byte{num(256)}},
		"uint64": {func(v *parley.Vars) { parley.Num(v, "", &big) }, num(math.MaxUint64),
			[][]byte{append(num(math.MaxUint64), 0), {0x80, 0}}},
		"id":   {func(v *parley.Vars) { v.ID("", &id) }, num(0xFFFF), [][]byte{num(0x10000)}},
		"set":  {func(v *parley.Vars) { v.Set("", &set) }, append(num(1), make([]byte, 7)...), nil},
		"time": {func(v *parley.Vars) { v.Time("", &at) }, num(7), [][]byte{{}, {0x80}}},
		"bytes": {func(v *parley.Vars) { v.Bytes("", &b) }, []byte{1, 9},
			[][]byte{{2, 9}, {1, 9, 9}, {0x81, 0, 9}, num(1 << 62)}},
		"buffer": {func(v *parley.Vars) { v.Buffer("", &b) }, []byte{1, 9}, [][]byte{{2, 9}, {}}},
		"slice": {func(v *parley.Vars) {
			parley.Slice(v, "", &list,
				func(_ int, x *uint8) { parley.Num(v, "", x) })
		}, []byte{2, 2, 4},
			[][]byte{{3, 2, 4}, {2, 2}, num(1 << 40), {}}},
		"message": {func(v *parley.Vars) { v.Msg("", parley.Env{}, &msg) }, []byte{1, 2, 3, 4, 1, 5},
			[][]byte{{1, 2, 3, 4, 2, 5}, {1, 2, 3, 4}, {}, append(append([]byte{1}, num(0x10000)...), 3, 4, 0)}},
	} {
		if name == "set" {
			c.well = append(num(1), 1, 0, 0, 0, 0, 0, 0, 0)
			c.ill = [][]byte{append(num(1), make([]byte, 8)...), append(num(1), 1, 0),
				append(num(5), make([]byte, 40)...), {}}
		}
		if !parley.Load(visitor(c.visit), now, c.well) {
			t.Errorf("%s: %x is refused", name, c.well)
		}
		for _, ill := range c.ill {
			if parley.Load(visitor(c.visit), now, ill) {
				t.Errorf("%s: %x is loaded", name, ill)
			}
		}
	}
}

type visitor func(v *parley.Vars)

func (visitor) Start(*parley.Step)                          {}
func (visitor) Request(*parley.Step, parley.Msg)            {}
func (visitor) Receive(*parley.Step, parley.ID, parley.Msg) {}
func (visitor) Timeout(*parley.Step, parley.Timer)          {}
func (f visitor) State(v *parley.Vars)                      { f(v) }

// Load never panics, whatever the bytes, and bytes that it loads are what the machine
// saves.
func FuzzLoad(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 5))
	for range 8 {
		f.Add(parley.Save(randomMany(r, 3), now, nil))
	}
	f.Fuzz(hostile)
}

func hostile(t *testing.T, b []byte) {
	m := newMany(3)
	if parley.Load(m, now, b) {
		if again := parley.Save(m, now, nil); !bytes.Equal(again, b) {
			t.Fatalf("%x is loaded and saved as %x", b, again)
		}
	}
	m = newMany(3)
	if parley.LoadDurable(m, now, b) {
		if again := parley.SaveDurable(m, now, nil); !bytes.Equal(again, b) {
			t.Fatalf("%x is loaded and saved as %x", b, again)
		}
	}
}

// The same for mutated states, in numbers that the fuzzing of a commit has no time for.
func TestVarsHostile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	accepted := 0
	for range 20000 {
		b := parley.Save(randomMany(r, 3), now, nil)
		switch r.IntN(3) {
		case 0:
			b = b[:r.IntN(len(b))]
		case 1:
			b = append(b, byte(r.Uint32()))
		default:
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		hostile(t, b)
		if parley.Load(newMany(3), now, b) {
			accepted++
		}
	}
	if accepted == 0 || accepted == 20000 {
		t.Error(accepted, "of 20000 were loaded")
	}
}

// Show returns the variables in readable form.
func TestVarsShow(t *testing.T) {
	m := newMany(2)
	m.yes, m.small, m.who, m.at = true, -3, 1, now+5
	m.set.Add(1)
	m.fixed, m.coded = []byte("text"), []byte{1, 0}
	m.held = parley.Msg{Kind: 1, Origin: parley.All, Seq: 2, Value: 3, Body: []byte("b")}
	m.list = []element{{who: 1}}
	have := make(map[string]string)
	for _, v := range parley.Show(m, now) {
		if _, again := have[v.Name]; again {
			t.Error("twice:", v.Name)
		}
		have[v.Name] = v.Value
	}
	for name, want := range map[string]string{
		"yes": "true", "small": "-3", "who": "1", "at": "now+5", "set": "[1]", "fixed": "text", "coded": "0x0100",
		"message": "kind 1 origin all seq 2 value 3 body b", "list[0].who": "1", "list[0].deep": "none",
		"of[1].bytes": `""`,
		"kept":        "none", "inner.value": "0", "other.value": "0", "durable": "0",
	} {
		if got, shown := have[name]; got != want || !shown {
			t.Errorf("%s is shown as %q, not %q", name, got, want)
		}
	}
}
