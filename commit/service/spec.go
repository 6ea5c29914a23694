package service

import (
	"encoding/binary"
	"slices"

	"parley"
)

// The limits of a transaction.
const (
	MaxName   = 255      // bytes of a name
	MaxPart   = 60 << 10 // bytes of one part
	MaxParts  = 4 << 20  // bytes of all parts that a process holds for one coordinator
	MaxReason = 200      // bytes of the reason of a no
)

// Spec describes a transaction.
type Spec struct {
	Name    string
	Digest  uint64      // a hash of everything that the transaction does
	Members []parley.ID // the participating processes: the coordinator first, the others in order
	Parts   []Part      // what some of the members do, in their order
}

// Part is what one process does in a transaction.
type Part struct {
	ID   parley.ID
	Body []byte
}

// place returns the index of a member. For others it returns an ID that no process has.
func (t Spec) place(id parley.ID) parley.ID { return parley.ID(slices.Index(t.Members, id)) }

// Has reports whether id is a member.
func (t Spec) Has(id parley.ID) bool { return slices.Contains(t.Members, id) }

// Part returns the part of id, and whether it has one.
func (t Spec) Part(id parley.ID) (body []byte, has bool) {
	for _, p := range t.Parts {
		if p.ID == id {
			return p.Body, true
		}
	}
	return nil, false
}

// Only returns the spec with the part of id only. With parley.All it has no part.
func (t Spec) Only(id parley.ID) Spec {
	parts := t.Parts
	t.Parts = nil
	for _, p := range parts {
		if p.ID == id {
			t.Parts = []Part{p}
		}
	}
	return t
}

// Size returns the number of bytes of all parts.
func (t Spec) Size() int {
	size := 0
	for _, p := range t.Parts {
		size += len(p.Body)
	}
	return size
}

// Encode returns the bytes that ReadSpec reads.
func (t Spec) Encode() []byte {
	b := make([]byte, 0, 32+len(t.Name)+2*len(t.Members)+t.Size()+8*len(t.Parts))
	b = parley.AppendBytes(b, t.Name)
	b = binary.BigEndian.AppendUint64(b, t.Digest)
	b = binary.AppendUvarint(b, uint64(len(t.Members)))
	for _, id := range t.Members {
		b = binary.AppendUvarint(b, uint64(id))
	}
	b = binary.AppendUvarint(b, uint64(len(t.Parts)))
	for _, p := range t.Parts {
		b = binary.AppendUvarint(b, uint64(p.ID))
		b = parley.AppendBytes(b, p.Body)
	}
	return b
}

// ReadSpec reads the spec of a transaction in a system of n processes. It refuses parts of processes that are
// not members, and members (except the first) or parts that are out of order.
func ReadSpec(b []byte, n int) (t Spec, ok bool) {
	r := parley.Reader{Rest: b}
	t.Name = string(r.Take(r.Number(MaxName)))
	digest := r.Take(8)
	if r.Bad {
		return t, false
	}
	t.Digest = binary.BigEndian.Uint64(digest)
	for range r.Number(uint64(n)) {
		id := r.ID(n)
		if k := len(t.Members); k > 0 && (id == t.Members[0] || k > 1 && id <= t.Members[k-1]) {
			return t, false
		}
		t.Members = append(t.Members, id)
	}
	for range r.Number(uint64(len(t.Members))) {
		p := Part{ID: r.ID(n), Body: r.Take(r.Number(MaxPart))}
		if k := len(t.Parts); !t.Has(p.ID) || k > 0 && p.ID <= t.Parts[k-1].ID {
			return t, false
		}
		t.Parts = append(t.Parts, p)
	}
	return t, r.Done() && t.Name != "" && len(t.Members) > 0
}

// Visit visits the spec in a system of n processes.
func (t *Spec) Visit(v *parley.Vars, n int) {
	b := t.Encode()
	if v.Bytes("spec", &b); v.Loading() {
		var ok bool
		if *t, ok = ReadSpec(b, n); !ok {
			v.Fail()
			*t = Spec{Name: " ", Members: []parley.ID{0}}
		}
	}
}

// encodeNumbers encodes a list of rising numbers, each as the difference from the one before.
func encodeNumbers(list []uint64) []byte {
	var b []byte
	last := uint64(0)
	for _, x := range list {
		b = binary.AppendUvarint(b, x-last)
		last = x
	}
	return b
}

// readNumbers reads a list of at most most numbers.
func readNumbers(b []byte, most int) (list []uint64, ok bool) {
	r := parley.Reader{Rest: b}
	last := uint64(0)
	for len(r.Rest) > 0 && len(list) <= most {
		step := r.Number(1<<56 - 1)
		if last += step; r.Bad || step == 0 && len(list) > 0 || last >= 1<<56 {
			return nil, false
		}
		list = append(list, last)
	}
	return list, !r.Bad && len(list) <= most
}
