package parleytest

import (
	"testing"

	"parley"
	"parley/sim"
)

// Panics reports whether f panics.
func Panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

// Judge fails t with a fatal error if the run s breaks a promise that holds under the run's conditions. It returns
// the names of the properties that do not hold, promised or not. The argument what identifies the run in failures.
func Judge(t testing.TB, p parley.Protocol, s *sim.Sim, what any) (broken []string) {
	t.Helper()
	for _, v := range parley.Judge(p, s.RunConditions(), &s.History) {
		switch {
		case v.Broken == nil || v.Property.Mode == parley.Sometimes:
			continue
		case v.Violated():
			t.Fatalf("%v: %s: %v, though %s", what, v.Property.Name, v.Broken, v.Promise.Because)
		}
		broken = append(broken, v.Property.Name)
	}
	return broken
}
