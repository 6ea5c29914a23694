package service

import (
	"testing"

	"parley"
)

// A state that names a coordinator that does not exist is refused, whether its list of members is damaged too or not.
func TestDamagedCoordinator(t *testing.T) {
	for _, members := range [][]parley.ID{{7, 0}, {1, 0}} {
		of := Spec{Name: "t", Members: members, Parts: []Part{{0, []byte("x")}}}
		wide := newMachine(Config{N: 9}.withDefaults(), 0)
		wide.add(&transaction{path: PathOf(7, 1), spec: of, inner: wide.c.machine(of, 0)})
		if parley.Load(newMachine(Config{N: 3}.withDefaults(), 0), 0, parley.Save(wide, 0, nil)) ||
			parley.LoadDurable(newMachine(Config{N: 3}.withDefaults(), 0), 0, parley.SaveDurable(wide, 0, nil)) {
			t.Errorf("coordinator 7 of 3, members %v: taken", members)
		}
	}
}
