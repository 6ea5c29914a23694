package parley_test

import (
	"bytes"
	"slices"
	"testing"

	"parley"
)

// queued is a machine that derives what it shows.
type queued struct {
	parley.Base
	of  parley.Set
	who parley.ID
}

func (q *queued) State(v *parley.Vars) {
	v.Set("of", &q.of)
	v.ID("who", &q.who)
	if shown := v.Shown(); shown != nil {
		shown.Derive(parley.Variable{Name: "waits", Kind: parley.WaitingProcess, Waits: shown.Called(q.who) + " and " + shown.List(q.of)})
	}
}

func TestShowNamedNamesProcessesAndDerives(t *testing.T) {
	m := &queued{of: parley.SetOf(0, 2), who: 1}
	want := []parley.Variable{
		{Name: "of", Value: "[p q]", Kind: parley.ProcessSet}, {Name: "who", Value: "x"},
		{Name: "waits", Kind: parley.WaitingProcess, Waits: "x and p, q"},
	}
	names := []string{"p", "x", "q"}
	if got := parley.ShowNamed(m, 0, func(id parley.ID) string { return names[id] }); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := parley.Show(m, 0); got[0].Value != "[0 2]" || got[1].Value != "1" || got[2].Waits != "1 and 0, 2" {
		t.Errorf("got %+v, want numbers", got)
	}
	if got := parley.ShowDerived(m, nil); !slices.Equal(got, parley.Show(m, 0)[2:]) {
		t.Errorf("got %+v, want only the derived one", got)
	}
	plain := &queued{}
	if b := parley.Save(m, 0, nil); !parley.Load(plain, 0, b) || !bytes.Equal(parley.Save(plain, 0, nil), b) || *plain != *m {
		t.Errorf("loaded %+v, want %+v", plain, m)
	}
}
