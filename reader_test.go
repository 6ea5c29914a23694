package parley_test

import (
	"bytes"
	"testing"

	"parley"
)

// Reader reads what was appended. A part that does not fit reads as zero, as does everything after it.
func TestReader(t *testing.T) {
	set := parley.SetOf(1, 3)
	b := append(parley.AppendSet(parley.AppendBytes([]byte{7, 2}, []byte("ab")), set), 1)
	r := parley.Reader{Rest: b}
	x, id, text, read := r.Number(7), r.ID(3), r.Bytes(), r.Set(4)
	if x != 7 || id != 2 || !bytes.Equal(text, []byte("ab")) || read != set || r.Done() || r.Number(1) != 1 || !r.Done() {
		t.Errorf("%d, %d, %q, %v, %+v", x, id, text, read, r)
	}
	for name, f := range map[string]func(r *parley.Reader) bool{
		"number": func(r *parley.Reader) bool { return r.Number(6) == 0 },
		"id":     func(r *parley.Reader) bool { return r.ID(7) == 0 },
		"count":  func(r *parley.Reader) bool { return r.Count() == 0 },
		"bytes":  func(r *parley.Reader) bool { return r.Bytes() == nil },
		"take":   func(r *parley.Reader) bool { return r.Take(4) == nil },
		"set":    func(r *parley.Reader) bool { return r.Set(3) == parley.Set{} },
	} {
		r := parley.Reader{Rest: []byte{7, 1, 1}}
		if !f(&r) || !r.Bad || r.Done() || r.Number(9) != 0 || r.Set(9) != (parley.Set{}) || r.Bytes() != nil || r.Take(0) != nil || r.Rest != nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
