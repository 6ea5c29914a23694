package parley_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"parley"
)

func randomMsg(r *rand.Rand) (parley.Env, parley.Msg) {
	m := parley.Msg{
		Kind: parley.Kind(r.IntN(int(parley.Local))), Origin: parley.ID(r.Uint32()) >> r.IntN(16),
		Seq: r.Uint64() >> r.IntN(64), Value: r.Uint64() >> r.IntN(64),
	}
	for range r.IntN(4) * r.IntN(100) {
		m.Body = append(m.Body, byte(r.Uint32()))
	}
	return parley.Env{Epoch: r.Uint32() >> r.IntN(32), Path: parley.Path(r.Uint64() >> r.IntN(64))}, m
}

// Decode returns what was encoded, and ReadMsg reads encodings one after another.
func TestWireRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	var all []byte
	var sent []parley.Outgoing
	for range 2000 {
		e, m := randomMsg(r)
		b := parley.Encode([]byte("head"), e, m)
		if string(b[:4]) != "head" {
			t.Fatal("Encode does not append")
		}
		e2, m2, err := parley.Decode(b[4:])
		if err != nil || e2 != e || !reflect.DeepEqual(m2, m) {
			t.Fatalf("%+v %+v: %+v %+v %v", e, m, e2, m2, err)
		}
		all = parley.AppendMsg(all, e.Path, m)
		sent = append(sent, parley.Outgoing{Path: e.Path, Msg: m})
	}
	for _, want := range sent {
		path, m, rest, err := parley.ReadMsg(all)
		if err != nil || path != want.Path || !reflect.DeepEqual(m, want.Msg) {
			t.Fatalf("%+v: %#x %+v %v", want, path, m, err)
		}
		all = rest
	}
	if len(all) != 0 {
		t.Error("bytes are left")
	}
}

// Each way to be wrong has its error.
func TestWireErrors(t *testing.T) {
	num := func(u uint64) []byte { return binary.AppendUvarint(nil, u) }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"well":             {[]byte{0, 0, 1, 2, 3, 4, 1, 9}, nil},
		"empty":            {nil, parley.ErrShort},
		"no path":          {[]byte{0}, parley.ErrShort},
		"no kind":          {[]byte{0, 0}, parley.ErrShort},
		"no origin":        {[]byte{0, 0, 1}, parley.ErrShort},
		"no seq":           {[]byte{0, 0, 1, 2}, parley.ErrShort},
		"no value":         {[]byte{0, 0, 1, 2, 3}, parley.ErrShort},
		"no size":          {[]byte{0, 0, 1, 2, 3, 4}, parley.ErrShort},
		"body cut short":   {[]byte{0, 0, 1, 2, 3, 4, 2, 9}, parley.ErrShort},
		"trailing":         {[]byte{0, 0, 1, 2, 3, 4, 1, 9, 0}, parley.ErrTrailing},
		"epoch of 33 bits": {join(num(1<<32), []byte{0, 1, 2, 3, 4, 0}), parley.ErrRange},
		"epoch of 32 bits": {join(num(1<<32-1), []byte{0, 1, 2, 3, 4, 0}), nil},
		"path of 64 bits":  {join([]byte{0}, num(math.MaxUint64), []byte{1, 2, 3, 4, 0}), nil},
		"path of 65 bits": {join([]byte{0}, bytes.Repeat([]byte{0xFF}, 9), []byte{2, 1, 2, 3, 4, 0}),
			parley.ErrRange},
		"path without end":      {join([]byte{0}, bytes.Repeat([]byte{0xFF}, 12)), parley.ErrRange},
		"long form of 1":        {[]byte{0, 0x81, 0, 1, 2, 3, 4, 0}, parley.ErrCanonical},
		"long form of 0":        {[]byte{0x80, 0, 0, 1, 2, 3, 4, 0}, parley.ErrCanonical},
		"local kind":            {[]byte{0, 0, byte(parley.Local), 2, 3, 4, 0}, parley.ErrLocal},
		"highest kind":          {[]byte{0, 0, byte(parley.Local) - 1, 2, 3, 4, 0}, nil},
		"forged suspicion":      {[]byte{0, 0, byte(parley.Suspect), 2, 3, 4, 0}, parley.ErrLocal},
		"origin of 17 bits":     {join([]byte{0, 0, 1}, num(1<<16), []byte{3, 4, 0}), parley.ErrRange},
		"origin of 16 bits":     {join([]byte{0, 0, 1}, num(1<<16-1), []byte{3, 4, 0}), nil},
		"body beyond the limit": {join([]byte{0, 0, 1, 2, 3, 4}, num(parley.MaxBody+1)), parley.ErrRange},
		"body at the limit":     {join([]byte{0, 0, 1, 2, 3, 4}, num(parley.MaxBody)), parley.ErrShort},
	} {
		if _, _, err := parley.Decode(c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, not %v", name, err, c.want)
		}
	}
}

// The Body shares the bytes read, and appending to it cannot change the bytes after it.
func TestWireBody(t *testing.T) {
	_, one := randomMsg(rand.New(rand.NewPCG(2, 2)))
	one.Body = []byte("body")
	b := parley.AppendMsg(parley.AppendMsg(nil, 0, one), 0, one)
	_, m, rest, _ := parley.ReadMsg(b)
	if &m.Body[0] != &b[len(b)-len(rest)-4] {
		t.Error("the body is a copy")
	}
	if _ = append(m.Body, 0xEE); rest[0] == 0xEE {
		t.Error("the next message was overwritten")
	}
	one.Body = []byte{}
	if _, m, _, _ := parley.ReadMsg(parley.AppendMsg(nil, 0, one)); m.Body != nil {
		t.Error("an empty body is not nil")
	}
}

// Decode never panics, whatever the bytes, and what it accepts has no other
// encoding.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	r := rand.New(rand.NewPCG(2, 3))
	for range 4 {
		e, m := randomMsg(r)
		f.Add(parley.Encode(nil, e, m))
	}
	f.Fuzz(canonical)
}

func canonical(t *testing.T, b []byte) {
	e, m, err := parley.Decode(b)
	if err != nil {
		return
	}
	if m.Kind >= parley.Local || len(m.Body) > parley.MaxBody {
		t.Fatalf("%+v was accepted", m)
	}
	if again := parley.Encode(nil, e, m); !bytes.Equal(again, b) {
		t.Fatalf("%x is accepted, and encoded as %x", b, again)
	}
}

// The same for mutated encodings.
func TestWireHostile(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 4))
	accepted := 0
	for range 50000 {
		e, m := randomMsg(r)
		b := parley.Encode(nil, e, m)
		switch r.IntN(4) {
		case 0:
			b = b[:r.IntN(len(b))]
		case 1:
			b = append(b, byte(r.Uint32()))
		case 2:
			i := r.IntN(len(b))
			b = append(b[:i:i], append([]byte{byte(r.Uint32())}, b[i:]...)...)
		default:
			b[r.IntN(min(8, len(b)))] = byte(r.Uint32())
		}
		canonical(t, b)
		if _, _, err := parley.Decode(b); err == nil {
			accepted++
		}
	}
	if accepted == 0 || accepted == 50000 {
		t.Error(accepted, "of 50000 were accepted")
	}
}
